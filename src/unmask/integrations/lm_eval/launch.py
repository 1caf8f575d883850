"""lm_eval's own command line, with `unmask` among its models."""

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
    """Hand all arguments over to lm_eval; `run` is its command where none is named."""
    words = list(arguments)
    if words and words[0].startswith("-") and words[0] not in ("-h", "--help"):
        words.insert(0, "run")
    setup_logging()
    harness = HarnessCLI()
    with _replaced(sys, "argv", ["lm-eval", *words]):  # where it reads from
        options = harness.parse_args()
    manager = lm_eval.tasks.TaskManager
    if options.command == "run":
        said = {**_config(options), **{k: v for k, v in vars(options).items() if v is not None}}
        _fill(options, said)
        if _only_own(said.get("tasks"), said.get("include_path")):
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
        Ranks.part()


def _config(options: Namespace) -> dict[str, Any]:
    """What the file of --config says."""
    if options.config is None:
        return {}
    try:
        return dict(EvaluatorConfig.load_yaml_config(options.config))
    except (OSError, ValueError, TypeError) as error:
        raise RequestError(f"--config: {error}") from None


def _fill(options: Namespace, said: Mapping[str, Any]) -> None:
    """Defaults of ours where neither the command line nor its config file says anything."""
    if isinstance(said.get("model_args"), str):  # a file's, which lm_eval would cut at every comma
        options.model_args = key_val_to_dict(said["model_args"])
    if said.get("model", NAME) != NAME:
        return
    ours = {
        "model": NAME,
        "device": "cuda" if torch.cuda.is_available() else "cpu",
        "batch_size": BATCH_SIZE,
    }
    for name, value in ours.items():
        if name not in said:
            setattr(options, name, value)


def _only_own(tasks: str | Sequence[str] | None, folder: str | None) -> bool:
    """Whether every task is a plain one, from a file or from --include_path.

    Then lm_eval's own thousands, which take ten seconds to minutes to read, are left out; it has
    no option for that.
    """
    listed = [tasks] if isinstance(tasks, str) else tasks or ()
    names = [name for words in listed for name in str(words).split(",") if name]
    known: dict[str, Any] = {}
    if folder is not None:
        known = lm_eval.tasks.TaskManager(include_path=folder, include_defaults=False).task_index
    found = [_file(name) if name.endswith(".yaml") else known.get(name) for name in names]
    plain = (Kind.TASK, Kind.PY_TASK)
    return bool(found) and all(entry is not None and entry.kind in plain for entry in found)


def _file(name: str) -> Any:
    path = Path(name)
    return TaskIndex.entry_from_path(path) if path.is_file() else None


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
