"""The way in: which back end is chosen, what a verdict says, and many programs at once."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import count, islice
from threading import Thread

import pytest

from tests.lab.sandbox.sandboxes import BACKENDS, QUICK, children, judged, sandbox_or_skip
from tests.paths import ROOT
from unmask.lab import sandbox as package
from unmask.lab.sandbox import (
    Program,
    ProgramLimits,
    Sandbox,
    SandboxError,
    UnsandboxedWarning,
    backends,
    confine,
    landlock,
)
from unmask.lab.sandbox import sandbox as module
from unmask.lab.sandbox.processes import descendants

AS_ROOT = os.geteuid() == 0


@pytest.fixture(params=BACKENDS)
def sandbox(request):
    return sandbox_or_skip(request.param)


@pytest.fixture
def any_sandbox():
    try:
        return sandbox_or_skip("bwrap")
    except pytest.skip.Exception:
        return sandbox_or_skip("rlimit")


@pytest.fixture
def path(monkeypatch, tmp_path):
    """A search path with nothing in it but what the test puts there."""
    monkeypatch.setenv("PATH", str(tmp_path))
    module.bwrap_trouble.cache_clear()
    yield tmp_path
    module.bwrap_trouble.cache_clear()


# Which back end


def test_without_bubblewrap_the_fallback_is_loud_and_needs_leave_as_root(path):
    if AS_ROOT:
        with pytest.raises(SandboxError, match=r"bwrap\) is not installed: as root.*allow_unsand"):
            Sandbox()
    else:
        with pytest.warns(UnsandboxedWarning, match=r"bwrap\) is not installed.*limits alone"):
            assert Sandbox().backend == "rlimit"


def test_bubblewrap_that_does_not_work_is_found_out_and_quoted(path):
    fake = path / "bwrap"
    fake.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    fake.chmod(0o755)
    with pytest.raises(
        SandboxError, match=r"does not work here.*No permissions to create new name"
    ):
        Sandbox("bwrap")


def test_the_warning_tells_what_the_fallback_leaves_open(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1)
    monkeypatch.setattr(landlock, "version", lambda: 0)
    monkeypatch.setattr(backends, "refusals", lambda: b"")
    with pytest.warns(UnsandboxedWarning, match=r"reaches every file .* and the network and your"):
        Sandbox("rlimit")


def test_root_never_falls_back_without_leave(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(SandboxError, match="pass allow_unsandboxed=True"):
        Sandbox("rlimit")


def test_an_interpreter_that_only_root_reads_is_refused_for_the_fallback(tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    with pytest.raises(SandboxError, match=f"below {closed}|below /"):
        backends.check_readable_by_others(closed)


def test_unknown_back_ends_limits_and_names_are_refused():
    with pytest.raises(SandboxError, match="unknown backend 'docker'; known: auto, bwrap, rlimit"):
        Sandbox("docker")
    with pytest.raises(SandboxError, match="limit cpu must be > 0, got 0"):
        ProgramLimits(cpu=0)
    for names in ("f", ("f()",)):
        with pytest.raises(SandboxError, match="names must be a tuple of identifiers"):
            Program("", "", names)


def test_an_older_bubblewrap_gives_no_folder_to_write_to():
    sandbox_or_skip("bwrap")
    older = backends.bwrap(shutil.which("bwrap") or "", "", QUICK)
    code = "def f():\n    try: open('/tmp/x', 'w')\n    except OSError as e: return str(e)"
    verdict = module._run(older, QUICK, Program(code, "assert 'Read-only' in f()", ("f",)))
    assert verdict.passed, verdict


# What a verdict says


def test_a_verdict_names_reason_back_end_time_and_log(sandbox):
    verdict = judged(sandbox, "def f(): print('hello'); return 1", "assert f() == 2", "f")
    assert (verdict.passed, verdict.reason, verdict.backend) == (False, "wrong", sandbox.backend)
    assert verdict.detail == "AssertionError: , at: assert f() == 2"
    assert verdict.log == "hello\n"
    assert verdict.seconds > 0


@pytest.mark.parametrize(
    ("code", "reason", "detail"),
    [
        ("def f(): while", "error", "SyntaxError"),
        ("def f(): return 1 / 0", "error", "ZeroDivisionError: division by zero, at: f()"),
        ("def g(): pass", "no such function", "f"),
        ("def f():\n    while True: pass", "timeout", "more than 1 s of CPU time"),
        ("import ctypes\ndef f(): ctypes.string_at(0)", "crashed", "signal 11"),
        ("import os\ndef f(): os._exit(7)", "crashed", "status 7"),
        ("def f(): return bytearray(1 << 30)", "memory", "MemoryError"),
        ("def f(): return 'x' * (9 << 20)", "bad reply", "more than 8388608 bytes"),
    ],
)
def test_the_reason_is_told(sandbox, code, reason, detail):
    verdict = judged(sandbox, code, "f()", "f")
    assert (verdict.reason, verdict.passed) == (reason, False)
    assert detail in verdict.detail


def test_the_log_is_cut_and_invalid_text_in_it_replaced(any_sandbox):
    code = "import os\ndef f():\n    os.write(2, b'\\xff' + b'x' * 100_000)"
    verdict = judged(any_sandbox, code, "f()", "f")
    assert verdict.passed
    assert verdict.log == "\ufffd" + "x" * (QUICK.output - 1)


def test_sets_of_text_have_one_order(any_sandbox):
    code = "def f(): return list({str(i) for i in range(50)})"
    shown = {judged(any_sandbox, code, "assert 0, f()", "f").detail for _ in range(2)}
    assert len(shown) == 1


def test_candidates_have_the_standard_library_and_no_other(sandbox):
    code = "import math, json, hashlib, ctypes, decimal, re, ssl, sqlite3\ndef f(): import numpy"
    verdict = judged(sandbox, code, "f()", "f")
    assert verdict.detail == "ModuleNotFoundError: No module named 'numpy', at: f()"


def test_candidates_know_nothing_of_our_environment(sandbox, monkeypatch):
    monkeypatch.setenv("SECRET", "s")
    code = "import os, sys\ndef f(): return sorted(os.environ), sys.argv, os.getcwd()"
    tests = "names, argv, folder = f()\nassert 'SECRET' not in names and argv == ['candidate']"
    assert judged(sandbox, code, f"{tests}\nassert folder in ('/', '/tmp')", "f").passed


def test_inside_bubblewrap_a_small_scratch_folder_can_be_written():
    code = "def f():\n    open('notes', 'w').write('x')\n    return open('/tmp/notes').read()"
    assert judged(sandbox_or_skip("bwrap"), code, "assert f() == 'x'", "f").passed


def test_programs_that_cannot_be_judged_raise(any_sandbox):
    with pytest.raises(
        SandboxError, match="the tests pass a function, which cannot be sent to the candidate"
    ):
        judged(any_sandbox, "def f(x): pass", "f(lambda: 0)", "f")
    with pytest.raises(SandboxError, match="the tests are not valid Python"):
        judged(any_sandbox, "def f(x): pass", "assert f(", "f")


# Many at once


def test_many_programs_are_judged_in_parallel_each_with_its_number(any_sandbox):
    programs = [Program(f"def f(): return {i}", f"assert f() == {i % 2}", ("f",)) for i in range(5)]
    verdicts = dict(any_sandbox.judge_many(programs, workers=2))
    assert [verdicts[i].passed for i in range(5)] == [True, True, False, False, False]


def test_programs_are_taken_as_they_are_needed(any_sandbox):
    taken = count()
    endless = (Program(f"def f(): return {next(taken)}", "f()", ("f",)) for _ in count())
    verdicts = list(islice(any_sandbox.judge_many(endless, workers=2), 3))
    assert all(verdict.passed for _, verdict in verdicts)
    assert next(taken) < 12


def test_one_sandbox_serves_many_threads(any_sandbox):
    verdicts = []
    program = Program("def f(): return 1", "assert f() == 1", ("f",))
    threads = [Thread(target=lambda: verdicts.append(any_sandbox.judge(program))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [verdict.passed for verdict in verdicts] == [True] * 4


def test_the_example_of_the_docs_runs(any_sandbox, monkeypatch, capsys):
    monkeypatch.setattr(package, "Sandbox", lambda: any_sandbox)
    page = ROOT / "docs/sandbox.md"
    example, *others = re.findall(r"```py\n(.*?)```", page.read_text(), re.DOTALL)
    assert not others
    exec(example, {})
    assert capsys.readouterr().out == f"True passed {any_sandbox.backend}\n"


# When we are the ones who die


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_nothing_outlives_a_caller_that_is_killed(any_sandbox, number):
    before = children()
    script = (
        "import sys, warnings; warnings.simplefilter('ignore')\n"
        "from unmask.lab.sandbox import Sandbox, Program, ProgramLimits\n"
        "limits = ProgramLimits(wall=60)\n"
        f"sandbox = Sandbox({any_sandbox.backend!r}, limits, allow_unsandboxed=True)\n"
        "print('ready', flush=True)\n"
        "sandbox.judge(Program('import time\\ntime.sleep(60)', '', ()))\n"
    )
    confine.prctl(confine.PR_SET_CHILD_SUBREAPER, 1)
    try:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        caller = subprocess.Popen(
            [sys.executable, "-c", script],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        with caller:
            assert caller.stdout
            assert caller.stdout.readline() == b"ready\n"
            assert _within_seconds(lambda: len(descendants(caller.pid)) > 2)
            caller.send_signal(number)
        assert _within_seconds(lambda: _buried(children() - before))
    finally:
        confine.prctl(confine.PR_SET_CHILD_SUBREAPER, 0)


def _buried(pids: set[str]) -> bool:
    """Reap those that have ended; whether all have."""
    return all(os.waitpid(int(pid), os.WNOHANG)[0] for pid in pids)


def _within_seconds(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 20
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_clock_ends_a_program_that_only_sleeps(backend):
    sandbox = sandbox_or_skip(backend, replace(QUICK, wall=1))
    verdict = judged(sandbox, "import time\ndef solve(n): time.sleep(8)", "solve(1)")
    assert (verdict.reason, verdict.detail) == ("timeout", "more than 1 s")


def test_a_program_without_a_verdict_does_not_stop_the_others(monkeypatch):
    def judge(_, program):
        if program.code == "broken":
            raise SandboxError("no verdict after 60 s")
        return program.code

    monkeypatch.setattr(Sandbox, "judge", judge)
    sandbox = object.__new__(Sandbox)
    verdicts = []
    codes = ["a", "broken", "b", "c", "d", "e"]
    with pytest.raises(SandboxError, match="no verdict after 60 s"):
        verdicts.extend(sandbox.judge_many([Program(c, "", ()) for c in codes], workers=1))
    assert sorted(verdicts) == [(0, "a"), (2, "b"), (3, "c"), (4, "d"), (5, "e")]
    endless = (Program("broken", "", ()) for _ in range(10**9))
    with pytest.raises(SandboxError):
        list(sandbox.judge_many(endless, workers=1))
