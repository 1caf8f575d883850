"""The process in which math-verify runs: one JSON line in, one out, until stdin closes.

math-verify may take for ever, or all the memory, on an answer such as 9^{9^9}; here that hurts
nobody: the parent keeps the time, and where it has gone, this process ends by itself.
"""

from __future__ import annotations

import faulthandler
import json
import logging
import sys
import warnings
from typing import Any

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
            found = parse(answer, parsing_timeout=None)
            if wanted and found:
                return {"right": bool(verify(wanted, found, timeout_seconds=None)), "used": place}
        return {"right": False, "used": None}

    answer = sys.stdout
    sys.stdout = sys.stderr  # whatever a library prints is no answer
    print(json.dumps({"ready": True}), file=answer, flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        faulthandler.dump_traceback_later(1 + 2 * asked["limit"], exit=True)
        try:
            result = ruling(asked["gold"], asked["answers"])
        except Exception as error:  # a text may break the parser in any way
            result = {"right": False, "used": None, "error": type(error).__name__}
        faulthandler.cancel_dump_traceback_later()
        print(json.dumps(result), file=answer, flush=True)


def _limit_memory() -> None:
    try:
        import resource
    except ImportError:  # not on this system
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = _MEMORY if hard == resource.RLIM_INFINITY else min(_MEMORY, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))


if __name__ == "__main__":
    main()
