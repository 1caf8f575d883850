"""Users' parts: imports the files or modules that define them, and names them where they fail."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import wraps
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from traceback import walk_tb
from typing import ParamSpec, TypeVar

from unmask.errors import PartError, RuleError, UnmaskError
from unmask.rules.registry import TABLE, kinds

P = ParamSpec("P")
T = TypeVar("T")


def import_parts(name: str) -> None:
    """Run a Python file or import an installed module that registers parts.

    A name that ends in .py or has a folder is a file. A second call with it does nothing.
    """
    kinds()  # registers our own names first
    try:
        if is_file(name):
            _import_file(Path(name))
        else:
            import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or name.partition(".")[0] != error.name.partition(".")[0]:
            raise RuleError(_failed(name, error)) from error
        raise RuleError(
            f"there is no module {name!r} on Python's path; install it, or give a file, such as "
            f"{name.rpartition('.')[2]}.py"
        ) from None
    except (Exception, SystemExit) as error:
        raise RuleError(_failed(name, error)) from error


def import_hint(origins: Mapping[str, str]) -> str:
    """Which --import brings the parts of a trace or store: `; mine.py defines ...`, or nothing."""
    parts: dict[str, list[str]] = {}
    for part, place in origins.items():
        parts.setdefault(place, []).append(part)
    told = [
        f"; {place} defines {', '.join(names)}: give --import {place}"
        for place, names in parts.items()
    ]
    return "".join(told)


def part_failure(error: Exception) -> PartError | None:
    """What a user's part raised, in one line with its place; None if no such part raised it."""
    modules = {kind.target.__module__ for kind in TABLE.values()}
    users = {name for name in modules if not name.startswith("unmask.")}
    places = [
        (frame.f_code, line)
        for frame, line in walk_tb(error.__traceback__)
        if frame.f_globals.get("__name__") in users
    ]
    if not places:
        return None
    code, line = places[-1]
    place = f"{Path(code.co_filename).name}, line {line}, in {code.co_name}"
    return PartError(f"{place}: {_reason(error)}")


def naming_parts(step: Callable[P, T]) -> Callable[P, T]:
    """The same function; if a user's part fails in it, the error says where, in one line."""

    @wraps(step)
    def named(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return step(*args, **kwargs)
        except UnmaskError:
            raise
        except Exception as error:
            if failure := part_failure(error):
                raise failure from error
            raise

    return named


def is_file(name: str) -> bool:
    """Whether this is the name of a file, not of a module."""
    return name.endswith(".py") or len(Path(name).parts) > 1


def _failed(name: str, error: BaseException) -> str:
    return f"{name} cannot be imported: {_reason(error)}"


def _reason(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def _import_file(path: Path) -> None:
    """Import a file as the module of its own name, which no other module may have."""
    if not path.is_file():
        raise FileNotFoundError("there is no such file")
    name, place = path.stem, path.resolve()
    if name in sys.modules:
        taken = vars(sys.modules[name]).get("__file__")
        if taken is not None and Path(taken).resolve() == place:
            return
    else:
        spec = find_spec(name)
        taken = None if spec is None else spec.origin or "a package"
        if taken is None or Path(taken).resolve() == place:
            _execute(name, place)
            return
    raise ImportError(f"the module name {name!r} is taken by {taken}; rename the file")


def _execute(name: str, place: Path) -> None:
    spec = spec_from_file_location(name, place)
    if spec is None or spec.loader is None:
        raise ImportError("it is not a Python file")
    sys.modules[name] = module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
