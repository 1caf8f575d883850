"""Programs that attack the sandbox, every one of them bounded should it fail.

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

CHEATS = [
    Hostile(
        "PASS on every file",
        """
import os
def solve(n):
    for text in (b"PASS\\n", b"passed\\n", b'{"reason": "passed", "detail": "", "flagged": 0}\\n'):
        for file in range(64):
            try:
                os.write(file, text)
            except OSError:
                pass
    return n
""",
        FAILED,
    ),
    Hostile(
        "other builtins",
        """
import builtins, json, sys
builtins.AssertionError = Exception
builtins.isinstance = builtins.exec = builtins.len = lambda *_: True
sys.exit = sys.excepthook = print
def solve(n): return n
""",
        FAILED,
    ),
    Hostile(
        "an object that equals everything",
        """
class Anything:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __hash__(self): return 42
def solve(n): return Anything()
""",
        ("wrong",),
    ),
    Hostile(
        "a number that equals everything",
        """
class Anything(int):
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    __hash__ = int.__hash__
def solve(n): return Anything(0)
""",
        ("wrong",),
    ),
    Hostile(
        "a search for the tests",
        """
import gc, os, sys
backwards = "(evlos tressa"  # or it would find itself
def tests_in(text): return isinstance(text, str) and backwards[::-1] in text
def solve(n):
    frame = sys._getframe()
    while frame:
        if tests_in(repr(frame.f_locals)) or tests_in(repr(frame.f_code.co_consts)):
            print("! in a frame")
        frame = frame.f_back
    for found in gc.get_objects():
        if isinstance(found, (dict, list, tuple)):
            if any(map(tests_in, found.values() if isinstance(found, dict) else found)):
                print("! in memory")
    for process in (1, os.getppid(), WORLD["parent"]):
        for name in ("environ", "mem", "maps", "fd"):
            try:
                os.open(f"/proc/{process}/{name}", os.O_RDONLY)
                print("! opened", process, name)
            except OSError:
                pass
    return n + 1
""",
        PASSED,
        files=True,
    ),
    *(
        Hostile(
            f"forged: {name}",
            f"""
import os
def solve(n):
    for file in range(64):
        try:
            os.write(file, {line!r} * 4)
        except OSError:
            pass
    return n
""",
            FAILED,
        )
        for name, line in {
            "true": b'{"after": [], "value": true}\n',
            "an object": b'{"after": [], "value": {"object": 0}}\n',
            "an exit": b'{"after": [], "raise": "SystemExit", "args": [0]}\n',
            "no exception": b'{"after": [], "raise": "print", "args": [0]}\n',
            "no tag": b'{"after": [], "value": {"eval": "1"}}\n',
            "two tags": b'{"after": [], "value": {"set": [], "tuple": []}}\n',
            "unknown arguments": b'{"after": [[7, []]], "value": 42}\n',
            "not JSON": b"passed\n",
            "deep": b"[" * 30_000 + b"\n",
            "many digits": b'{"value": ' + b"1" * 60_000 + b"}\n",
        }.items()
    ),
    Hostile(
        "an answer without an end",
        """
import os, time
def solve(n):
    for file in range(3, 64):
        try:
            os.write(file, b"[")
        except OSError:
            pass
    time.sleep(60)
""",
        ("timeout",),
        wall=1.5,
    ),
]

ESCAPES = [
    Hostile(
        "writing to files",
        """
import os
def solve(n):
    for path in WORLD["targets"]:
        for act in (lambda: open(path, "a").write("x"), lambda: os.truncate(path, 0),
                    lambda: os.remove(path), lambda: os.chmod(path, 0),
                    lambda: os.rename(path, path + "-moved"), lambda: os.mkdir(path + "-made"),
                    lambda: os.symlink("/", path + "-linked")):
            try:
                act()
                print("!", path)
            except OSError:
                pass
    return n + 1
""",
        PASSED,
        files=True,
    ),
    Hostile(
        "reading files",
        """
import os
def solve(n):
    for path in WORLD["secrets"]:
        try:
            os.listdir(path) if os.path.isdir(path) else open(path, "rb").read(1)
            print("!", path)
        except OSError:
            pass
    return n + 1
""",
        PASSED,
        files=True,
    ),
    Hostile(
        "the network",
        """
import socket
def solve(n):
    for family, address in ((socket.AF_INET, ("127.0.0.1", WORLD["port"])),
                            (socket.AF_UNIX, chr(0) + WORLD["name"])):
        try:
            with socket.socket(family) as one:
                one.settimeout(1)
                one.connect(address)
                print("! connected to", address)
        except OSError:
            pass
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
            one.sendto(b"x", ("127.0.0.1", WORLD["port"]))
    except OSError:
        pass
    return n + 1
""",
        PASSED,
    ),
    Hostile(
        "other rights",
        """
import ctypes, os
libc = ctypes.CDLL(None)
def solve(n):
    user, mounts, network = 0x10000000, 0x00020000, 0x40000000
    acts = {
        "a user namespace": lambda: libc.unshare(user),
        "a mount namespace": lambda: libc.unshare(mounts),
        "a network namespace": lambda: libc.unshare(network),
        "a mount": lambda: libc.mount(b"none", b"/tmp", b"tmpfs", 0, None),
        "a trace of the parent": lambda: libc.ptrace(16, os.getppid(), 0, 0),
        "root": lambda: libc.setuid(0),
        "another uid": lambda: libc.setuid(1),
        "another root": lambda: libc.chroot(b"/tmp"),
        "a limit of the parent": lambda: libc.prlimit(os.getppid(), 0, bytes(16), None),
    }
    for name, act in acts.items():
        if act() == 0:
            print("!", name)
    return n + 1
""",
        PASSED,
    ),
    Hostile(
        "a program with more rights",
        """
import subprocess
def solve(n):
    for command in (["/usr/bin/su", "-c", "id"], ["/usr/bin/sudo", "-n", "id"],
                    ["/usr/bin/mount"], ["/bin/sh", "-c", "id"]):
        try:
            done = subprocess.run(command, capture_output=True, timeout=2, stdin=-3)
            if done.returncode == 0:
                print("!", command, done.stdout)
        except (OSError, subprocess.SubprocessError):
            pass
    return n + 1
""",
        PASSED,
        files=True,
    ),
]

CONTROLS = [
    Hostile("a right answer", "def solve(n): return n + 1", PASSED),
    Hostile("a wrong answer", "def solve(n): return n", ("wrong",)),
]

ALL = [*CONTROLS, *PROCESSES, *RESOURCES, *ENDS, *CHEATS, *ESCAPES]
