"""Other processes, by /proc: descendants, memory, and how to end them."""

from __future__ import annotations

import os
import signal

MOST = 1 << 16  # bytes of a file of /proc that are read


def descendants(process: int) -> list[int]:
    """All processes below this one."""
    children = []
    try:
        for thread in os.scandir(f"/proc/{process}/task"):
            for child in map(int, contents(f"{thread.path}/children").split()):
                children += [child, *descendants(child)]
    except OSError:  # it has just ended
        pass
    return children


def memory(processes: list[int]) -> int:
    """Bytes of memory that processes use; shared pages count for each."""
    pages = 0
    for process in processes:
        _, held, *_ = contents(f"/proc/{process}/statm").split() or (0, 0)
        pages += int(held)
    return pages * os.sysconf("SC_PAGESIZE")


def contents(path: str) -> bytes:
    """A small file of /proc; empty if its process has ended."""
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError:
        return b""
    try:
        return os.read(file, MOST)
    except OSError:
        return b""
    finally:
        os.close(file)


def kill(processes: list[int]) -> None:
    for process in processes:
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            continue
