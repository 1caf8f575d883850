"""What is installed: the wheel out of the sdist, with and without a compiler, and nothing else."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from email import message_from_bytes
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

import unmask
from bench import install
from bench.measure import table
from tests.paths import ROOT
from unmask.cli import COMMANDS
from unmask.kernels import build

pytest.importorskip("hatchling", reason="hatchling is not installed")

PACKAGE = ROOT / "src" / "unmask"
CORE = {"jinja2", "numpy", "safetensors", "tokenizers", "torch"}
APART = ("unmask.integrations", "unmask.server")  # packages that need an extra to be imported
LIBRARY = "unmask/kernels/_reduce.so"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Built and installed without the network: dependencies are lent by this interpreter.

    The compiler does not optimise, and pip compiles no Python: both take seconds.
    """
    folder = tmp_path_factory.mktemp("install")
    with pytest.MonkeyPatch.context() as patch:
        if path := build.compiler():
            quick = tmp_path_factory.mktemp("compiler") / "quick"
            quick.write_text(f'#!/bin/sh\nexec "{path}" "$@" -O0\n')
            quick.chmod(0o700)
            patch.setenv("CXX", str(quick))
        patch.setenv("PIP_NO_COMPILE", "1")
        return install.Installed.in_folder(folder, lent=True)


@pytest.fixture(scope="module")
def metadata(made):
    with zipfile.ZipFile(made.wheel) as wheel:
        name = next(name for name in wheel.namelist() if name.endswith("/METADATA"))
        return message_from_bytes(wheel.read(name))


