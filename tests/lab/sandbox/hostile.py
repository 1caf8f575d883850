"""Programs that use up what there is, every one of them bounded should the sandbox fail.

`solve(41)` must be 42. A program prints what it achieved after a "!", so a log with one tells of a
hole. `WORLD` is put before each: paths, ports and text of the test's own.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Hostile:
    """A program and the verdicts that are right for it."""

    name: str
    code: str
    reasons: tuple[str, ...]
    wall: float = 20.0  # long, so that on a busy machine too the limit that is meant ends it
    tests: str = "assert solve(41) == 42"
    files: bool = False  # fails where files can be reached: in the fallback without Landlock


PASSED, FAILED = ("passed",), ("wrong", "error", "crashed", "bad reply", "timeout", "memory")

PROCESSES = [
    Hostile(
        "a fork bomb",
        """
import os, time
def solve(n):
    parent = os.getpid()
    for _ in range(9):
        try:
            os.fork()
        except OSError:
            pass
    if os.getpid() != parent:
        time.sleep(60)
        os._exit(0)
    return n + 1
""",
        PASSED,
    ),
    Hostile(
        "more processes than the limit",
        """
import os, time
def solve(n):
    made = 0
    try:
        while made < 100:
            if not os.fork():
                time.sleep(60)
                os._exit(0)
            made += 1
    except OSError:
        pass
    print(made, "children", "!" if made > 15 else "")
    return n + 1
""",
        PASSED,
    ),
    Hostile(
        "detached children that keep every pipe open",
        """
import os, signal, time
def solve(n):
    for _ in range(5):
        try:
            if os.fork() == 0:
                os.setsid()
                for number in range(1, 32):
                    if number not in (9, 19):
                        signal.signal(number, signal.SIG_IGN)
                if os.fork() == 0:
                    time.sleep(60)
                os._exit(0)
        except OSError:
            pass
    return n + 1
""",
        PASSED,
    ),
    Hostile(
        "detached children of a process that ends",
        """
import os, time
def solve(n):
    try:
        if os.fork() == 0:
            os.setsid()
            time.sleep(60)
    except OSError:
        pass
    os._exit(0)
""",
        ("crashed",),
    ),
    Hostile(
        "a process that flees from one pid to the next",
        """
import os
def solve(n):
    try:
        if os.fork() == 0:
            os.setsid()
            for _ in range(20000):
                if os.fork():
                    os._exit(0)
            os._exit(0)
    except OSError:
        pass
    return n + 1
""",
        PASSED,
    ),
    Hostile(
        "kill everything",
        """
import os, signal
def solve(n):
    for process in (os.getppid(), 1, -1):
        try:
            os.kill(process, signal.SIGKILL)
        except OSError:
            pass
    return n
""",
        ("wrong", "crashed"),
    ),
    Hostile(
        "a signal by fcntl, and other priorities",
        """
import fcntl, os
def refused(call, *arguments):
    try:
        call(*arguments)
    except OSError:
        return 1
    return 0
def solve(n):
    reading, writing = os.pipe()
    done = [refused(fcntl.fcntl, reading, command, os.getppid()) for command in (8, 10, 15)]
    done.append(refused(os.setpriority, os.PRIO_PROCESS, os.getppid(), 19))
    done.append(refused(os.setpriority, os.PRIO_USER, 0, 19))
    done.append(refused(os.sched_setaffinity, os.getppid(), {0}))
    done.append(refused(os.sched_setscheduler, 0, os.SCHED_IDLE, os.sched_param(0)))
    return n + 1 if all(done) else done
""",
        PASSED,
    ),
]

RESOURCES = [
    Hostile(
        "a memory bomb",
        """
def solve(n):
    return len([bytearray(1 << 24) for _ in range(64)]) and n + 1
""",
        ("memory",),
    ),
    Hostile(
        "a memory bomb of many processes",
        """
import os, time
def solve(n):
    for _ in range(8):
        try:
            child = os.fork()
        except OSError:
            return n + 1  # the user has as many processes as the limit allows
        if not child:
            held = b"x" * (100 << 20)
            time.sleep(60)
            os._exit(0)
    time.sleep(60)
""",
        ("memory", "passed"),
    ),
    Hostile(
        "a bomb of files",
        """
