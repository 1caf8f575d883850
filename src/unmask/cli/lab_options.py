"""Options that `eval`, `sweep` and `tune` share, and what they do with them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unmask.errors import LabError

if TYPE_CHECKING:
    from unmask.lab.sweep.plan import Work
    from unmask.lab.sweep.run_options import ProgressListener, RunOptions

STORE = Path("unmask-lab.sqlite")


def add_running(group: argparse._ArgumentGroup) -> None:
    """How to run: nothing here changes a result."""
    group.add_argument(
        "--store", type=Path, default=STORE, metavar="FILE",
        help=f"where every finished example is kept; the same command goes on ({STORE})",
    )  # fmt: skip
    group.add_argument(
        "--data", type=Path, metavar="DIR", help="folder of the benchmarks' JSON lines (the hub)"
    )
    group.add_argument("--batch-size", type=int, default=8, metavar="N", help="rows at once (8)")
    group.add_argument(
        "--workers", type=int, metavar="N", help="processes; on the CPU one per core is best (1)"
    )
    group.add_argument(
        "--device", metavar="NAMES", help="a worker on each: cuda:0,cuda:1 (cuda, else cpu)"
    )
    group.add_argument(
        "--allow-unsandboxed", action="store_true",
        help="run generated code though no sandbox is at hand",
    )  # fmt: skip


def add_cluster(group: argparse._ArgumentGroup) -> None:
    """Where to run, if not here alone."""
    group.add_argument(
        "--ray", nargs="?", const="", metavar="ADDRESS",
        help="on a Ray cluster, --workers processes (one per GPU or CPU): HOST:PORT, auto (the one "
        "of this machine), or nothing (RAY_ADDRESS, else one of its own)",
    )  # fmt: skip


def options_of(arguments: argparse.Namespace) -> RunOptions:
    """Checked."""
    import torch

    from unmask.lab.sweep.run_options import RunOptions
    from unmask.models.load import usable_device

    for name in ("batch_size", "workers"):
        value = getattr(arguments, name)
        if value is not None and value < 1:
            raise LabError(f"--{name.replace('_', '-')} must be >= 1, got {value}")
    if getattr(arguments, "ray", None) is not None:
        return _on_cluster(arguments)
    if arguments.device is None:
        names = ["cuda" if torch.cuda.is_available() else "cpu"]
    else:
        names = [name.strip() for name in arguments.device.split(",")]
    for name in names:
        usable_device(name)
    if arguments.workers is not None:
        if len(names) > 1:
            raise LabError("--workers multiplies one --device; several devices have a worker each")
        names = names * arguments.workers
    traces = getattr(arguments, "trace", None)
    imports = tuple(arguments.imports)
    return RunOptions(
        arguments.store, tuple(names), arguments.batch_size, arguments.data, traces, None, imports
    )


def _on_cluster(arguments: argparse.Namespace) -> RunOptions:
    from unmask.lab.ray.join import Cluster, address_of
    from unmask.lab.sweep.run_options import RunOptions

    cluster = Cluster(address_of(arguments.ray), arguments.workers, arguments.device)
    traces = getattr(arguments, "trace", None)
    imports = tuple(arguments.imports)
    return RunOptions(
        arguments.store, (), arguments.batch_size, arguments.data, traces, cluster, imports
    )


class Quiet:
    """Progress where nobody looks: a line per trial on stderr."""

    def __init__(self) -> None:
        self.left: dict[str, int] = {}

    def begin(self, work: Work, done: int) -> None:
        self.left[work.trial.key] = len(work.asks) - done

    def done(self, work: Work, count: int = 1) -> None:
        key = work.trial.key
        self.left[key] -= count
        if self.left[key] == 0:
            print(f"done: {title_of(work)}", file=sys.stderr, flush=True)


class Bars:
    """A bar for the sweep and one for the trial that moves, with the time that is left."""

    def __init__(self, bars: Any) -> None:
        self.bars, self.total, self.done_so_far = bars, 0, 0
        self.all = bars.add_task("all", total=None)
        self.one: dict[str, Any] = {}

    def begin(self, work: Work, done: int) -> None:
        self.total += len(work.asks)
        self.done_so_far += done
        self.bars.update(self.all, total=self.total, completed=self.done_so_far)
        self.one[work.trial.key] = self.bars.add_task(
            title_of(work), total=len(work.asks), completed=done, visible=False
        )

    def done(self, work: Work, count: int = 1) -> None:
        self.bars.advance(self.all, count)
        task = self.one[work.trial.key]
        self.bars.update(task, advance=count, visible=True)
        if self.bars.tasks[self.bars.task_ids.index(task)].finished:
            self.bars.update(task, visible=False)


def title_of(work: Work) -> str:
    """A trial in one line."""
    trial = work.trial
    eos = "" if trial.eos == "keep" else f", EOS {trial.eos}"
    cache = "" if trial.cache == "none" else f", {trial.cache} cache"
    return f"{trial.task}: {trial.rule}, {trial.window}{eos}{cache}"


@contextmanager
def progress() -> Iterator[ProgressListener]:
    """Bars in a terminal that has them, else a line per trial."""
    if not sys.stderr.isatty():
        yield Quiet()
        return
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Rich
    except ImportError:
        yield Quiet()
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Rich(*columns, console=Console(stderr=True), transient=True) as bars:
        yield Bars(bars)
