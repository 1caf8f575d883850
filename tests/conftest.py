"""Settings that every test shares."""

from __future__ import annotations

import multiprocessing
import os
import re
import shutil
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator

import pytest
import torch
from hypothesis import settings

from tests.ray_cluster import address as address  # a fixture of several folders
from unmask.kernels import missing, use
from unmask.rules import registry as parts

if not torch.cuda.is_available():  # before Triton is imported: its kernel runs on the CPU
    os.environ["TRITON_INTERPRET"] = "1"
os.environ.setdefault("OMP_NUM_THREADS", "1")  # of child processes: the other core runs other tests
torch.set_num_threads(1)
settings.register_profile("unmask", deadline=None, derandomize=True, database=None, max_examples=10)
settings.load_profile("unmask")


@pytest.fixture
def forked_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers of a sweep are forks of a process that has imported it and has no threads.

    Those of tests/rules/test_plugins.py are new processes, as a user's are.
    """
    forks = multiprocessing.get_context("forkserver")
    forks.set_forkserver_preload(["unmask.lab.sweep.run"])
    monkeypatch.setattr(multiprocessing, "get_context", lambda _: forks)


@pytest.fixture(autouse=True)
def clean_table() -> Iterator[None]:
    """Whatever a test registers is forgotten after it, and whatever a command imported."""
    parts.kinds()
    before = dict(parts.TABLE)
    yield
    parts.TABLE.clear()
    parts.TABLE.update(before)


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--kernel NAME` runs all tests with one kernel."""
    parser.addoption("--kernel", default="auto", help="who reduces the logits in every test")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs much time or another program, so that `make check` can leave it out."""
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        file = item.nodeid.partition("::")[0]
        kernel = item.callspec.params.get("kernel") if hasattr(item, "callspec") else None
        needed = {"browser"} & fixtures | ({"ray"} if "address" in fixtures else set())
        long = ("long",) if file in LONG else ()
        for name in (kernel, *needed, *MARKED.get(file, ()), *long):
            if name in ("browser", "compile", "hostile", "install", "long", "ray", "triton"):
                item.add_marker(name)


MARKED = {
    "tests/kernels/test_compiled.py": ("compile",),
    "tests/kernels/test_cuda.py": ("triton",),
    "tests/lab/sandbox/test_hostile.py": ("hostile",),
    "tests/kernels/test_build.py": ("install",),
    "tests/test_bench.py": ("long",),
    "tests/cli/test_serve.py": ("long",),
    "tests/integrations/lm_eval/test_cli.py": ("long",),
    "tests/integrations/lm_eval/test_docs.py": ("long",),
    "tests/integrations/transformers/test_docs.py": ("long",),
    "tests/lab/sweep/test_run_resumed.py": ("long",),
    "tests/models/test_load_memory.py": ("long",),
    "tests/server/test_schema.py": ("long",),
    "tests/server/test_shutdown.py": ("long",),
    "tests/train/test_training.py": ("long",),
    "tests/test_install.py": ("install",),
}

# Files whose tests take more than a moment each; measured with all of them on two cores.
LONG = {
    "tests/cli/test_cli.py",
    "tests/cli/test_explain.py",
    "tests/cli/test_lab.py",
    "tests/cli/test_run_writers.py",
    "tests/cli/test_score.py",
    "tests/conformance/test_decoders.py",
    "tests/conformance/test_models.py",
    "tests/conformance/test_models_2.py",
    "tests/contracts/test_batch_laws.py",
    "tests/decoding/test_constrain.py",
    "tests/decoding/test_growth.py",
    "tests/decoding/test_host_waits.py",
    "tests/decoding/test_rows.py",
    "tests/docs/test_commands.py",
    "tests/docs/test_docs.py",
    "tests/docs/test_notebooks.py",
    "tests/docs/test_paper.py",
    "tests/docs/test_tutorial.py",
    "tests/embedded/test_embedded.py",
    "tests/hostile/test_corruptions.py",
    "tests/hostile/test_languages.py",
    "tests/hostile/test_server_requests.py",
    "tests/hostile/test_server_siege.py",
    "tests/integrations/diffusers/test_scheduler.py",
    "tests/integrations/lm_eval/test_model.py",
    "tests/integrations/test_blocks.py",
    "tests/integrations/transformers/test_custom_generate.py",
    "tests/kernels/test_parity.py",
    "tests/lab/benchmarks/test_grading.py",
    "tests/lab/figures/test_plots.py",
    "tests/lab/ray/test_docs.py",
    "tests/lab/ray/test_refusals.py",
    "tests/lab/ray/test_sweeps.py",
    "tests/lab/report/test_report.py",
    "tests/lab/sandbox/test_sandbox.py",
    "tests/lab/sweep/test_run.py",
    "tests/lab/sweep/test_run_orphans.py",
    "tests/lab/test_compare.py",
    "tests/lab/test_own_rules.py",
    "tests/languages/test_schema.py",
    "tests/languages/test_valid.py",
    "tests/models/caches/test_policies.py",
    "tests/models/caches/test_policies_block.py",
    "tests/models/test_load.py",
    "tests/models/test_pretrained.py",
    "tests/models/test_small_families.py",
    "tests/models/test_transformer.py",
    "tests/models/test_transformers_model.py",
    "tests/models/wrappers/test_memoised.py",
    "tests/page/test_access.py",
    "tests/page/test_browser.py",
    "tests/page/test_compare.py",
    "tests/page/test_reader.py",
    "tests/rules/test_plugins.py",
    "tests/server/test_chat.py",
    "tests/server/test_liveness.py",
    "tests/server/test_playground.py",
    "tests/server/test_refusals.py",
    "tests/server/test_replicas.py",
    "tests/server/test_stream.py",
    "tests/studies/test_dependence.py",
    "tests/studies/test_likelihood.py",
    "tests/test_layers.py",
    "tests/trace/recording/test_replay.py",
    "tests/trace/recording/test_tracer.py",
    "tests/trace/test_figure.py",
    "tests/trace/test_figure_pipeline.py",
}

# What is missing and the command that adds it, by the reason of a skipped test.
INSTALL = (
    (re.compile(r"chromium"), "chromium", "sudo apt-get install chromium"),
    (re.compile(r"interpreter below /root"), "a Python outside /root", "make PYTHON=PATH test"),
    (re.compile(r"bwrap|bubblewrap"), "bubblewrap", "sudo apt-get install bubblewrap"),
    (re.compile(r"SGLang is not installed"), "sglang", "make test-engines"),
    (re.compile(r"there is no CUDA device"), "a CUDA device", ""),
    (
        re.compile(r"no C\+\+ compiler|it was not built"),
        "a C++ compiler",
        "sudo apt-get install g++",
    ),
    (re.compile(r"UNMASK_DATA"), "UNMASK_DATA", "set it to the folder of the benchmarks"),
    (re.compile(r"could not import '([\w.]+)'"), None, "make setup"),
    (re.compile(r"(\S+) is not installed"), None, "make setup"),
)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which tests were left out, what is missing, and the command that adds it."""
    left_out = defaultdict(Counter)
    for report in terminalreporter.stats.get("skipped", []):
        left_out[_missing(str(report.longrepr[2]))][report.nodeid.partition("::")[0]] += 1
    for (name, how), files in sorted(left_out.items()):
        why = f"{name} is missing" if name else "they do not apply to this machine"
        where = ", ".join(f"{file} {count}" for file, count in files.most_common(4))
        where += f" and {len(files) - 4} more files" * (len(files) > 4)
        add = f" To add them: {how}." if how else ""
        terminalreporter.write_line(f"{files.total()} tests left out: {why}.{add} ({where})")


def _missing(reason: str) -> tuple[str, str]:
    for pattern, name, how in INSTALL:
        if match := pattern.search(reason):
            return name or match[1], how
    return "", ""


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
