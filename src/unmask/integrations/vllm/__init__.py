"""vLLM: decoding by a rule in its dllm-plugin."""
