"""The names of dtypes, quantisations and caches; imports nothing, so that `--help` stays fast."""

DTYPES = ("float32", "bfloat16", "float16")
CACHES = ("none", "prefix", "dual", "delayed", "block")
QUANTIZED = ("int8", "int4")
