"""Settings that every test shares."""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Iterator

import pytest
import torch
from hypothesis import settings

from tests.ray_cluster import address as address  # a fixture of several folders
from unmask.kernels import missing, use
from unmask.rules import registry as parts

if not torch.cuda.is_available():  # before Triton is imported: its kernel runs on the CPU
    os.environ["TRITON_INTERPRET"] = "1"
torch.set_num_threads(1)
settings.register_profile("unmask", deadline=None, derandomize=True, database=None, max_examples=15)
settings.load_profile("unmask")


@pytest.fixture
def clean_table() -> Iterator[None]:
    """Whatever a test registers is forgotten after it."""
    parts.kinds()
    before = dict(parts.TABLE)
    yield
    parts.TABLE.clear()
    parts.TABLE.update(before)


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--kernel NAME` runs all tests with one kernel."""
    parser.addoption("--kernel", default="auto", help="who reduces the logits in every test")


@pytest.fixture(scope="session", autouse=True)
def chosen_kernel(request: pytest.FixtureRequest) -> Iterator[None]:
    """The kernel of the command line."""
    with use(request.config.getoption("--kernel")):
        yield


@pytest.fixture
def kernel(request: pytest.FixtureRequest) -> Iterator[str]:
    """One kernel after another; those that are not there are skipped with the reason."""
    if reason := missing(request.param):
        pytest.skip(f"{request.param}: {reason}")
    with use(request.param), warnings.catch_warnings():
        if request.param == "compile":  # torch's own compiler uses what torch deprecates
            warnings.simplefilter("ignore", DeprecationWarning)
        if request.param == "triton":  # the interpreter reckons with NaN and infinity in numpy
            warnings.simplefilter("ignore", RuntimeWarning)
        yield request.param


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
             "--disable-background-networking", "--disable-component-update",
             "--disable-sync"]  # fmt: skip


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    """A Chromium; not longer than a module, because its event loop would be in others' way."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("there is no chromium on this machine")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()
