"""The commands of docs/ray.md: all of them are run by the tests of sweeps and of the server."""

from __future__ import annotations

import shlex

from tests.lab.ray.commands import COMMANDS


def test_every_command_of_the_page_is_run_by_a_test():
    assert [shlex.split(each)[:2] for each in COMMANDS] == [
        ["unmask", "sweep"],  # test_sweeps.py
        ["python", "examples/ray_sweep.py"],  # test_sweeps.py
        ["unmask", "serve"],  # tests/server/test_replicas.py
    ]
