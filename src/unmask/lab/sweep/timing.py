"""Timed runs: their seconds depend on the machine, so their key holds its conditions."""

from __future__ import annotations

import platform
from collections.abc import Iterable

import torch

from unmask.errors import LabError
from unmask.kernels.reduce import backend
from unmask.lab.report.wording import counted
from unmask.lab.sweep.environment import environment
from unmask.lab.sweep.grid import Setting
from unmask.lab.sweep.run_options import RunOptions


def timing_of(settings: Iterable[Setting], options: RunOptions) -> str:
    """All that the seconds of a timed run depend on, in words; nothing if no setting is timed.

    It is part of the key of timed trials: an example that was decoded under other conditions, or
    in a run that was not timed, never gives a timed run its seconds.
    """
    if not any(setting.timed for setting in settings):
        return ""
    if options.cluster is not None or len(options.devices) != 1:
        raise LabError(
            "a timed run has one worker, since workers slow each other down; give --workers 1, a "
            "single --device and no --ray"
        )
    if options.traces is not None or options.memo:
        raise LabError("a timed run writes no traces, since they cost time; leave out --trace")
    device = torch.device(options.devices[0])
    here = environment(device, options.batch_size)
    commit = f" at {here['commit']}" if here["commit"] else ""
    return (
        f"batch size {here['batch_size']}, {here['device']}, {counted(here['threads'], 'thread')}, "
        f"kernel {backend(device.type)}, torch {here['torch']}, unmask {here['unmask']}{commit}, "
        f"on {platform.node()}"
    )
