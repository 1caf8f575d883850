"""The commands of the page, `unmask` in a process of its own, and the workers of our cluster."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time

import psutil

from tests.paths import ROOT

COMMANDS = re.findall(r"```sh\n(.*?)\n```", (ROOT / "docs/ray.md").read_text(), re.DOTALL)


def command_of(name):
    """The words of a command of docs/ray.md, without the program."""
    (command,) = [shlex.split(each) for each in COMMANDS if name in each]
    return command[1:]


def start(*arguments, **environment):
    """A new interpreter: Ray's threads and a fork do not go together."""
    return subprocess.Popen(
        [sys.executable, "-m", "unmask", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
    )


def done(process, seconds=240):
    """What it printed; it must end by itself."""
    try:
        output, told = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        output, told = process.communicate()
        raise AssertionError(f"not done after {seconds} s: {told}") from None
    return process.returncode, output, told


def wait_for(condition, seconds=120):
    """What the condition gives as soon as it is true."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)
    return value


def workers(title="ray::Worker"):
    """Processes of the cluster that this process has begun, by what they are doing."""
    processes = []
    for process in psutil.Process().children(recursive=True):
        try:
            if process.cmdline() and process.cmdline()[0].startswith(title):
                processes.append(process)
        except psutil.NoSuchProcess:
            continue
    return processes
