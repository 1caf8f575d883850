"""The native kernel compiles, and a wheel without it is pure; see tests/test_install.py too."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile

import pytest

from tests.paths import ROOT
from unmask.kernels import build

LIBRARY = "unmask/kernels/_reduce.so"


def wheel(folder, **environment):
    """Build the wheel: its name, what it holds, and what was said."""
    pytest.importorskip("hatchling", reason="hatchling is not installed")
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        env={**os.environ, **environment},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    made = next(folder.glob("*.whl"))
    return made.name, zipfile.ZipFile(made).namelist(), done.stdout + done.stderr


def test_a_broken_compiler_gives_a_pure_wheel_and_one_line(tmp_path):
    name, files, output = wheel(tmp_path, CXX=sys.executable)
    assert name.endswith("-py3-none-any.whl")
    assert LIBRARY not in files
    (line,) = (line for line in output.splitlines() if "no native kernel" in line)
    assert "failed" in line


def test_without_a_compiler_it_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("CXX", "")
    assert "there is no C++ compiler" in build.build(tmp_path / build.NAME)


@pytest.mark.skipif(build.compiler() is None, reason="there is no C++ compiler")
def test_the_kernel_compiles_without_a_warning(tmp_path, monkeypatch):
    monkeypatch.setattr(build, "FLAGS", (*build.FLAGS, "-O1", "-Wall", "-Wextra", "-Werror"))
    assert build.build(tmp_path / build.NAME) is None
    assert [file.name for file in tmp_path.iterdir()] == [build.NAME]


def test_a_compiler_that_fails_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setenv("CXX", sys.executable)
    assert "failed" in build.build(tmp_path / build.NAME)
    assert list(tmp_path.iterdir()) == []
