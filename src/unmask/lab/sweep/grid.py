"""A sweep: lists of values for every setting, from the command line or one TOML file."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_args

from unmask.decoding.options import Eos
from unmask.errors import LabError, UnknownName
from unmask.models.caches import POLICIES
from unmask.rules.rule import Rule
from unmask.rules.stability import Stability

LISTS = ("model", "task", "rule", "block", "length", "eos", "cache", "seed")
SINGLE = ("preset", "limit", "dtype", "temperature", "top_p", "steps")
TEXTS = ("about", "table")
CACHES = ("none", *POLICIES)
SWEEPS = Path(__file__).parent / "files"
OWN = None  # a setting that is left to the task's preset


@dataclass(frozen=True)
class Setting:
    """One point of a grid; None leaves a value to the task's preset."""

    model: str
    task: str
    rule: str
    block: int | str | None  # "full", a number, or the preset's
    length: int | None
    eos: str | None
    cache: str
    seed: int
    preset: str | None = None
    limit: int | None = None
    dtype: str | None = None
    temperature: float | None = None
    top_p: float | None = None
    steps: int | None = None


@dataclass(frozen=True)
class Sweep:
    """Grids of settings, and what they are for."""

    name: str
    settings: tuple[Setting, ...]
    about: str = ""
    table: str = ""


@dataclass(frozen=True)
class Grid:
    """Values for each setting; all combinations are run."""

    values: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    single: Mapping[str, Any] = field(default_factory=dict)

    def settings(self) -> Iterator[Setting]:
        """Every combination, rules spelled out."""
        usual = {"block": (OWN,), "length": (OWN,), "eos": (OWN,), "cache": ("none",), "seed": (0,)}
        values = {"model": ("embedded",), **usual, **self.values}
        for name in ("task", "rule"):
            if not values.get(name):
                raise LabError(
                    f"a sweep needs a {name}; give --{name}, or {name} = ... in its file"
                )
        rules = [rule for text in values["rule"] for rule in spelled_out(text)]
        names = ("model", "task", "block", "eos", "cache", "length", "seed")
        for picked in itertools.product(*(values[name] for name in names)):
            for rule in rules:
                yield Setting(rule=rule, **dict(zip(names, picked, strict=True)), **self.single)


def spelled_out(text: str) -> list[str]:
    """All rules of a text with braces; swd(0) changes nothing, so it is left out."""
    found = []
    for rule in Rule.expand(text):
        parts = [part for part in rule.parts if not (isinstance(part, Stability) and part.lam == 0)]
        found.append(str(Rule.of(parts)))
    return found


def read_sweep(name: str, changes: Mapping[str, Any]) -> Sweep:
    """A file, or one of the sweeps in the package; `changes` replace what it says."""
    source = _source(name)
    try:
        text = source.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise LabError(f"{name} cannot be read: {error}") from None
    return sweep_of(_toml(text, name), Path(name).stem, changes, name)


def sweep_of(found: Mapping[str, Any], name: str, changes: Mapping[str, Any], file: str) -> Sweep:
    """Top-level values hold for every [[grid]]; without one they are the grid."""
    top = {key: value for key, value in found.items() if key != "grid"}
    grids = found.get("grid", [{}])
    if not isinstance(grids, list) or not all(isinstance(grid, dict) for grid in grids):
        raise LabError(f"{file}: write [[grid]] for each grid")
    settings: dict[Setting, None] = {}
    for grid in grids:
        table = {**top, **grid, **changes}
        for setting in grid_of(table, file).settings():
            settings.setdefault(setting)
    return Sweep(name, tuple(settings), str(top.get("about", "")), str(top.get("table", "")))


def grid_of(table: Mapping[str, Any], file: str) -> Grid:
    """Checked values; a single one stands for a list of one."""
    known = (*LISTS, *SINGLE, *TEXTS)
    for key in table:
        if key not in known:
            near = get_close_matches(key, known, n=1, cutoff=0.5)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise LabError(f"{file}: unknown key {key!r}{hint} (known: {', '.join(known)})")
    values = {
        key: tuple(value) if isinstance(value := table[key], list) else (value,)
        for key in LISTS
        if key in table
    }
    for key, listed in values.items():
        for value in listed:
            _check(key, value, file)
    single = {key: table[key] for key in SINGLE if key in table}
    for key, value in single.items():
        _check(key, value, file)
    return Grid(values, single)


def named_sweeps() -> dict[str, str]:
    """The sweeps in the package and what they are for."""
    return {
        file.stem: str(_toml(file.read_text(encoding="utf-8"), file.name)["about"])
        for file in sorted(SWEEPS.glob("*.toml"))
    }


def _source(name: str) -> Path:
    if name.endswith(".toml"):
        return Path(name)
    if name not in named_sweeps():
        raise UnknownName("sweep", name, [*named_sweeps(), "FILE.toml"])
    return SWEEPS / f"{name}.toml"


def _toml(text: str, file: str) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        found: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise LabError(f"{file} is no TOML: {error}") from None
    return found


_WHOLE = {"length": 1, "seed": 0, "limit": 1, "steps": 1}  # and the least of each
_NUMBERS = {"temperature": (0.0, float("inf")), "top_p": (0.0, 1.0)}
_CHOICES = {
    "eos": get_args(Eos),
    "cache": CACHES,
    "dtype": ("float32", "bfloat16", "float16"),
}


def _check(key: str, value: Any, file: str) -> None:
    """Raise unless a value is of the kind that its key takes."""
    allowed = ""
    whole = isinstance(value, int) and not isinstance(value, bool)
    if key == "block":
        if value != "full" and not (whole and value >= 1):
            allowed = "'full' or a whole number >= 1"
    elif key in _WHOLE:
        if not (whole and value >= _WHOLE[key]):
            allowed = f"a whole number >= {_WHOLE[key]}"
    elif key in _NUMBERS:
        low, high = _NUMBERS[key]
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not (number and low <= value <= high):
            allowed = f"a number from {low:g} to {high:g}"
    elif key in _CHOICES:
        if value not in _CHOICES[key]:
            allowed = f"one of {', '.join(_CHOICES[key])}"
    elif not isinstance(value, str) or not value:
        allowed = "a text"
    if allowed:
        raise LabError(f"{file}: {key} must be {allowed}, got {value!r}")
