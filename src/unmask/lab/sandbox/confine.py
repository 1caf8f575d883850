"""Confine the current process: limits, uid and system calls."""

from __future__ import annotations

import os
import resource

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP = 1, 4, 22
PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 36, 38
OPEN_FILES, STACK = 64, 8 << 20


def limit(limits: dict[str, int]) -> None:
    """Set the resource limits; none of them can be raised again."""
    wanted = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_MEMLOCK: 0,
        resource.RLIMIT_MSGQUEUE: 0,
        resource.RLIMIT_NOFILE: OPEN_FILES,
        resource.RLIMIT_STACK: STACK,
        resource.RLIMIT_AS: limits["memory"],
        resource.RLIMIT_FSIZE: limits["file"],
        resource.RLIMIT_NPROC: limits["processes"],
    }
    for name, most in wanted.items():
        _at_most(name, most, most)
    _at_most(resource.RLIMIT_CPU, limits["cpu"], limits["cpu"] + 1)  # SIGXCPU, then SIGKILL


def give_up_privileges() -> None:
    """Programs started from now on gain no rights, even if their file is setuid."""
    prctl(PR_SET_NO_NEW_PRIVS, 1)


def drop(uid: int) -> None:
    """Become another user, without other groups; this cannot be undone."""
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def prctl(option: int, *arguments: object) -> None:
    """Call prctl(2), which the standard library lacks."""
    import ctypes  # imported here, since it is slow to load and not always needed

    libc = ctypes.CDLL(None, use_errno=True)
    longs = [ctypes.c_ulong(part) if isinstance(part, int) else part for part in arguments]
    padding = [ctypes.c_ulong(0)] * (4 - len(longs))
    if libc.prctl(option, *longs, *padding):
        number = ctypes.get_errno()
        raise OSError(number, f"prctl({option}): {os.strerror(number)}")


def refuse(program: bytes) -> None:
    """Install a filter of system calls; privileges must have been given up before."""
    import ctypes

    code = ctypes.create_string_buffer(program, len(program))

    class Filter(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]

    packed = Filter(len(program) // 8, ctypes.addressof(code))
    prctl(PR_SET_SECCOMP, 2, ctypes.byref(packed))


def _at_most(name: int, soft: int, hard: int) -> None:
    ceiling = resource.getrlimit(name)[1]
    if ceiling != resource.RLIM_INFINITY:
        soft, hard = min(soft, ceiling), min(hard, ceiling)
    resource.setrlimit(name, (soft, hard))
