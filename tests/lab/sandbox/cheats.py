"""Programs that forge a verdict or reach out of the sandbox; `hostile.py` says how they tell."""

from __future__ import annotations

from tests.lab.sandbox.hostile import FAILED, PASSED, Hostile

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
    for thing in gc.get_objects():
        if isinstance(thing, (dict, list, tuple)):
            if any(map(tests_in, thing.values() if isinstance(thing, dict) else thing)):
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
