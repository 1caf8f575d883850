"""Start-up time: new processes of the command line, and the first token in a process.

    python -m bench.startup [--short] [--json FILE]

Wall-clock time of new processes, which start one after another by turns. Python itself and `import
torch` are the lower bounds: nothing can be decoded without them. Files are in the system's cache.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from statistics import median
from time import perf_counter

from bench.measure import Bench, Column, Row, Taken, main

PROMPT = "Ann has 12 pens. She buys 3, then loses 5. How many now?"
FLOOR, NOTHING = "import torch", "python"
UNMASK = ("-m", "unmask")
PROCESSES: dict[str, tuple[str, ...]] = {
    NOTHING: ("-c", ""),
    FLOOR: ("-c", "import torch"),
    "import unmask": ("-c", "import unmask"),
    "unmask --version": (*UNMASK, "--version"),
    "unmask --help": (*UNMASK, "--help"),
    "unmask run --help": (*UNMASK, "run", "--help"),
    "unmask rules": (*UNMASK, "rules"),
    "unmask run, 8 tokens": (*UNMASK, "run", PROMPT, "--length", "8"),
}
INSIDE = """
from time import perf_counter
import torch
import unmask
begin = perf_counter()
model, tokenizer = unmask.load()
loaded = perf_counter()
settings = unmask.Settings(unmask.Rule.parse("confidence | swd(5) | eb(0.1)"))
for _ in range(2):
    start = perf_counter()
    request = unmask.prompt_request(model.spec, tokenizer.encode({prompt!r}), 48, settings)
    next(unmask.decode_steps(model, [request]))
    print(loaded - begin, perf_counter() - start)
"""


@dataclass(frozen=True)
class Size:
    """Number of starts of each process."""

    rounds: int = 7
    warm: bool = True  # begin with a round that is not counted
    processes: tuple[str, ...] = tuple(PROCESSES)


SHORT = Size(rounds=3, warm=False)


def seconds_of(arguments: tuple[str, ...]) -> float:
    """Seconds from the start of a new process to its end."""
    begin = perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
    return perf_counter() - begin


def inside() -> dict[str, float]:
    """In a fresh process: loading the model, the first step, the first step of the next one."""
    program = INSIDE.format(prompt=PROMPT)
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    (load, first), (_, second) = (map(float, line.split()) for line in done.stdout.splitlines())
    return {
        "in a process with torch: load()": load,
        "in a process with torch: load() and the first step": load + first,
        "in a process with torch: the first step of the next request": second,
    }


def run(short: bool = False, size: Size | None = None) -> list[Row]:
    """A row for each way of starting, with its ratio to `import torch` in the same rounds."""
    size = size or (SHORT if short else Size())
    taken: Taken = {}
    for counted in [False] * size.warm + [True] * size.rounds:
        round_seconds = {name: seconds_of(PROCESSES[name]) for name in size.processes} | inside()
        if counted:
            for name, seconds in round_seconds.items():
                taken.setdefault(name, []).append(seconds)
    floor = taken[FLOOR]
    return [
        {
            "what": name,
            "seconds": median(seconds),
            "floors": median(a / b for a, b in zip(seconds, floor, strict=True)),
        }
        for name, seconds in taken.items()
    ]


BENCH = Bench(
    "startup",
    "Start-up: wall-clock seconds of fresh processes, and within one",
    (
        Column("what", "what"),
        Column("seconds", "seconds", ".3f"),
        Column("floors", "of `import torch`", ".2f", "x"),
    ),
    run,
)

if __name__ == "__main__":
    main(BENCH)
