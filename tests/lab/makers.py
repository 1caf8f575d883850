"""Trials and answers for the tests of the lab."""

from __future__ import annotations

from unmask.lab.sweep.store import AskedExample
from unmask.lab.sweep.trial import Trial


def trial(**changes):
    """A trial of word problems."""
    usual = {
        "model": "embedded",
        "weights": "w",
        "dtype": "float32",
        "task": "words",
        "version": 1,
        "preset": "own",
        "rule": "confidence | top(1)",
        "length": 32,
    }
    return Trial(**{**usual, **changes})


def answer(**changes):
    """What is stored of a finished example."""
    usual = {
        "text": "#### 3",
        "tokens": 8,
        "written": 32,
        "nfe": 16,
        "nfe_eos": 4,
        "eos_share": 0.75,
        "cut_off": False,
        "seconds_model": 0.3,
        "seconds_decision": 0.1,
        "seconds_kl": 0.02,
        "seconds_total": 0.4,
        "memory_mean": 1000,
        "memory_peak": 2000,
    }
    return {**usual, **changes}


def asks(count):
    """Examples by name."""
    return [AskedExample(f"{number:03}", f"sha{number}") for number in range(count)]
