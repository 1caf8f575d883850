"""Options and progress display of `eval`, `sweep` and `tune`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unmask.decoding.options import MOST
from unmask.embedded import NAME
from unmask.errors import LabError

if TYPE_CHECKING:
    from unmask.lab.sweep.plan import Work
    from unmask.lab.sweep.run_options import ProgressListener, RunOptions
    from unmask.lab.sweep.trial import Trial

STORE = Path("unmask-lab.sqlite")
MODEL_HELP = "checkpoint folder or hub id"
PRESET_HELP = "prompt preset; 'unmask tasks TASK' lists them (default: paper, else the first)"
TIMED_HELP = (
    "measure time: one worker, a first batch that is not counted, and no seconds of other runs "
    "from the store"
)
DRY_RUN_HELP = "print the trials and what they cost here, by short trial runs, and stop"
BATCH_SIZE, TIMED_SIZE = 8, 1
MOST_WORKERS = 256
UNSANDBOXED_HELP = "run generated code even if this machine has no sandbox"


def add_task(command: argparse.ArgumentParser) -> None:
    """Add the options that choose one task and one model."""
    option = command.add_argument
    option("--task", required=True, metavar="NAME", help="task; 'unmask tasks' lists them")
    option("--model", default=NAME, metavar="PATH", help=f"{MODEL_HELP} (default: {NAME})")
    option("--preset", metavar="NAME", help=PRESET_HELP)


def add_running(group: argparse._ArgumentGroup, cluster: bool = True) -> None:
    """Add options that do not change results; `cluster` adds the one of a Ray cluster."""
    group.set_defaults(resume=resume)
    option = group.add_argument
    keep = f"store finished examples here and continue from them (default: {STORE})"
    option("--store", type=Path, default=STORE, metavar="FILE", help=keep)
    option("--data", type=Path, metavar="DIR", help="folder of benchmark files (default: the hub)")
    rows = f"rows per batch (default: {BATCH_SIZE}; {TIMED_SIZE} if timed)"
    option("--batch-size", type=int, metavar="N", help=rows)
    workers = "processes; on a CPU, one per core is fastest (default: 1; with --ray one per device)"
    option("--workers", type=int, metavar="N", help=workers)
    devices = "start a worker on each of these devices (default: cuda if there is one, else cpu)"
    option("--device", metavar="NAME,...", help=devices)
    option("--allow-unsandboxed", action="store_true", help=UNSANDBOXED_HELP)
    if cluster:
        option(
            "--ray", nargs="?", const="", metavar="ADDRESS",
            help="run on the Ray cluster at HOST:PORT, or auto for this machine's cluster; without "
            "ADDRESS, on RAY_ADDRESS or a new cluster",
        )  # fmt: skip


def resume(arguments: argparse.Namespace) -> str:
    """The end of the line that an interrupt prints: how to continue."""
    return f"; finished examples are in {arguments.store}; run the same command again to resume"


def options_of(arguments: argparse.Namespace, timed: bool = False) -> RunOptions:
    """The options of a run, checked; a timed run has another batch size where none is given."""
    from unmask.lab.sweep.run_options import RunOptions

    for name, most in (("batch_size", MOST), ("workers", MOST_WORKERS)):
        value = getattr(arguments, name)
        if value is not None and not 1 <= value <= most:
            raise LabError(f"--{name.replace('_', '-')} must be from 1 to {most}, got {value}")
    cluster, devices = None, tuple[str, ...]()
    if getattr(arguments, "ray", None) is None:
        devices = _devices(arguments)
    else:
        from unmask.lab.ray.join import Cluster, address_of

        cluster = Cluster(address_of(arguments.ray), arguments.workers, arguments.device)
    return RunOptions(
        arguments.store,
        devices,
        arguments.batch_size or (TIMED_SIZE if timed else BATCH_SIZE),
        arguments.data,
        getattr(arguments, "trace", None),
        cluster,
        tuple(arguments.imports),
    )


def _devices(arguments: argparse.Namespace) -> tuple[str, ...]:
    """The device of each worker."""
    import torch

    from unmask.models.load import usable_device

    text = arguments.device
    if text is None:
        text = "cuda" if torch.cuda.is_available() else "cpu"
    names = [name.strip() for name in text.split(",")]
    for name in names:
        usable_device(name)
    if arguments.workers is not None and len(names) > 1:
        raise LabError("--workers needs a single --device; with several, each has one worker")
    return tuple(names * (arguments.workers or 1))


class Titles:
    """The trials that have begun, and names that tell them apart."""

    def __init__(self) -> None:
        self._trials: dict[str, Trial] = {}
        self._names: dict[str, str] = {}

    def add(self, trial: Trial) -> None:
        if trial.key not in self._trials:
            self._trials[trial.key], self._names = trial, {}

    def of(self, trial: Trial) -> str:
        """The trial in one line."""
        from unmask.lab.sweep.naming import names_of

        self._names = self._names or names_of(list(self._trials.values()))
        return self._names[trial.key]


class Quiet:
    """Progress for logs: a line per finished trial on stderr."""

    def __init__(self) -> None:
        self.left: dict[str, int] = {}
        self.titles = Titles()

    def begin(self, work: Work, done: int) -> None:
        self.left[work.trial.key] = len(work.asks) - done
        self.titles.add(work.trial)

    def done(self, work: Work, count: int = 1) -> None:
        key = work.trial.key
        self.left[key] -= count
        if self.left[key] == 0:
            print(f"done: {self.titles.of(work.trial)}", file=sys.stderr, flush=True)


class Bars:
    """Progress bars for the sweep and for its running trials, with the remaining time."""

    def __init__(self, bars: Any) -> None:
        self.bars, self.total, self.done_so_far = bars, 0, 0
        self.all = bars.add_task("all", total=None)
        self.one: dict[str, Any] = {}
        self.titles = Titles()

    def begin(self, work: Work, done: int) -> None:
        self.total += len(work.asks)
        self.done_so_far += done
        self.bars.update(self.all, total=self.total, completed=self.done_so_far)
        self.titles.add(work.trial)
        self.one[work.trial.key] = self.bars.add_task(
            work.trial.rule, total=len(work.asks), completed=done, visible=False
        )

    def done(self, work: Work, count: int = 1) -> None:
        self.bars.advance(self.all, count)
        task = self.one[work.trial.key]
        title = self.titles.of(work.trial)
        self.bars.update(task, description=title, advance=count, visible=True)
        if self.bars.tasks[self.bars.task_ids.index(task)].finished:
            self.bars.update(task, visible=False)


class RunCount:
    """Progress of many trials that run at once: one line in a terminal, else one per tenth."""

    def __init__(self) -> None:
        self.total = self.finished = 0
        self.in_place = sys.stderr.isatty()
        self.shown = 0  # percent

    def begin(self, work: Work, done: int) -> None:
        self.total += len(work.asks)
        self.finished += done
        self.shown = 100 * self.finished // self.total

    def done(self, work: Work, count: int = 1) -> None:
        self.finished += count
        percent = 100 * self.finished // self.total
        if percent < self.shown + (1 if self.in_place else 10) and percent < 100:
            return
        if percent > self.shown:
            self.shown = percent
            start, end = ("\r", "\n" if percent == 100 else "") if self.in_place else ("", "\n")
            line = f"{start}decoded {percent}% of {self.total} examples"
            print(line, end=end, file=sys.stderr, flush=True)


@contextmanager
def progress() -> Iterator[ProgressListener]:
    """Progress bars in a terminal if rich is installed, else a line per trial."""
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
