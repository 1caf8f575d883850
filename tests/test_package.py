"""The public names."""

from __future__ import annotations

import subprocess
import sys

import pytest

import unmask


@pytest.mark.parametrize("name", unmask.__all__)
def test_every_public_name_is_there(name):
    assert getattr(unmask, name) is not None


def test_the_public_names_are_sorted():
    assert list(unmask.__all__) == sorted(unmask.__all__)
    assert dir(unmask) == sorted(unmask.__all__)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = unmask.nothing


def test_importing_the_package_does_not_import_torch():
    code = "import sys, unmask; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
