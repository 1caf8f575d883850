"""The filter of system calls, run by a small interpreter of its own."""

from __future__ import annotations

import errno
import re
import struct
from pathlib import Path

import pytest

from unmask.lab.sandbox import seccomp
from unmask.lab.sandbox.seccomp import ALLOW, ERROR, KILL, MACHINES, REFUSED, refusals

HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}
REFUSAL = ERROR | errno.EPERM


def answer(
    machine: str, number: int, argument: int = 0, audit: int | None = None, second: int = 0
) -> int:
    """What the filter of a machine says to one call."""
    audit = MACHINES[machine][1] if audit is None else audit
    seen = struct.pack("IIQQQ", number, audit, 0, argument, second)
    steps = list(struct.iter_unpack("HBBI", refusals(machine)))
    place = held = 0
    while True:
        code, yes, no, value = steps[place]
        place += 1
        if code == seccomp.LOAD:
            (held,) = struct.unpack_from("I", seen, value)
        elif code == seccomp.RETURN:
            return value
        else:
            true = {
                seccomp.EQUAL: held == value,
                seccomp.AT_LEAST: held >= value,
                seccomp.ANY_BIT: bool(held & value),
            }[code]
            place += yes if true else no


@pytest.mark.parametrize("machine", MACHINES)
def test_exactly_the_listed_calls_are_refused(machine):
    column = MACHINES[machine][0]
    listed = {numbers[column] for numbers in REFUSED.values()} - {0}
    special = {seccomp.CLONE3[column]: ERROR | errno.ENOSYS}
    for number in range(500):
        expected = REFUSAL if number in listed else special.get(number, ALLOW)
        assert answer(machine, number) == expected, number


@pytest.mark.parametrize("machine", MACHINES)
def test_threads_and_processes_start_but_namespaces_do_not(machine):
    clone = seccomp.CLONE[MACHINES[machine][0]]
    assert answer(machine, clone, 0x01200011) == ALLOW  # fork
    assert answer(machine, clone, 0x003D0F00) == ALLOW  # a thread
    for flag in (
        0x00020000,
        0x02000000,
        0x04000000,
        0x08000000,
        0x10000000,
        0x20000000,
        0x40000000,
    ):
        assert answer(machine, clone, flag | 17) == REFUSAL


@pytest.mark.parametrize("machine", MACHINES)
def test_limits_are_set_for_oneself_alone(machine):
    prlimit = seccomp.PRLIMIT[MACHINES[machine][0]]
    assert answer(machine, prlimit, 0) == ALLOW
    assert answer(machine, prlimit, 4711) == REFUSAL


@pytest.mark.parametrize("machine", MACHINES)
def test_no_command_makes_the_kernel_signal_another_process(machine):
    fcntl, ioctl = (numbers[MACHINES[machine][0]] for numbers in (seccomp.FCNTL, seccomp.IOCTL))
    for command in range(40):  # F_SETOWN, F_SETSIG and F_SETOWN_EX
        expected = REFUSAL if command in (8, 10, 15) else ALLOW
        assert answer(machine, fcntl, 3, second=command) == expected, command
    assert answer(machine, fcntl, 3, second=8 | 1 << 32) == REFUSAL  # the kernel reads 32 bits
    assert answer(machine, ioctl, 3, second=0x5401) == ALLOW  # TCGETS
    assert answer(machine, ioctl, 3, second=0x8901) == REFUSAL  # FIOSETOWN


def test_other_conventions_end_the_process():
    assert answer("x86_64", 1, audit=0x40000003) == KILL  # i386
    assert answer("x86_64", seccomp.X32 | 1) == KILL


def test_an_unknown_machine_has_no_filter():
    assert refusals("riscv64") == b""


@pytest.mark.parametrize("machine", MACHINES)
def test_the_numbers_are_those_of_the_kernel(machine):
    if not HEADERS[machine].exists():
        pytest.skip(f"{HEADERS[machine]} is not installed")
    text = HEADERS[machine].read_text()
    known = dict(re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", text))
    column = MACHINES[machine][0]
    calls = {
        **REFUSED,
        "clone": seccomp.CLONE,
        "clone3": seccomp.CLONE3,
        "prlimit64": seccomp.PRLIMIT,
    }
    for name, numbers in calls.items():
        if name in known or numbers[column] < 424:  # older headers lack the newest calls
            assert numbers[column] == int(known.get(name, 0)), name
