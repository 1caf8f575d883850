"""The automaton of a regular expression over bytes, made in a process of bounded memory and time.

A short expression may have an automaton of any size, and the library that makes it takes no limits.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unmask.errors import LanguageError, UnmaskError

MOST_STATES = 20_000  # of an automaton over bytes
SECONDS = 10  # of processor time
MEMORY = 1 << 30  # bytes of addresses
PATIENCE = 120  # seconds until a process that does not run is given up

# Reads an expression and writes one line of JSON, then (state, byte, next state) in int32.
_PROGRAM = """
import json, sys
seconds, memory, most_states = map(int, sys.argv[1:])
sys.path[:] = [folder for folder in sys.path if folder]
try:
    import resource
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
except (ImportError, OSError, ValueError):
    pass  # no limits here, such as on Windows
try:
    from outlines_core import Index, Vocabulary
except ImportError:
    sys.exit(print(json.dumps({"missing": True})))
from array import array
try:
    every_byte = Vocabulary(256, {bytes([byte]): [byte] for byte in range(256)})
    index = Index(sys.stdin.buffer.read().decode("utf-8", "surrogatepass"), every_byte)
    moves = index.get_transitions()
except MemoryError:
    raise
except BaseException as error:
    sys.exit(print(json.dumps({"wrong": " ".join(str(error).split())[-200:]})))
facts = {"states": len(moves), "start": index.get_initial_state(),
          "final": sorted(index.get_final_states())}
if len(moves) > most_states:
    sys.exit(print(json.dumps({"states": len(moves)})))
arcs = array("i")
for state, after in moves.items():
    for byte, target in after.items():
        arcs.extend((state, byte, target))
sys.stdout.buffer.write(json.dumps(facts).encode() + b"\\n" + arcs.tobytes())
"""


@dataclass(frozen=True)
class ByteArcs:
    """The transitions of an automaton over bytes; byte 256 stands for an end."""

    arcs: NDArray[np.int32]  # [E, 3]  state, byte, next state
    start: int
    final: list[int]


def byte_arcs(expression: str, name: str) -> ByteArcs:
    """The automaton of an expression; LanguageError if there is none, or if it is too large."""
    try:
        done = subprocess.run(
            [sys.executable, "-c", _PROGRAM, *map(str, (SECONDS, MEMORY, MOST_STATES))],
            input=expression.encode("utf-8", "surrogatepass"),
            capture_output=True,
            timeout=PATIENCE,
            env={**os.environ, "RUST_BACKTRACE": "0"},
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise _too_large(name) from None
    if done.returncode:
        raise _too_large(name)
    line, _, data = done.stdout.partition(b"\n")
    facts = json.loads(line)
    if "missing" in facts:
        raise UnmaskError(
            "a language needs outlines-core; install it with pip install 'unmask[structured]'"
        )
    if "no transitions" in facts.get("wrong", ""):
        raise LanguageError(f"{name} matches no text; ^ and $ may stand at its ends only")
    if "wrong" in facts:
        raise LanguageError(
            f"{name} cannot be used as a regular expression ({facts['wrong']}); it may not look "
            "around or refer back to a group"
        )
    if facts["states"] > MOST_STATES:
        raise LanguageError(
            f"{name} has {facts['states']} states; at most {MOST_STATES} are allowed: use smaller "
            "repetitions"
        )
    arcs = np.frombuffer(data, dtype=np.int32).reshape(-1, 3)
    return ByteArcs(arcs, facts["start"], facts["final"])


def _too_large(name: str) -> LanguageError:
    return LanguageError(
        f"the automaton of {name} takes more than {SECONDS} s or {MEMORY >> 20} MiB to make: use "
        "smaller repetitions"
    )
