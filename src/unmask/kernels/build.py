"""Builds the native kernel with a C++ compiler: python -m unmask.kernels.build."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
SOURCE, NAME = HERE / "reduce.cpp", "_reduce.so"
FLAGS = ("-O3", "-std=c++17", "-fPIC", "-shared", "-pthread", "-Wno-psabi")


def compiler() -> str | None:
    """The path of $CXX, or of the first installed compiler of the usual names."""
    names = (os.environ.get("CXX", ""), "g++", "clang++", "c++")
    return next((path for name in names if name and (path := shutil.which(name))), None)


def build(target: Path) -> str | None:
    """Compile the kernel into `target`; returns why that failed, or None."""
    path = compiler()
    if path is None:
        return "there is no C++ compiler"
    fresh = target.with_name(f".{target.name}.{os.getpid()}")  # `target` is never half a file
    done = subprocess.run(
        [path, *FLAGS, str(SOURCE), "-o", str(fresh)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        lines = (done.stderr or "no message").strip().splitlines()
        return f"{path} failed: {next((line for line in lines if 'error' in line), lines[0])}"
    fresh.replace(target)
    return None


def main() -> int:
    """Build in place, beside the source."""
    problem = build(HERE / NAME)
    sys.stderr.write(f"not built: {problem}\n" if problem else f"built {HERE / NAME}\n")
    return 1 if problem else 0


if __name__ == "__main__":
    sys.exit(main())
