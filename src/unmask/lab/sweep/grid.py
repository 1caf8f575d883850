"""A sweep: values for every option, from the command line or from one TOML file."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unmask.decoding.options import OPTIONS, DecodingOptions, Option
from unmask.embedded import NAME
from unmask.errors import LabError, RequestError, UnknownName, require_whole
from unmask.rules.registry import kind_of, knobs_of, notation, show
from unmask.rules.rule import Rule
from unmask.rules.stability import Stability

SWEEPS = Path(__file__).parent / "files"
MOST_SETTINGS = 100_000  # of one grid
TEXTS = ("about", "table")
_TEXT, _COUNT = Option("text", "", ""), Option("whole", "", "", least=1)
# Every key but the texts takes a value or a list of values. The last varies fastest.
KEYS: dict[str, Option] = {
    "model": _TEXT,
    "task": _TEXT,
    "preset": _TEXT,
    "limit": _COUNT,
    "timed": Option("switch", "", ""),
    **{name: OPTIONS[name] for name in ("block", "eos", "cache", "length", "seed")},
    **OPTIONS,
}


@dataclass(frozen=True)
class Setting:
    """One point of a grid: options for one task and model."""

    model: str
    task: str
    options: DecodingOptions
    preset: str | None = None
    limit: int | None = None
    timed: bool = False  # whether the seconds matter, so that they are never another run's

    def __post_init__(self) -> None:
        if self.limit is not None:
            require_whole("limit", self.limit, 1)


@dataclass(frozen=True)
class Sweep:
    """Settings, and what they are for."""

    name: str
    settings: tuple[Setting, ...]
    about: str = ""
    table: str = ""


def spelled_out(text: str) -> list[str]:
    """All rules of a text with braces; swd(0) changes nothing, so it is left out.

    `recommended`, and a recipe that has a block or a length of its own, stay names, which
    `resolve` knows.
    """
    options = DecodingOptions(rule=text)
    if options.asks_for_the_recommended or options.defaults != DecodingOptions():
        return [text.strip()]
    rules = []
    for rule in Rule.expand(text):
        idle = [each for each in rule.modulators if isinstance(each, Stability) and not each.lam]
        rules.append(str(rule.without(idle[0]) if idle else rule))
    return rules


def along_knob(text: str) -> str:
    """A rule with the values to try of its selection's first knob in braces, if it declares any.

    The other knobs stay as they are.
    """
    rule = Rule.parse(text)
    kind, knobs = kind_of(rule.select), knobs_of(rule.select)
    if not kind.grid.startswith("{"):
        return str(rule)
    values = kind.grid[: kind.grid.index("}") + 1]
    others = [
        f"{argument.name}={show(knobs[argument.name])}"
        for argument in kind.arguments[1:]
        if knobs[argument.name] != argument.default
    ]
    selection = f"{kind.name}({', '.join([values, *others])})"
    return " | ".join(selection if part is rule.select else notation(part) for part in rule.parts)


def read_sweep(name: str, changes: Mapping[str, Any]) -> Sweep:
    """A file, or one of the sweeps in the package; `changes` replace what it says."""
    source = _source(name)
    try:
        text = source.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise LabError(f"{name} cannot be read: {error}") from None
    return sweep_of(_toml(text, name), Path(name).stem, changes, name)


def sweep_of(table: Mapping[str, Any], name: str, changes: Mapping[str, Any], file: str) -> Sweep:
    """Top-level values hold for every [[grid]]; a table without grids is one grid."""
    top = {key: value for key, value in table.items() if key != "grid"}
    grids = table.get("grid", [{}])
    if not isinstance(grids, list) or not all(isinstance(grid, dict) for grid in grids):
        raise LabError(f"{file}: write [[grid]] for each grid")
    settings = dict.fromkeys(
        setting for grid in grids for setting in settings_of({**top, **grid, **changes}, file)
    )
    return Sweep(name, tuple(settings), str(top.get("about", "")), str(top.get("table", "")))


def settings_of(table: Mapping[str, Any], file: str) -> Iterator[Setting]:
    """Every combination of the values of one grid, checked; rules with braces are expanded."""
    try:
        for key in table:
            if key not in (*KEYS, *TEXTS):
                raise UnknownName("key", key, (*KEYS, *TEXTS))
        lists = {key: _listed(key, table[key]) for key in KEYS if key in table}
    except (RequestError, UnknownName) as error:
        raise LabError(f"{file}: {error}") from None
    for name in ("task", "rule"):
        if not lists.get(name):
            raise LabError(f"a sweep needs a {name}; give --{name}, or {name} = ... in its file")
    rules = [rule for text in lists.pop("rule") for rule in spelled_out(text)]
    lists = {"model": [NAME], **lists}
    count = len(rules) * math.prod(map(len, lists.values()))
    if count > MOST_SETTINGS:
        raise LabError(f"{file}: the grid has {count} trials, more than {MOST_SETTINGS}; split it")
    for picked in itertools.product(*lists.values()):
        values = dict(zip(lists, picked, strict=True))
        own = {name: values.pop(name) for name in list(values) if name not in OPTIONS}
        for rule in rules:
            yield Setting(options=DecodingOptions(rule=rule, **values), **own)


def _listed(key: str, value: Any) -> list[Any]:
    values = value if isinstance(value, list) else [value]
    return [KEYS[key].check(key, each) for each in values]


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
        table: dict[str, Any] = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also numbers and lists beyond Python's limits
        raise LabError(f"{file} is not valid TOML: {error}") from None
    return table
