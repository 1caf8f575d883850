"""Files of invented problems, and tools to grade with."""

import pytest

from tests.lab.invented import judge, write
from unmask.lab.grading import Tools, Verifier


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    return write(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="session")
def tools():
    with Tools(judge, Verifier(limit=60)) as tools:  # a busy machine decides nothing
        yield tools
