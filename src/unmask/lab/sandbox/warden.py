"""The warden's process, one per sample: starts judge and candidate and ends after both.

It runs no foreign code. As the subreaper it inherits every process that the candidate leaves
behind, and it ends only after all of them.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time

from unmask.lab.sandbox import confine, judge, processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

START = 60.0  # seconds that the candidate's process may take to start
TICK = 0.1  # seconds between two checks of the memory of all processes together
FILES = 10_000  # in the candidate's /tmp
CHUNK = 1 << 16


def main() -> None:
    """Read one job from standard input, write its outcome to standard output."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    job = json.load(sys.stdin.buffer)
    confine.prctl(confine.PR_SET_CHILD_SUBREAPER, 1)
    # processes of our uid cannot read the tests in memory
    confine.prctl(confine.PR_SET_DUMPABLE, 0)
    run = Judgement(job)
    try:
        outcome = run.watch()
    finally:
        run.end()
    json.dump({**outcome, "log": run.log.decode("utf-8", "replace")}, sys.stdout)


class Judgement:
    """One judge and one candidate, with a time limit for both."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.limits, self.alone = job["limits"], job["alone"]
        self.log = bytearray()  # what the candidate printed, up to the limit
        self.words = b""  # the judge's report so far
        self.began: float | None = None  # when the candidate got its code
        self.deadline = time.monotonic() + START
        self.statuses: dict[int, int] = {}  # of processes that have ended
        self.woken = _wake_on_death()
        requests_out, requests = os.pipe()
        replies, replies_in = os.pipe()
        self.printed, log_in = os.pipe()
        self.said, report = os.pipe()
        self.candidate = _spawn(job, [requests_out, replies_in, log_in])
        self.judge = os.fork()
        if not self.judge:
            _become_the_judge(job, requests, replies, report, [self.said, self.printed])
        for end in (requests, replies, report):
            os.close(end)
        for end in (self.printed, self.woken):
            os.set_blocking(end, False)

    def watch(self) -> dict[str, Any]:
        """Wait for the verdict, the clock, or too much memory, whichever is first."""
        poll = select.poll()
        for end in (self.said, self.printed, self.woken):
            poll.register(end, select.POLLIN)
        poll.register(1, 0)  # reports an error if our output is closed
        look = time.monotonic() + TICK
        while True:
            ready = dict(poll.poll(TICK * 1000))
            if 1 in ready:
                sys.exit("nobody waits for this verdict")
            if self.woken in ready:
                self.bury()
            if self.printed in ready and not self.listen():
                poll.unregister(self.printed)
            if self.said in ready and not self.hear():
                return self.verdict()
            now = time.monotonic()
            if now > self.deadline:
                return self.late()
            if now > look:
                look = now + TICK
                if excess := self.excess():
                    return _outcome("memory", excess)

    def hear(self) -> bytes:
        """Read the judge's report; its first byte starts the time limit."""
        words = os.read(self.said, CHUNK)
        self.words += words
        if words and self.began is None:
            self.began = time.monotonic()
            self.deadline = self.began + self.limits["wall"]
        return words

    def excess(self) -> str:
        """What the candidate's processes use too much of, empty if nothing."""
        used = processes.memory(self.below())
        if used > self.limits["memory"]:
            return f"{used >> 20} MB in all processes together"
        return f"more than {FILES} files" if self.files() > FILES else ""

    def verdict(self) -> dict[str, Any]:
        """The judge's outcome, with the reason if the judge saw only a closed pipe."""
        *_, last = self.words.splitlines() or [b""]
        if last in (b"", b"started"):
            return self.judge_died()
        outcome: dict[str, Any] = json.loads(last)
        if outcome["reason"] == "crashed":
            outcome.update(self.death())
        return outcome

    def death(self) -> dict[str, Any]:
        """How the candidate's process ended; bwrap reports a signal as 128 and its number."""
        status = self.status(self.candidate)
        number = -status if status < 0 else status - 128 if status > 128 else 0
        if not number:
            return _outcome("crashed", f"the candidate's process ended with status {status}")
        spent = time.monotonic() - (self.began or 0)
        cpu = number == signal.SIGKILL and spent >= self.limits["cpu"]
        if cpu or number == signal.SIGXCPU:
            return _outcome("timeout", f"more than {self.limits['cpu']} s of CPU time")
        return _outcome("crashed", f"the candidate's process ended by signal {number}")

    def judge_died(self) -> dict[str, Any]:
        """The outcome of a judge that ran out of time: a valid answer may be slow to compare."""
        status = self.status(self.judge)
        if status in (-signal.SIGXCPU, -signal.SIGKILL):
            return _outcome("timeout", f"more than {self.limits['cpu']} s of CPU time in the tests")
        if self.began is not None:  # it ran this program's tests: others may do better
            return _outcome("error", f"the tests ended the judge, with status {status}")
        return _outcome("not started", f"the judge ended with status {status}")

    def late(self) -> dict[str, Any]:
        if self.began is None:
            return _outcome("not started", f"the candidate's process took more than {START} s")
        return _outcome("timeout", f"more than {self.limits['wall']} s")

    def status(self, process: int) -> int:
        """The exit status of a process that has ended or is about to."""
        patience = time.monotonic() + 1
        while process not in self.statuses and time.monotonic() < patience:
            self.bury()
            time.sleep(0.002)
        return self.statuses.get(process, 0)

    def bury(self) -> None:
        """Reap ended processes; after the candidate has ended, kill the processes it started."""
        while _read(self.woken):
            pass
        while True:
            try:
                process, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not process:
                break
            self.statuses[process] = os.waitstatus_to_exitcode(status)
        if self.candidate in self.statuses:
            processes.kill(self.below())

    def below(self) -> list[int]:
        """The candidate's processes: all that descend from the warden but the judge."""
        return [process for process in processes.descendants(os.getpid()) if process != self.judge]

    def files(self) -> int:
        """The number of files in the candidate's /tmp; even empty files take memory."""
        if self.alone or self.began is None:
            return 0
        try:
            scratch = os.statvfs(f"/proc/{processes.descendants(self.candidate)[0]}/root/tmp")
        except (OSError, IndexError):  # it has just ended
            return 0
        return scratch.f_files - scratch.f_ffree

    def listen(self) -> bytes:
        """Read the candidate's output and keep it up to the limit."""
        data = _read(self.printed)
        self.log += data[: max(0, self.limits["output"] - len(self.log))]
        return data

    def end(self) -> None:
        """Kill and reap until there is no descendant left."""
        while True:
            processes.kill(processes.descendants(os.getpid()))
            try:
                os.waitpid(-1, 0)
            except ChildProcessError:
                break
        while self.listen():
            pass


