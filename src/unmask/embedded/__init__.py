"""The model inside the package: a small masked diffusion model trained by this project."""

from pathlib import Path

FOLDER = Path(__file__).parent / "model"
NAME = "embedded"  # as `--model` spells it
LENGTH = 48  # tokens to write, where nothing else is asked for
PROMPTS = (  # to try: a sum, a list and a function
    "Ann has 12 pens. She buys 3, then loses 5. How many now?",
    "Sort: owl, hen, fox.",
    "Write solve(x): add 9, then negate.",
)
DTYPE = "float32"  # stored in half precision, computed in single
