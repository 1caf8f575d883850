"""The process in which math-verify runs: one JSON line in, one out, until stdin closes.

math-verify may run forever or use all memory on an answer such as 9^{9^9}; the system then ends
this process at its limits. The limit is processor time if the system has such a limit, so that the
load of the machine does not change verdicts.
"""

from __future__ import annotations

import json
import logging
import math
import sys
import time
import warnings
from typing import Any

try:
    import resource
except ImportError:  # not on this system; the parent's clock is the only limit
    resource = None  # type: ignore[assignment]

_MEMORY = 4 * 2**30  # bytes of address space


def main() -> None:
    """Answer `{"gold", "answers", "limit"}` with `{"right", "used"}`, by the first that parses."""
    _limit_memory()
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    sys.setrecursionlimit(5000)
    from math_verify import parse, verify

    def ruling(gold: str, answers: list[str]) -> dict[str, Any]:
        wanted = parse(gold, parsing_timeout=None)
        for place, answer in enumerate(answers):
            parsed = parse(answer, parsing_timeout=None)
            if wanted and parsed:
                return {"right": bool(verify(wanted, parsed, timeout_seconds=None)), "used": place}
        return {"right": False, "used": None}

    answer = sys.stdout
    sys.stdout = sys.stderr  # keeps prints of libraries out of the answers
    print(json.dumps({"ready": True}), file=answer, flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        _limit_time(asked["limit"])
        try:
            result = ruling(asked["gold"], asked["answers"])
        except Exception as error:  # a text may break the parser in any way
            result = {"right": False, "used": None, "error": type(error).__name__}
        print(json.dumps(result), file=answer, flush=True)


def _limit_memory() -> None:
    if resource is not None:
        _lower(resource.RLIMIT_AS, _MEMORY)
        _lower(resource.RLIMIT_CORE, 0)


def _limit_time(seconds: float) -> None:
    """Limit the processor time from now on; SIGXCPU ends the process within a second."""
    if resource is not None:
        _lower(resource.RLIMIT_CPU, math.ceil(time.process_time() + seconds))


def _lower(limit: int, most: int) -> None:
    assert resource is not None
    _, hard = resource.getrlimit(limit)
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(limit, (most, hard))


if __name__ == "__main__":
    main()
