"""The layout: imports point one way, class names are unique, and functions stay small."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.paths import ROOT

PACKAGE = ROOT / "src" / "unmask"
# From the bottom to the top: a module may import modules of its own layer and of those above it
# in this list.
LAYERS = (
    ("errors",),
    (
        "models.denoiser",
        "models.words",
        "models.template_args",
        "models.recommended",
        "models.untrusted",
    ),
    ("rules",),
    ("kernels",),
    ("languages",),
    ("decoding",),
    ("embedded",),
    ("models",),
    ("trace",),
    ("page",),
    ("text",),
    ("studies", "conformance"),
    ("lab",),
    ("server", "integrations", "doctor"),
    ("cli", "__main__", ""),
)
# Packages that belong to a host: only its integration imports them, and the modules that wrap a
# model of transformers.
HOSTS = {
    "lm_eval": ("integrations.lm_eval",),
    "diffusers": ("integrations.diffusers",),
    "sglang": ("integrations.sglang",),
    "vllm": ("integrations.vllm",),
    "transformers": (
        "integrations.transformers",
        "integrations.diffusers",
        "models.via_transformers",
        "models.transformers_model",
        "models.rotary",
    ),
    "ray": ("lab.ray", "server.replicas"),
    "fastapi": ("server",),
    "pydantic": ("server",),
}
# Public functions whose parameters are their options.
PUBLIC = {
    "decoding.api.decode", "decoding.api.decode_many", "decoding.api.infill",
    "lab.compare.compare", "models.load.load", "models.transformers_model.wrap",
}  # fmt: skip
# Signatures that a host fixes: methods that diffusers calls, and a Triton kernel, whose arguments
# are tensors and numbers one by one.
HOSTED = {
    "integrations.diffusers.scheduler.__init__", "integrations.diffusers.scheduler.step",
    "integrations.diffusers.scheduler.check_block_should_continue",
    "kernels.cuda._reduce_part",
}  # fmt: skip


@cache
def trees() -> dict[str, ast.Module]:
    """Every module of the package by its name without `unmask.`."""
    return {_name(path): ast.parse(path.read_text()) for path in PACKAGE.rglob("*.py")}


@cache
def nodes_of(module: str) -> tuple[ast.AST, ...]:
    """All nodes of a module but those that stand under `if TYPE_CHECKING`."""
    every = list(ast.walk(trees()[module]))
    skipped = _for_types(every)
    return tuple(node for node in every if node not in skipped)


def _name(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _for_types(nodes: list[ast.AST]) -> set[ast.AST]:
    """What stands under `if TYPE_CHECKING`."""
    blocks = (node for node in nodes if isinstance(node, ast.If) and _asks_for_types(node.test))
    return {inner for block in blocks for inner in ast.walk(block)}


def _asks_for_types(test: ast.expr) -> bool:
    names = (getattr(node, "id", getattr(node, "attr", "")) for node in ast.walk(test))
    return "TYPE_CHECKING" in names


def _imports(nodes: Iterable[ast.AST]) -> set[str]:
    names = set()
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names


def _ours(name: str) -> str | None:
    """The module of ours that an import names."""
    if name.partition(".")[0] != "unmask":
        return None
    inner = name.partition(".")[2]
    while inner and inner not in trees():
        inner = inner.rpartition(".")[0]
    return inner


def imported(module: str, only_at_import: bool = False) -> set[str]:
    """Modules of ours that a module imports, at once or in its functions; not those for types."""
    nodes = nodes_of(module)
    if only_at_import:
        top = set(ast.iter_child_nodes(trees()[module]))
        nodes = tuple(node for node in nodes if node in top)
    names = _imports(nodes)
    return {ours for name in names if (ours := _ours(name)) is not None} - {module}


@cache
def layer_of(module: str) -> int:
    """The number of the layer whose name begins the module's, the longest such name."""
    best = max(
        (name for names in LAYERS for name in names if module == name or
         (name and module.startswith(f"{name}."))),
        key=len,
        default=None,
    )  # fmt: skip
    assert best is not None, f"{module} is in no layer; add its folder to LAYERS"
    return next(number for number, names in enumerate(LAYERS) if best in names)


def test_imports_point_one_way():
    upward = [
        f"{module} imports {other}"
        for module in trees()
        if module  # the package itself names everything, lazily
        for other in imported(module)
        if other and layer_of(other) > layer_of(module)
    ]
    assert not upward, "\n".join(upward)


def test_no_modules_import_each_other():
    graph = {module: imported(module, only_at_import=True) for module in trees() if module}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"a cycle of imports: {' <- '.join(error.args[1])}")


def test_a_host_is_imported_by_its_integration_only():
    wrong = []
    for module in trees():
        for name in _imports(nodes_of(module)):
            homes = HOSTS.get(name.partition(".")[0])
            if homes is not None and not module.startswith(homes):
                wrong.append(f"{module} imports {name}")
    assert not wrong, "\n".join(wrong)


def test_public_class_names_are_unique():
    homes = defaultdict(list)
    for module in trees():
        for node in nodes_of(module):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(module)
    twice = {name: modules for name, modules in homes.items() if len(modules) > 1}
    assert not twice


def test_functions_take_at_most_six_parameters():
    wide = set()
    for module in trees():
        for node in nodes_of(module):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                names = [a.arg for a in (*node.args.posonlyargs, *node.args.args)]
                own = [name for name in names if name not in ("self", "cls")]
                if len(own) + len(node.args.kwonlyargs) > 6:
                    wide.add(f"{module}.{node.name}")
    assert wide == PUBLIC | HOSTED


def test_the_top_level_holds_folders():
    assert len(list(PACKAGE.glob("*.py"))) <= 8


def test_files_stay_under_400_lines():
    folders = ("src", "tests", "bench", "tools", "train", "examples")
    long = {
        str(path.relative_to(ROOT)): count
        for folder in folders
        for path in (ROOT / folder).rglob("*.py")
        if (count := len(path.read_text().splitlines())) > 400
    }
    assert not long
