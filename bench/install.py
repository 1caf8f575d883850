"""A fresh install: what it weighs and how soon it answers, the wheel alone in its environment.

    python -m bench.install [--short] [--json FILE]

An sdist of this tree, a wheel out of that, a virtual environment with this wheel and what it
depends on, from the index that pip is configured for, in the versions of constraints.txt. Sizes are
those of files, compiled Python among them; seconds are wall-clock times of fresh processes, medians
but for what happens once. It takes a minute or two and is no part of `make bench`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import venv
from dataclasses import dataclass
from importlib.metadata import Distribution, distributions
from pathlib import Path
from statistics import median
from time import perf_counter

from bench.measure import Bench, Column, Row, main

ROOT = Path(__file__).parents[1]
PROMPT = "Ann has 12 pens. She buys 3, then loses 5. How many now?"
ASK = ("-m", "unmask", "run", PROMPT, "--json")
PROCESSES: dict[str, tuple[str, ...]] = {
    "python": ("-c", ""),
    "import torch": ("-c", "import torch"),
    "import unmask": ("-c", "import unmask"),
    "unmask --version": ("-m", "unmask", "--version"),
    "unmask run": ASK,
}
WITHOUT = "unmask run, without the native kernel"
PURE = {"UNMASK_NO_NATIVE": "1", "PATH": "", "CXX": ""}  # as where there is no compiler


@dataclass(frozen=True)
class Size:
    """Number of runs of each process, and where the dependencies come from."""

    rounds: int = 9
    lent: bool = False  # without a network: use the packages of this interpreter
    processes: tuple[str, ...] = tuple(PROCESSES)


SHORT = Size(rounds=2)


def run(short: bool = False, size: Size | None = None) -> list[Row]:
    """Rows of sizes, then of seconds."""
    size = size or (SHORT if short else Size())
    with tempfile.TemporaryDirectory() as folder:
        return measured(Installed.in_folder(Path(folder), size.lent), size)


@dataclass(frozen=True)
class Installed:
    """The built files, and environments with the wheels."""

    sdist: Path
    tree: Path  # the sdist, unpacked
    wheel: Path
    pure: Path  # the wheel without the native kernel
    fresh: Fresh
    plain: Fresh  # with the pure wheel, and the dependencies of the other
    seconds: float  # of pip

    @classmethod
    def in_folder(cls, folder: Path, lent: bool) -> Installed:
        sdist = built("sdist", ROOT, folder / "sdist")
        tree = unpacked(sdist, folder)
        wheel = built("wheel", tree, folder / "native")
        pure = built("wheel", tree, folder / "pure", PURE)
        fresh = Fresh(folder / "venv", Path(sysconfig.get_path("purelib")) if lent else None)
        begin = perf_counter()
        fresh.install(wheel)
        seconds = perf_counter() - begin
        plain = Fresh(folder / "plain", fresh.lender or fresh.packages)
        plain.install(pure)
        return cls(sdist, tree, wheel, pure, fresh, plain, seconds)


def measured(made: Installed, size: Size) -> list[Row]:
    """Measure the sizes, the first answer, then every process in turn."""
    fresh = made.fresh
    rows: list[Row] = [
        {"what": "sdist", "megabytes": megabytes(made.sdist)},
        {"what": "wheel", "megabytes": megabytes(made.wheel)},
        {"what": "wheel without a compiler", "megabytes": megabytes(made.pure)},
        *fresh.sizes(),
        {"what": "pip install", "seconds": made.seconds},
    ]
    begin = perf_counter()
    answer = json.loads(fresh.python(*ASK))
    rows.append({"what": "unmask run, the first time", "seconds": perf_counter() - begin})
    assert answer["text"], "nothing was written"
    rounds = []
    for _ in range(size.rounds):
        seconds = {name: fresh.timed(*PROCESSES[name])[0] for name in size.processes}
        seconds[WITHOUT], output = made.plain.timed(*ASK)
        assert answer["text"] == json.loads(output)["text"], "the wheels differ"
        rounds.append(seconds)
    return rows + [
        {"what": name, "seconds": median(seconds[name] for seconds in rounds)} for name in rounds[0]
    ]


def built(kind: str, tree: Path, target: Path, environment: dict[str, str] | None = None) -> Path:
    """An sdist or a wheel of a tree."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(target)]
    everything = {**os.environ, **(environment or {})}
    subprocess.run(command, cwd=tree, env=everything, check=True, capture_output=True)
    return next(target.iterdir())


def unpacked(sdist: Path, folder: Path) -> Path:
    """The tree of an sdist."""
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    return folder / sdist.name.removesuffix(".tar.gz")


def megabytes(file: Path) -> float:
    return file.stat().st_size / 1e6


class Fresh:
    """A new virtual environment."""

    def __init__(self, folder: Path, lender: Path | None = None) -> None:
        venv.create(folder, symlinks=os.name != "nt")
        self.program = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        asked = "import sysconfig; print(sysconfig.get_path('purelib'))"
        self.packages = Path(self.python("-c", asked))
        self.lender = lender
        if lender:
            (self.packages / "lent.pth").write_text(str(lender))

    def install(self, wheel: Path) -> None:
        """Install a wheel, with its dependencies unless they are lent."""
        pip = [sys.executable, "-m", "pip", "--python", str(self.program), "install", "--quiet"]
        pins = ["--no-deps"] if self.lender else ["--constraint", str(ROOT / "constraints.txt")]
        command = [*pip, "--disable-pip-version-check", *pins, str(wheel)]
        subprocess.run(command, check=True, capture_output=True)

    def python(self, *arguments: str) -> str:
        """The output of a process in the environment, without access to this tree."""
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        done = subprocess.run(
            [str(self.program), *arguments],
            cwd=self.program.parent,
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout.strip()

    def timed(self, *arguments: str) -> tuple[float, str]:
        """Seconds from the start of a process to its end, and its output."""
        begin = perf_counter()
        output = self.python(*arguments)
        return perf_counter() - begin, output

    def sizes(self) -> list[Row]:
        """Sizes of unmask, of torch and of all installed packages."""
        dists = {d.metadata["Name"]: d for d in distributions(path=[str(self.packages)])}
        named = [name for name in ("unmask", "torch") if name in dists]
        rows: list[Row] = [
            {"what": f"{name} {dists[name].version}, installed", "megabytes": size_of(dists[name])}
            for name in named
        ]
        total = sum(map(size_of, dists.values()))
        return [*rows, {"what": f"all {len(dists)} packages, installed", "megabytes": total}]


def size_of(package: Distribution) -> float:
    """Megabytes of the files of an installed package."""
    files = (Path(str(file.locate())) for file in package.files or ())
    return sum(megabytes(file) for file in files if file.exists())


BENCH = Bench(
    "install",
    "A fresh install: megabytes, and wall-clock seconds of fresh processes",
    (
        Column("what", "what"),
        Column("megabytes", "megabytes", ".2f"),
        Column("seconds", "seconds", ".2f"),
    ),
    run,
)

if __name__ == "__main__":
    main(BENCH)