def _outcome(reason: str, detail: str) -> dict[str, Any]:
    return {"reason": reason, "detail": detail, "flagged": False}


def _spawn(job: dict[str, Any], ends: list[int]) -> int:
    """Start the candidate with three pipes and, for bwrap, the filter as file 3."""
    settings = {name: job[name] for name in ("limits", "alone", "readable", "filter")}
    settings["uid"] = _unused_uid() if os.geteuid() == 0 else 0
    if job["filter"] and not job["alone"]:
        program, filter_in = os.pipe()
        os.write(filter_in, bytes.fromhex(job["filter"]))
        os.close(filter_in)
        ends = [*ends, program]
    moved = [(os.POSIX_SPAWN_DUP2, end, number) for number, end in enumerate(ends)]
    argv = [*job["argv"], json.dumps(settings)]
    process = os.posix_spawn(argv[0], argv, job["env"], file_actions=moved, setsid=True)
    for end in ends:
        os.close(end)
    return process


def _become_the_judge(
    job: dict[str, Any], requests: int, replies: int, report: int, others: list[int]
) -> None:
    """Run the judge in the forked child; never returns."""
    status = 1
    try:
        confine.prctl(confine.PR_SET_PDEATHSIG, signal.SIGKILL)
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(nothing, number)
        for end in others:
            os.close(end)
        signal.set_wakeup_fd(-1)
        confine.limit(job["limits"])
        judge.main(job, requests, replies, os.fdopen(report, "wb"))
        status = 0
    finally:
        os._exit(status)


def _unused_uid() -> int:
    """A uid that no other warden uses, as high as this user namespace has."""
    inside, _, count = map(int, processes.contents("/proc/self/uid_map").split()[-3:])
    return min(inside + count, 1 << 31) - 1 - os.getpid() % min(count // 2, 1 << 22)


def _wake_on_death() -> int:
    """A pipe that can be read when a child has ended."""
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake)
    return woken


def _read(end: int) -> bytes:
    try:
        return os.read(end, CHUNK)
    except BlockingIOError:
        return b""
