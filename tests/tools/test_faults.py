"""Every fault of tools/faults.py still has its place, so that the script can plant it."""

from __future__ import annotations

import pytest

from tests.paths import ROOT
from tools.fault_table import FAULTS, Fault
from tools.faults import PACKAGE, planted


def test_every_fault_still_applies_and_its_nearest_tests_are_there():
    gone = []
    for fault in FAULTS:
        assert all((ROOT / path).exists() for path in fault.tests), fault.name
        try:
            planted((ROOT / PACKAGE / fault.file).read_text(encoding="utf-8"), fault)
        except LookupError as error:
            gone.append(str(error))
    assert gone == []
    assert len({fault.name for fault in FAULTS}) == len(FAULTS) >= 25


def test_every_package_has_a_fault():
    packages = {path.parent.name for path in (ROOT / PACKAGE).glob("*/__init__.py")}
    assert packages == {fault.file.partition("/")[0] for fault in FAULTS}


def test_a_place_that_is_gone_or_ambiguous_is_named():
    fault = Fault("some-fault", "some/file.py", "a + b", "a - b", ())
    assert planted("return a + b", fault) == "return a - b"
    for text, count in (("return a", 0), ("a + b, a + b", 2)):
        with pytest.raises(LookupError, match=f"some-fault: some/file.py holds .* {count} times"):
            planted(text, fault)
