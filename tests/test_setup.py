"""What a newcomer meets before the first test: the tested versions, and the tests left out."""

from __future__ import annotations

from importlib import metadata
from types import SimpleNamespace

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from tests.conftest import pytest_terminal_summary
from tests.paths import ROOT

PYTHONS = ("3.10", "3.11", "3.12", "3.13")  # of the workflow
LINES = (ROOT / "constraints.txt").read_text().splitlines()
PINS = [Requirement(line) for line in LINES if not line.startswith("#")]


def meant_for(pin, python):
    return pin.marker is None or pin.marker.evaluate({"python_version": python})


def test_every_tested_version_can_be_installed_on_every_python_of_the_workflow():
    for name in {pin.name for pin in PINS}:
        for python in PYTHONS:
            assert sum(pin.name == name and meant_for(pin, python) for pin in PINS) <= 1, name
    for pin in PINS:
        try:
            installed = metadata.distribution(pin.name)
        except metadata.PackageNotFoundError:
            continue
        if pin.specifier.contains(installed.version):
            needs = SpecifierSet(installed.metadata["Requires-Python"] or "")
            refused = [each for each in PYTHONS if meant_for(pin, each) and each not in needs]
            assert not refused, (str(pin), refused)


def test_triton_is_left_to_torch_because_each_build_of_torch_asks_for_its_own():
    assert "triton" not in {pin.name for pin in PINS}


def test_tests_that_were_left_out_are_named_with_the_command_that_adds_them():
    def left_out(file, reason):
        return SimpleNamespace(nodeid=f"{file}::test", longrepr=("", 1, f"Skipped: {reason}"))

    no_browser = "there is no chromium on this machine"
    skipped = [*(left_out("tests/a.py", no_browser) for _ in range(2)), left_out("b.py", "odd")]
    lines: list[str] = []
    pytest_terminal_summary(SimpleNamespace(stats={"skipped": skipped}, write_line=lines.append))
    assert lines == [
        "1 tests left out: they do not apply to this machine. (b.py 1)",
        "2 tests left out: chromium is missing. To add them: sudo apt-get install chromium."
        " (tests/a.py 2)",
    ]