import os
def solve(n):
    written = 0
    for folder in ("/tmp", "/dev/shm", "/var/tmp", "/run", "/"):
        for number in range(16):
            try:
                with open(f"{folder}/{WORLD['name']}-{number}", "wb") as file:
                    for _ in range(8):
                        written += file.write(bytes(1 << 20))
                        file.flush()
            except OSError:
                pass
    print(written >> 20, "MB written", "!" if written > 16 << 20 else "")
    return n + 1
""",
        PASSED,
        files=True,
    ),
    Hostile(
        "a bomb of empty files",
        """
import os, time
def solve(n):
    try:
        for number in range(200_000):
            os.close(os.open(f"/tmp/{WORLD['name']}-{number}", os.O_CREAT | os.O_WRONLY))
    except OSError:
        return n + 1
    print("!")
""",
        ("memory", "passed"),
        files=True,
    ),
    Hostile(
        "memory that no limit counts",
        """
import ctypes, os
def solve(n):
    libc = ctypes.CDLL(None)
    if libc.shmget(0, 1 << 20, 0o1600) >= 0:
        print("! a System V segment")
    try:
        os.memfd_create("held")
        print("! a file in memory")
    except OSError:
        pass
    return n + 1
""",
        PASSED,
    ),
    Hostile("a busy loop", "def solve(n):\n    while True: pass", ("timeout",)),
    Hostile("a busy loop at import", "while True: pass", ("timeout",)),
    Hostile("sleep", "import time\ndef solve(n): time.sleep(60)", ("timeout",), wall=1.5),
    Hostile(
        "a loop that no signal ends",
        """
import signal
def solve(n):
    for number in range(1, 65):
        try:
            signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError):
            pass
    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
    while True: pass
""",
        ("timeout",),
    ),
    Hostile(
        "300 MB of output",
        """
import sys
def solve(n):
    for _ in range(300):
        sys.stdout.write("x" * (1 << 20))
    return n + 1
""",
        ("passed", "timeout"),
    ),
    Hostile("an answer of 256 MB", "def solve(n): return 'x' * (1 << 28)", ("memory", "bad reply")),
    Hostile("an answer of 16 MB", "def solve(n): return 'x' * (1 << 24)", ("bad reply",)),
    Hostile(
        "unbounded recursion",
        """
import sys
sys.setrecursionlimit(1 << 30)
def solve(n): return solve(n + 1)
""",
        ("crashed", "memory", "timeout", "error"),
    ),
    Hostile(
        "recursion through C",
        """
import sys
sys.setrecursionlimit(1 << 30)
class Deep:
    def __getattr__(self, name): return getattr(self, name + "x")
def solve(n): return Deep().x
""",
        ("crashed", "memory", "timeout", "error"),
    ),
    Hostile(
        "limits that are raised again",
        """
import resource
def solve(n):
    for name in ("AS", "CPU", "DATA", "FSIZE", "NOFILE", "NPROC", "CORE", "STACK", "MEMLOCK"):
        number = getattr(resource, "RLIMIT_" + name)
        soft, hard = resource.getrlimit(number)
        try:
            resource.setrlimit(number, (hard, resource.RLIM_INFINITY))
            print("!" if hard != resource.RLIM_INFINITY else "", name)
        except (OSError, ValueError):
            pass
    return n + 1
""",
        PASSED,
    ),
    Hostile(
        "an answer that is slow to compare",
        "def solve(n): return [i * ((1 << 61) - 1) for i in range(150_000)]",
        ("timeout",),
        tests="assert len(set(solve(41))) == 1",
    ),
]

ENDS = [
    Hostile("sys.exit", "import sys\ndef solve(n): sys.exit(0)", ("error",)),
    Hostile("sys.exit at import", "import sys\nsys.exit(0)", ("error",)),
    Hostile("os._exit", "import os\ndef solve(n): os._exit(0)", ("crashed",)),
    Hostile("os._exit at import", "import os\nos._exit(0)", ("crashed",)),
    Hostile(
        "a segmentation fault", "import ctypes\ndef solve(n): ctypes.string_at(1)", ("crashed",)
    ),
    Hostile("abort", "import os\ndef solve(n): os.abort()", ("crashed",)),
    Hostile(
        "every file closed",
        "import os\ndef solve(n):\n    os.closerange(0, 256)\n    return n + 1",
        ("crashed",),
    ),
]

CONTROLS = [
    Hostile("a right answer", "def solve(n): return n + 1", PASSED),
    Hostile("a wrong answer", "def solve(n): return n", ("wrong",)),
]
