"""Replaces packages that SGLang imports on every machine but that have no CPU build.

tools/engines.sh copies this file into site-packages, where Python imports it at its start. Every
name of those packages can be imported; calling one raises an error.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from types import ModuleType
from typing import Any, ClassVar

MISSING = ("sgl_kernel", "torchaudio", "torchvision")


class Absent(type):
    """A class that can be imported, inherited and inspected, but not called."""

    def __call__(cls, *_: Any, **__: Any) -> Any:
        raise RuntimeError(f"{cls.__module__}.{cls.__name__} has no build for this machine")

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _absent(f"{cls.__module__}.{cls.__name__}", name)


def _absent(module: str, name: str) -> Absent:
    return Absent(name, (), {"__module__": module})


class Package(ModuleType):
    """A module in which every public name is an `Absent` class."""

    __path__: ClassVar[list[str]] = []
    __version__ = "0.0"  # older than any version that is required

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _absent(self.__name__, name)


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the missing packages and everything below them."""

    def find_spec(
        self, name: str, path: Any = None, target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name.partition(".")[0] not in MISSING:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return Package(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing to run."""


sys.meta_path.append(Finder())  # last, so that real packages come first
