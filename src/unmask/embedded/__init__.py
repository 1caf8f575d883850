"""The model inside the package: a small masked diffusion model trained by this project."""

from pathlib import Path

FOLDER = Path(__file__).parent / "model"
NAME = "embedded"  # as `--model` spells it
LENGTH = 48  # tokens to write, where nothing else is asked for
DTYPE = "float32"  # stored in half precision, computed in single
