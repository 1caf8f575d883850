"""Landlock: a process gives up all files but those below a few paths, which it may only read.

It needs no rights and no namespaces, only Linux 5.13; newer kernels also take away TCP, abstract
sockets, and signals to processes outside. Permissions and times of files are beyond it.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct

CREATE, ADD, RESTRICT = 444, 445, 446  # the same on every machine
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
# version of the kernel's interface: (how many rights to files it knows, size of the argument)
RIGHTS = {1: (13, 8), 2: (14, 8), 3: (15, 8), 4: (15, 16), 5: (16, 16), 6: (16, 24)}


def version() -> int:
    """The version of the kernel's interface; 0 without Landlock."""
    return max(0, _call(CREATE, None, 0, 1, check=False))


def restrict(readable: list[str]) -> None:
    """Allow reading below these paths and writing to /dev/null, and nothing else from now on.

    Privileges must have been given up before (PR_SET_NO_NEW_PRIVS).
    """
    rights, size = RIGHTS[min(version(), 6)]
    refused = struct.pack("QQQ", (1 << rights) - 1, 3, 3)[:size]  # files, TCP, sockets, signals
    rules = _call(CREATE, refused, size, 0)
    for path in readable:
        try:
            place = os.open(path, os.O_PATH)
        except OSError:  # a file that cannot be read anyway
            continue
        folder = stat.S_ISDIR(os.fstat(place).st_mode)
        allowed = READ_FILE | READ_DIR | EXECUTE if folder else READ_FILE | WRITE_FILE
        _call(ADD, rules, 1, struct.pack("=Qi", allowed, place), 0)
        os.close(place)
    _call(RESTRICT, rules, 0)
    os.close(rules)


def _call(number: int, *arguments: object, check: bool = True) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    longs = [ctypes.c_long(part) if isinstance(part, int) else part for part in arguments]
    result = int(libc.syscall(ctypes.c_long(number), *longs))
    if check and result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"landlock({number}): {os.strerror(code)}")
    return result
