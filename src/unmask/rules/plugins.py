"""Parts of rules that are not ours: imported when somebody names them, known by their source."""

from __future__ import annotations

import hashlib
import inspect
import sys
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from unmask.errors import RuleError
from unmask.models.fingerprint import sha_of
from unmask.rules.registry import kind_of, kinds
from unmask.rules.rule import Rule


def import_parts(name: str) -> None:
    """Run a Python file, or import an installed module, so that the parts it registers have names.

    A file is what ends in .py or has a folder before it. Twice does nothing.
    """
    kinds()  # our own names are taken first
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


def is_file(name: str) -> bool:
    """Whether it names a file, and no module."""
    return name.endswith(".py") or len(Path(name).parts) > 1


def _failed(name: str, error: BaseException) -> str:
    reason = " ".join(str(error).split())
    return f"{name} cannot be imported: {type(error).__name__}: {reason}"


def _import_file(path: Path) -> None:
    """Under the file's own name, which nothing else may have."""
    if not path.is_file():
        raise FileNotFoundError("there is no such file")
    name, place = path.stem, path.resolve()
    if name in sys.modules:
        taken = getattr(sys.modules[name], "__file__", None)
        if taken is not None and Path(taken).resolve() == place:
            return
    else:
        found = find_spec(name)
        taken = None if found is None else found.origin or "a package"
        if taken is None or Path(taken).resolve() == place:
            _execute(name, place)
            return
    raise ImportError(f"the module name {name!r} is taken by {taken}; rename the file")


def _execute(name: str, place: Path) -> None:
    spec = spec_from_file_location(name, place)
    if spec is None or spec.loader is None:
        raise ImportError("it is no Python file")
    sys.modules[name] = module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise


def sources_of(rule: Rule) -> str:
    """A fingerprint of the files that define a rule's parts, but for ours; empty if all are ours.

    What those files import in their turn is not looked at.
    """
    found = {_source(kind_of(part).target) for part in rule.parts} - {""}
    return sha_of(sorted(found)) if found else ""


def _source(target: Any) -> str:
    if target.__module__.partition(".")[0] == "unmask":
        return ""
    try:
        file = inspect.getsourcefile(target)
        content = Path(file or "").read_bytes()
    except (OSError, TypeError):  # typed at a prompt, or compiled
        content = f"{target.__module__}.{target.__qualname__}".encode()
    return hashlib.sha256(content).hexdigest()
