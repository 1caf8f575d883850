"""How to run a golden decoder case on this build."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from unmask.conformance.report import Report, Status
from unmask.decoding.options import Eos
from unmask.decoding.request import Settings
from unmask.errors import UnmaskError
from unmask.rules.rule import Rule

EOS, MASK = 59, 60  # of the toy denoisers


class CaseConfig(dict[str, Any]):
    """The config of a golden case, which knows the keys that its plan has read."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        super().__init__(values)
        self._read: set[str] = set()
        self._parts: dict[str, CaseConfig] = {}

    def __getitem__(self, key: str) -> Any:
        if key not in self:
            raise NotOffered(f"its config has no {key!r}")
        self._read.add(key)
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        self._read.add(key)
        return super().get(key, default)

    def part(self, key: str) -> CaseConfig:
        """The config at this key, which has keys of its own."""
        self._parts[key] = CaseConfig(self[key])
        return self._parts[key]

    def word(self, key: str, known: Mapping[str, str]) -> str:
        """What the word at this key stands for here."""
        if self[key] not in known:
            raise NotOffered(f"{key} {self[key]!r} is not known; known: {', '.join(known)}")
        return known[self[key]]

    def ignore(self, *keys: str) -> None:
        """Count keys as read that change nothing in this case."""
        self._read.update(keys)

    def unread(self) -> tuple[str, ...]:
        """The keys that the plan did not read, and whose value does not switch them off."""
        own = [key for key, value in self.items() if value and key not in self._read]
        inside = [f"{key}.{name}" for key, part in self._parts.items() for name in part.unread()]
        return (*own, *inside)


class Skipped(Exception):  # noqa: N818
    """A case that this build does not run, with its reason."""

    status: Status


class NotOffered(Skipped):
    """A decoder that this build does not have."""

    status = "not offered"


class KnownDifference(Skipped):
    """A case that records an upstream defect, or the order of upstream's random numbers."""

    status = "known difference"


@contextmanager
def reported(report: Report, name: str) -> Iterator[None]:
    """Turn what a case raises into its outcome, so that the other cases still run."""
    try:
        yield
    except Skipped as reason:
        report.add(name, reason.status, str(reason))
    except UnmaskError as error:
        report.add(name, "failed", f"{type(error).__name__}: {error}")
    except KeyError as key:
        report.add(name, "failed", f"the case has no {key}")


@dataclass(frozen=True)
class CasePlan:
    """The settings and the model of a golden case."""

    settings: Settings
    shift: bool = False
    guidance: float = 0.0
    length: int | None = None  # of the answer, unless the case says it
    stop_ids: tuple[int, ...] = (EOS,)
    seed: int = 0
    constraints: tuple[tuple[int, int], ...] = ()  # positions of the answer that are given
    forwards: Literal["useful", "all", "writing"] = "useful"  # which of upstream's to compare
    own_end: bool = False  # upstream's rows wait for each other: compare up to the row's own end
    unread: tuple[str, ...] = ()  # keys of the config that might matter


Make = Callable[[CaseConfig, Path], CasePlan]


def toy_end(config: CaseConfig) -> int | None:
    """The end token of a case, which is the toy denoisers' or None."""
    if config["eos_id"] not in (None, EOS):
        raise NotOffered(f"eos_id {config['eos_id']} is not the toy denoisers' {EOS}")
    return EOS if config["eos_id"] is not None else None


def settings_of(config: CaseConfig, rule: str | Rule, eos: Eos = "keep") -> Settings:
    """The settings of a case with this rule."""
    parsed = Rule.parse(rule) if isinstance(rule, str) else rule
    # Upstream leaves the mask token in the softmax, so the comparison does too.
    block = block_of(config.get("block_length"), config["gen_length"])
    return Settings(parsed, block, eos, allow_mask=True)


def block_of(block: int | None, length: int) -> int | None:
    """The block of a case; None if it is the whole answer."""
    return None if block is None or block >= length else block
