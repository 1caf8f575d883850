"""Builds the native kernel into the wheel; without a C++ compiler the wheel is pure."""

from __future__ import annotations

import os
import runpy
import shutil
import sysconfig
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

KERNELS = Path("src/unmask/kernels")


class NativeKernel(BuildHookInterface):
    """`UNMASK_NO_NATIVE=1` leaves it out. It is called through ctypes, so any Python 3 does."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, in place for an editable install, and set the platform of the wheel."""
        here = Path(self.root) / KERNELS
        builder = runpy.run_path(str(here / "build.py"))
        name = builder["NAME"]
        self.scratch = mkdtemp()
        target = (here if version == "editable" else Path(self.scratch)) / name
        skipped = os.environ.get("UNMASK_NO_NATIVE", "0") not in ("", "0")
        problem = "UNMASK_NO_NATIVE is set" if skipped else builder["build"](target)
        if problem:
            self.app.display_warning(f"unmask: no native kernel, plain PyTorch serves: {problem}")
            return
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"
        if version != "editable":
            build_data["force_include"][str(target)] = f"unmask/kernels/{name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Clear away what the wheel has a copy of."""
        shutil.rmtree(self.scratch)
