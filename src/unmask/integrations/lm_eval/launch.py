"""Runs the command line of lm_eval with `unmask` among its models."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from traceback import walk_tb
from typing import Any

import lm_eval
import lm_eval.tasks
import torch
from lm_eval._cli import HarnessCLI
from lm_eval._cli.utils import key_val_to_dict
from lm_eval.config.evaluate_config import EvaluatorConfig
from lm_eval.tasks._index import Kind, TaskIndex
from lm_eval.utils import setup_logging

from unmask.errors import RequestError
from unmask.integrations.lm_eval import simple_evaluate
from unmask.integrations.lm_eval.evaluate import NAME
from unmask.integrations.lm_eval.ranks import Ranks

BATCH_SIZE = 8


def launch(arguments: Sequence[str]) -> None:
    """Pass all arguments to lm_eval; its command is `run` if the first argument is an option."""
    words = list(arguments)
    if words and words[0].startswith("-") and words[0] not in ("-h", "--help"):
        words.insert(0, "run")
    setup_logging()
    harness = HarnessCLI()
    with _replaced(sys, "argv", ["lm-eval", *words]):  # lm_eval parses sys.argv
        options = harness.parse_args()
    manager = lm_eval.tasks.TaskManager
    if options.command == "run":
        values = {**_config(options), **{k: v for k, v in vars(options).items() if v is not None}}
        _fill(options, values)
        if _only_own(values.get("tasks"), values.get("include_path")):
            manager = partial(manager, include_defaults=False)
    try:
        with (
            _replaced(lm_eval, "simple_evaluate", simple_evaluate),
            _replaced(lm_eval.tasks, "TaskManager", manager),
        ):
            harness.execute(options)
    except (ValueError, FileNotFoundError, TypeError) as error:
        if _about_options(error):
            raise RequestError(str(error).strip()) from None
        raise
    finally:
        Ranks.leave()


def _config(options: Namespace) -> dict[str, Any]:
    """The options in the file of --config."""
    if options.config is None:
        return {}
    try:
        return dict(EvaluatorConfig.load_yaml_config(options.config))
    except (OSError, ValueError, TypeError) as error:
        raise RequestError(f"--config: {error}") from None


def _fill(options: Namespace, values: Mapping[str, Any]) -> None:
    """Set our defaults for options that neither the command line nor the config file gives."""
    if isinstance(values.get("model_args"), str):  # from a file: lm_eval would split every comma
        options.model_args = key_val_to_dict(values["model_args"])
    if values.get("model", NAME) != NAME:
        return
    defaults = {
        "model": NAME,
        "device": "cuda" if torch.cuda.is_available() else "cpu",
        "batch_size": BATCH_SIZE,
    }
    for name, value in defaults.items():
        if name not in values:
            setattr(options, name, value)


def _only_own(tasks: str | Sequence[str] | None, folder: str | None) -> bool:
    """Whether every task is a single task from a YAML file or from --include_path.

    The tasks that lm_eval ships are then not read, which saves ten seconds or more. lm_eval has
    no option for this.
    """
    listed = [tasks] if isinstance(tasks, str) else tasks or ()
    names = [name for words in listed for name in str(words).split(",") if name]
    known: dict[str, Any] = {}
    if folder is not None:
        known = lm_eval.tasks.TaskManager(include_path=folder, include_defaults=False).task_index
    entries = [_file(name) if name.endswith(".yaml") else known.get(name) for name in names]
    plain = (Kind.TASK, Kind.PY_TASK)
    return bool(entries) and all(entry and entry.kind in plain for entry in entries)


def _file(name: str) -> Any:
    path = Path(name)
    return TaskIndex.entry_from_path(path) if path.is_file() else None


def _about_options(error: Exception) -> bool:
    """Whether the error was raised while lm_eval checked its options."""
    *_, (frame, _) = walk_tb(error.__traceback__)
    return bool(frame.f_globals.get("__name__") == EvaluatorConfig.__module__)


@contextmanager
def _replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Replace an attribute that lm_eval looks up by name, inside the `with` block."""
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
