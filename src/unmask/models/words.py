"""The names of dtypes and caches; this module imports nothing, so that `--help` stays fast."""

DTYPES = ("float32", "bfloat16", "float16")
CACHES = ("none", "prefix", "dual", "delayed", "block")
