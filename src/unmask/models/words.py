"""Names of dtypes, quantisations, caches and families; `--help` stays fast: nothing is imported."""

DTYPES = ("float32", "bfloat16", "float16")
FAMILY_NAMES = (
    "llada", "dream", "llada-moe", "llada2", "sdar", "a2d-qwen3", "a2d-qwen3-bd3lm", "opdlm",
    "a2d-qwen2", "a2d-qwen2-bd3lm", "open-dcoder", "fast-dllm-v2", "modernbert-chat", "diffugpt",
)  # fmt: skip
CACHES = ("none", "prefix", "dual", "delayed", "block")
QUANTIZED = ("int8", "int4")
