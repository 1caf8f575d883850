"""Benchmarks by name: problems, prompt presets and grading."""

from collections.abc import Mapping

from unmask.errors import UnknownName
from unmask.lab.benchmarks.base import Benchmark
from unmask.lab.benchmarks.embedded import EMBEDDED, embedded
from unmask.lab.benchmarks.example import Example
from unmask.lab.benchmarks.gsm8k import GSM8K
from unmask.lab.benchmarks.humaneval import HUMANEVAL
from unmask.lab.benchmarks.math500 import MATH500
from unmask.lab.benchmarks.mbpp import MBPP, MBPP_SANITIZED
from unmask.lab.benchmarks.preset import Preset, TaskPrompt
from unmask.lab.benchmarks.synthetic import SYNTHETIC, synthetic

_ALL = (HUMANEVAL, MBPP, MBPP_SANITIZED, GSM8K, MATH500, *EMBEDDED, *SYNTHETIC)
BENCHMARKS: Mapping[str, Benchmark] = {benchmark.name: benchmark for benchmark in _ALL}


def benchmark(name: str) -> Benchmark:
    """A benchmark by name, or one line that suggests the nearest."""
    if name not in BENCHMARKS:
        raise UnknownName("task", name, BENCHMARKS)
    return BENCHMARKS[name]


__all__ = [
    "BENCHMARKS", "Benchmark", "Example", "Preset", "TaskPrompt", "benchmark",
    "embedded", "synthetic",
]  # fmt: skip
