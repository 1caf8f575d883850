"""The machine: versions, device, memory, sandbox, browser and extras."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

import torch

from unmask import __version__
from unmask.doctor.finding import Finding
from unmask.lab.sandbox.sandbox import bwrap_trouble
from unmask.lab.sweep.environment import device_name
from unmask.models.memory import memory

CORE = ("torch", "numpy", "safetensors", "tokenizers", "jinja2")
EXTRAS = {  # the packages of pyproject.toml by the names under which they are imported
    "serve": ("fastapi", "uvicorn", "prometheus_client"),
    "lab": ("math_verify", "matplotlib", "rich"),
    "transformers": ("transformers",),
    "diffusers": ("diffusers",),
    "lm-eval": ("lm_eval",),
    "ray": ("ray",),
    "multi-gpu": ("accelerate",),
    "quantize": ("torchao",),
    "structured": ("outlines_core",),
    "docs": ("mkdocs",),
}
PURPOSE = {
    "serve": "unmask serve",
    "lab": "MATH-500, pictures in reports and progress bars",
    "transformers": "models of its classes",
    "diffusers": "rules in its pipeline",
    "lm-eval": "unmask lm-eval",
    "ray": "--ray",
    "multi-gpu": "one model over several GPUs",
    "quantize": "--quantize on a GPU",
    "structured": "--regex, --schema and --choice",
    "docs": "building the site",
}
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
GIGA = 1e9


def machine(device: torch.device) -> Iterator[Finding]:
    """Everything but the models and the kernels."""
    yield _versions()
    yield _device(device)
    free, total = memory(device)
    yield Finding("memory", "ok", f"{free / GIGA:.1f} GB free of {total / GIGA:.1f} GB")
    trouble = bwrap_trouble()
    yield (
        Finding("bubblewrap", "missing", trouble, "install bubblewrap; code tasks need a sandbox")
        if trouble
        else Finding("bubblewrap", "ok", "programs of code tasks run in a sandbox")
    )
    browser = next((name for name in BROWSERS if shutil.which(name)), None)
    yield (
        Finding("chromium", "ok", f"{browser} takes pictures of pages")
        if browser
        else Finding(
            "chromium", "missing", "no browser for tools/screenshots.py", "install chromium"
        )
    )
    yield from map(_extra, EXTRAS)


def _versions() -> Finding:
    known = {"Python": platform.python_version(), "unmask": __version__}
    for name in CORE:
        try:
            known[name] = version(name)
        except PackageNotFoundError:
            known[name] = "unknown"
    return Finding("versions", "ok", ", ".join(f"{name} {text}" for name, text in known.items()))


def _device(device: torch.device) -> Finding:
    says = f"{device}: {device_name(device)}"
    if device.type != "cpu":
        return Finding("device", "ok", says)
    says += f", {os.cpu_count()} cores, {torch.get_num_threads()} threads of torch"
    if torch.version.cuda is None and shutil.which("nvidia-smi"):
        mend = "install the CUDA build of torch"
        return Finding("device", "slow", f"{says}; torch cannot use the GPU", mend)
    return Finding("device", "ok", says)


def _extra(name: str) -> Finding:
    lacking = [package for package in EXTRAS[name] if find_spec(package) is None]
    if not lacking:
        return Finding(f"extra {name}", "ok", "installed")
    return Finding(
        f"extra {name}",
        "missing",
        f"{', '.join(lacking)} not installed, for {PURPOSE[name]}",
        f"pip install 'unmask[{name}]'",
    )