def files_of(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def extras_of(metadata):
    """Of each extra but dev, the packages that it brings."""
    required = {}
    for line in metadata.get_all("Requires-Dist"):
        if match := re.search(r"^([\w.-]+).*extra == '([\w-]+)'", line):
            required.setdefault(match[2], set()).add(match[1])
    return {extra: names for extra, names in required.items() if extra != "dev"}


def test_the_wheel_holds_the_package_and_nothing_else(made):
    info = f"unmask-{unmask.__version__}.dist-info/"
    sources = {
        str(Path("unmask") / file.relative_to(PACKAGE))
        for file in PACKAGE.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts and file.suffix != ".so"
    }
    native = {LIBRARY} if build.compiler() else set()
    for wheel, more in ((made.wheel, native), (made.pure, set())):
        names = set(files_of(wheel))
        package = {name for name in names if not name.startswith(info)}
        assert package == sources | more
        assert {"unmask/py.typed", "unmask/embedded/model/model.safetensors"} <= package
        assert {f"{info}METADATA", f"{info}entry_points.txt", f"{info}licenses/LICENSE"} <= names


def test_no_path_of_the_machine_that_built_it_is_in_the_wheel(made):
    paths = {str(ROOT), str(made.tree), sys.prefix}
    for name, content in files_of(made.wheel).items():
        within = paths | ({tempfile.gettempdir()} if name == LIBRARY else set())
        assert not [path for path in within if path.encode() in content], name


def test_without_a_compiler_the_sdist_still_makes_a_wheel(made):
    assert made.pure.name == f"unmask-{unmask.__version__}-py3-none-any.whl"
    if build.compiler():
        assert "-py3-none-" in made.wheel.name
        assert not made.wheel.name.endswith("-any.whl")


def test_the_sdist_has_what_building_and_testing_need(made):
    with tarfile.open(made.sdist) as archive:
        top, *names = (Path(name) for name in archive.getnames())
    names = {str(name.relative_to(name.parts[0])) for name in (top, *names)}
    needed = {"pyproject.toml", "hatch_build.py", "constraints.txt", "Makefile", "README.md",
              "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md", "docs/install.md", "tools/pages.py",
              "bench/install.py", "train/__main__.py", "tests/conftest.py", "tests/test_install.py",
              "tests/golden/decoders/units.json", "src/unmask/kernels/rows.h"}  # fmt: skip
    assert needed <= names
    parts = {part for name in names for part in Path(name).parts}
    caches = {"__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis",
              ".schemathesis", ".venv", "dist", "_reduce.so"}  # fmt: skip
    assert not caches & parts


def test_the_version_is_said_once_and_told_everywhere(made, metadata):
    assert metadata["Version"] == unmask.__version__
    assert unmask.__version__ not in (ROOT / "pyproject.toml").read_text()
    assert made.fresh.python("-m", "unmask", "--version") == f"unmask {unmask.__version__}"
    script = made.fresh.program.with_name("unmask")
    told = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
    assert told.stdout == f"unmask {unmask.__version__}\n"
    assert f"\n## {unmask.__version__} (" in (ROOT / "CHANGELOG.md").read_text()


def test_the_metadata_says_what_it_is_and_what_it_needs(metadata):
    plain = [line for line in metadata.get_all("Requires-Dist") if "extra ==" not in line]
    assert {re.match(r"[\w-]+", line)[0] for line in plain} == CORE
    page = (ROOT / "docs" / "install.md").read_text()
    extras = metadata.get_all("Provides-Extra")
    assert {"dev", "lab", "lm-eval", "ray", "serve", "sglang", "transformers"} <= set(extras)
    assert [extra for extra in extras if f"| `{extra}` |" not in page] == []
    assert (metadata["License-Expression"], metadata["License-File"]) == ("Apache-2.0", "LICENSE")
    assert metadata["Requires-Python"] == ">=3.10"
    assert "Typing :: Typed" in metadata.get_all("Classifier")
    assert metadata["Summary"]
    assert metadata["Description-Content-Type"] == "text/markdown"


ASK = f"""
from pathlib import Path
from unmask import kernels
from unmask.cli import main
assert main(["run", {install.PROMPT!r}, "--json"]) == 0
Path("kernel").write_text(kernels.backend())
"""


def test_a_fresh_environment_answers_and_every_figure_of_the_bench_is_there(made, monkeypatch):
    monkeypatch.setattr(install, "ASK", ("-c", ASK))
    rows = install.measured(made, install.Size(rounds=1, lent=True, processes=("import unmask",)))
    kernels = [each.program.with_name("kernel").read_text() for each in (made.fresh, made.plain)]
    assert kernels == ["native" if build.compiler() else "torch", "torch"]
    assert len(table(install.BENCH.columns, rows)) == len(rows) + 1
    for row in rows:
        assert ("megabytes" in row) != ("seconds" in row)
        assert row.get("megabytes", row.get("seconds")) > 0
    assert f"python -m {install.__name__}" in install.__doc__


BLOCKED = """
import importlib, pkgutil, sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(f"{{name}} is not installed", name=name)

sys.meta_path.insert(0, Blocker())
"""
IMPORTS = """
import unmask
failed = {}
for module in pkgutil.walk_packages(unmask.__path__, "unmask.", onerror=lambda name: None):
    if not module.name.endswith((".__main__", "._reduce")):
        try:
            importlib.import_module(module.name)
        except (ImportError, unmask.UnmaskError) as error:
            failed[module.name] = str(error)
print(failed)
"""
COMMANDS_IN_TURN = f"""
from unmask.cli import main, parser
assert main(["run", {install.PROMPT!r}]) == 0
print("---")
assert main(["eval", "--task", "copy", "--limit", "1"]) == 0
print("---")
print(parser().format_help())
print("---")
"""


@pytest.fixture(scope="module")
def without_extras(metadata, tmp_path_factory):
    """What the commands print, and which modules fail, where no package of any extra is."""
    names = {
        name.lower().replace("_", "-") for each in extras_of(metadata).values() for name in each
    }
    blocked = {
        module
        for module, packages in packages_distributions().items()
        if names & {package.lower().replace("_", "-") for package in packages}
    } | {"lm_eval", "ray", "sglang", "diffusers", "vllm"}

    assert {"fastapi", "matplotlib", "math_verify", "rich", "transformers"} <= blocked
    program = BLOCKED.format(blocked=blocked) + COMMANDS_IN_TURN + IMPORTS
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=tmp_path_factory.mktemp("without-extras"),
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split("---\n")


def test_all_but_what_an_extra_is_for_imports_without_any_extra(without_extras):
    failed = ast.literal_eval(without_extras[-1])
    assert {name for name in failed if not name.startswith(APART)} == set(), failed
    assert set(failed) >= {"unmask.server.app"}  # so the others are really blocked


def test_the_core_decodes_grades_and_has_all_help_without_any_extra(without_extras):
    answer, table, help_text, _ = without_extras
    assert answer.strip()
    assert "copy" in table
    assert [name for name in COMMANDS if name not in help_text] == []


SCRIPT = """\
import unmask

model, tokenizer = unmask.load()
rule: unmask.Rule = unmask.Rule.parse("confidence | swd(5) | eb(0.1)")
ids: list[int] = tokenizer.encode("Ann has 12 pens. She buys 3. How many now?")
result: unmask.Result = unmask.decode(model, ids, rule, length=24, block=8, eos="stop")
text: str = tokenizer.decode(result.ids, skip_special=True)
settings = unmask.Settings(rule, sampling=unmask.Sampling(temperature=0.5))
for step in unmask.decode_steps(model, [unmask.prompt_request(model.spec, ids, 8, settings)]):
    print(len(step.finished), result.nfe, text)
"""
WRONG = """\
import unmask

nfe: str = unmask.decode(unmask.load().model, [1], eos="sometimes").nfe
"""


def test_a_users_script_passes_strict_types_against_what_is_installed(made, tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "wrong.py").write_text(WRONG)
    # others' packages are not read: nothing is asked of their types, and they take many seconds
    unread = ",".join(f"{name}.*" for name in (*sorted(CORE), "IPython", "matplotlib", "PIL"))
    (tmp_path / "mypy.ini").write_text(
        f"[mypy]\n[mypy-{unread}]\nfollow_imports = skip\nfollow_imports_for_stubs = true\n"
    )
    keep = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "MYPYPATH")}
    where = ("--python-executable", str(made.fresh.program), "--cache-dir", os.devnull)

    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", *where, "script.py", "wrong.py"],
        cwd=tmp_path,
        env=keep,
        capture_output=True,
        text=True,
    )
    *errors, last = done.stdout.splitlines()
    assert last.endswith("in 1 file (checked 2 source files)")
    assert not [line for line in errors if not line.startswith("wrong.py")]
    assert 'Argument "eos" to "decode" has incompatible type' in done.stdout
    assert 'has type "int", variable has type "str"' in done.stdout
