"""Hostile programs: the right verdict in time, and nothing is left behind, read or changed."""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.lab.sandbox.cheats import CHEATS, ESCAPES
from tests.lab.sandbox.hostile import CONTROLS, ENDS, PROCESSES, RESOURCES, Hostile
from tests.lab.sandbox.sandboxes import BACKENDS, QUICK, children, judged, sandbox_or_skip
from unmask.lab.sandbox import Program, confine, landlock
from unmask.lab.sandbox.seccomp import refusals

ALL = [*CONTROLS, *PROCESSES, *RESOURCES, *ENDS, *CHEATS, *ESCAPES]

CONTENT = "precious"


@pytest.fixture(scope="module", autouse=True)
def subreaper():
    """Whatever the sandbox left behind would become a child of this process."""
    confine.prctl(confine.PR_SET_CHILD_SUBREAPER, 1)
    yield
    confine.prctl(confine.PR_SET_CHILD_SUBREAPER, 0)


@pytest.fixture
def world():
    """A file of value, two listeners, and the paths that nobody may reach."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)  # so that more than file permissions must protect it
        precious = Path(folder) / "precious"
        precious.write_text(CONTENT)
        precious.chmod(0o666)
        yield from _world_around(precious)
        assert precious.read_text() == CONTENT
        assert [path.name for path in Path(folder).iterdir()] == ["precious"]


def _world_around(precious: Path) -> Iterator[dict[str, object]]:
    name = f"unmask-test-{os.getpid()}"
    package = Path(confine.__file__)
    folders = [
        Path.home(),
        Path("/etc"),
        Path("/usr"),
        Path("/dev/shm"),
        Path("/var/tmp"),
        Path("/"),
    ]
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind(f"\0{name}")
        abstract.listen()
        for listener in (tcp, abstract):
            listener.setblocking(False)
        yield {
            "name": name,
            "parent": os.getpid(),
            "port": tcp.getsockname()[1],
            "targets": [str(precious), str(package), *(str(folder / name) for folder in folders)],
            "secrets": ["/etc/passwd", "/etc/hostname", "/root", "/home", "/proc", str(precious)],
        }
        for listener in (tcp, abstract):
            with pytest.raises(BlockingIOError):
                listener.accept()
    assert package.stat().st_size
    assert not [folder for folder in folders if list(folder.glob(f"{name}*"))]


@pytest.fixture(scope="module")
def start() -> float:
    """Seconds that judging takes when there is nothing to do: more on a busy machine."""
    begin = time.monotonic()
    for backend in BACKENDS:
        with contextlib.suppress(pytest.skip.Exception):
            judged(sandbox_or_skip(backend), "def solve(n): pass", "solve(1)")
    return time.monotonic() - begin


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("hostile", ALL, ids=lambda hostile: hostile.name.replace(" ", "-"))
def test_hostile_programs_get_the_right_verdict_and_leave_nothing(
    backend: str, hostile: Hostile, world: dict[str, object], start: float
):
    cpu = (
        QUICK.cpu if "timeout" in hostile.reasons else 10
    )  # a busy machine needs more to fill memory
    sandbox = sandbox_or_skip(backend, replace(QUICK, wall=hostile.wall, cpu=cpu))
    if backend == "rlimit" and not refusals():
        pytest.skip(
            "without namespaces and a filter of system calls this may end our own processes"
        )
    if backend == "rlimit" and hostile.files and not landlock.version():
        pytest.skip("without namespaces and Landlock files can be reached")
    before = children()
    begin = time.monotonic()
    code = f"WORLD = {world!r}\n{hostile.code}"
    verdict = sandbox.judge(Program(code, hostile.tests, ("solve",)))
    assert time.monotonic() - begin < hostile.wall + 2 + 3 * start
    assert verdict.reason in hostile.reasons, verdict
    assert verdict.passed == (verdict.reason == "passed")
    assert "!" not in verdict.log
    assert len(verdict.log) <= QUICK.output
    assert children() == before
