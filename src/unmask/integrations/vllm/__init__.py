"""Decoding by a rule in vLLM's dllm-plugin."""
