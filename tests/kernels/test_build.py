"""The wheel has the kernel where there is a compiler, and is pure where there is none."""

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


@pytest.mark.skipif(build.compiler() is None, reason="there is no C++ compiler")
def test_with_a_compiler_the_wheel_has_the_kernel_and_a_platform(tmp_path):
    name, files, _ = wheel(tmp_path)
    assert LIBRARY in files
    assert "-py3-none-" in name
    assert not name.endswith("-any.whl")


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"PATH": "", "CXX": ""}, "there is no C++ compiler"),
        ({"UNMASK_NO_NATIVE": "1"}, "UNMASK_NO_NATIVE is set"),
        ({"CXX": sys.executable}, "failed"),
    ],
    ids=["no compiler", "unwanted", "broken compiler"],
)
def test_without_a_compiler_the_wheel_is_pure_and_says_so_in_one_line(tmp_path, environment, said):
    name, files, output = wheel(tmp_path, **environment)
    assert name.endswith("-py3-none-any.whl")
    assert LIBRARY not in files
    assert len([line for line in output.splitlines() if "no native kernel" in line]) == 1
    assert said in output


def test_the_sources_of_the_kernel_are_in_the_wheel(tmp_path):
    _, files, _ = wheel(tmp_path, UNMASK_NO_NATIVE="1")
    assert {"unmask/kernels/reduce.cpp", "unmask/kernels/rows.h"} <= set(files)


@pytest.mark.skipif(build.compiler() is None, reason="there is no C++ compiler")
def test_the_kernel_compiles_without_a_warning(tmp_path, monkeypatch):
    monkeypatch.setattr(build, "FLAGS", (*build.FLAGS, "-Wall", "-Wextra", "-Werror"))
    assert build.build(tmp_path / build.NAME) is None
    assert [file.name for file in tmp_path.iterdir()] == [build.NAME]


def test_a_compiler_that_fails_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setenv("CXX", sys.executable)
    assert "failed" in build.build(tmp_path / build.NAME)
    assert list(tmp_path.iterdir()) == []
