"""lm_eval's own command line, with `unmask` among its models."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from traceback import walk_tb
from typing import Any

import lm_eval
import lm_eval.tasks
import torch
from lm_eval._cli import HarnessCLI
from lm_eval.config.evaluate_config import EvaluatorConfig
from lm_eval.tasks._index import Kind, TaskIndex
from lm_eval.utils import setup_logging

from unmask.errors import RequestError
from unmask.integrations.harness import simple_evaluate
from unmask.integrations.harness.evaluate import NAME

BATCH_SIZE = 8


def launch(arguments: Sequence[str]) -> None:
    """Hand all arguments over to lm_eval; `run` is its command where none is named."""
    words = list(arguments)
    if words and words[0].startswith("-") and words[0] not in ("-h", "--help"):
        words.insert(0, "run")
    setup_logging()
    harness = HarnessCLI()
    with _replaced(sys, "argv", ["lm-eval", *words]):  # where it reads from
        options = harness.parse_args()
    if options.command == "run":
        _fill(options)
    try:
        with _replaced(lm_eval, "simple_evaluate", simple_evaluate), _tasks_for(options):
            harness.execute(options)
    except (ValueError, FileNotFoundError, TypeError) as error:
        if _about_options(error):
            raise RequestError(str(error).strip()) from None
        raise


def _fill(options: Namespace) -> None:
    """Defaults of ours where neither the command line nor its config file says anything."""
    said = {name for name, value in vars(options).items() if value is not None}
    if options.config is not None:
        try:
            said |= set(EvaluatorConfig.load_yaml_config(options.config))
        except (OSError, ValueError, TypeError) as error:
            raise RequestError(f"--config: {error}") from None
    ours = {
        "model": NAME,
        "device": "cuda" if torch.cuda.is_available() else "cpu",
        "batch_size": BATCH_SIZE,
    }
    for name, value in ours.items():
        if name not in said:
            setattr(options, name, value)


@contextmanager
def _tasks_for(options: Namespace) -> Iterator[None]:
    """Leave out lm_eval's thousands of tasks where only one's own are asked for.

    Reading them takes a minute or two, and lm_eval has no option for it.
    """
    manager = lm_eval.tasks.TaskManager
    if options.command == "run" and _only_own(options):
        manager = partial(manager, include_defaults=False)
    with _replaced(lm_eval.tasks, "TaskManager", manager):
        yield


def _only_own(options: Namespace) -> bool:
    """Whether every task is a plain one, from a file or from --include_path."""
    names = [name for name in options.tasks or () if name]
    files = [name for name in names if name.endswith(".yaml")]
    folder = options.include_path
    if folder is None:
        return bool(names) and files == names and all(map(_is_task, files))
    known = lm_eval.tasks.TaskManager(include_path=folder, include_defaults=False).task_index
    plain = {name for name, entry in known.items() if entry.kind in (Kind.TASK, Kind.PY_TASK)}
    return bool(names) and all(_is_task(name) if name in files else name in plain for name in names)


def _is_task(file: str) -> bool:
    path = Path(file)
    entry = TaskIndex.entry_from_path(path) if path.is_file() else None
    return bool(entry and entry.kind in (Kind.TASK, Kind.PY_TASK))


def _about_options(error: Exception) -> bool:
    """Whether lm_eval's reading of its options raised it."""
    *_, (frame, _) = walk_tb(error.__traceback__)
    return bool(frame.f_globals.get("__name__") == EvaluatorConfig.__module__)


@contextmanager
def _replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """For the time of a call, what lm_eval looks up by name is ours."""
    missing = object()
    before = vars(owner).get(name, missing)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if before is missing:
            delattr(owner, name)
        else:
            setattr(owner, name, before)
