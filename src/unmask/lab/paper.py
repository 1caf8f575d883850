"""The paper's published figures, with their rules in our notation."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

TASKS = ("humaneval", "mbpp", "gsm8k", "math500")
LENGTHS = {"humaneval": 256, "mbpp": 256, "gsm8k": 512, "math500": 512}
LLADA, DREAM = "llada-8b-instruct", "dream-7b-instruct"


@dataclass(frozen=True)
class Published:
    """One figure of one table."""

    table: str
    model: str
    task: str
    rule: str  # in the notation; at lam 0 without swd
    block: int | None
    accuracy: float  # percent
    nfe: float | None  # as printed
    length: int
    remark: str = ""

    @property
    def misprint(self) -> str:
        """Why the printed NFE cannot be right, or nothing."""
        if self.nfe in (None, self.length) or not self.rule.endswith("| top(1)"):
            return ""
        return (
            f"The printed NFE {self.nfe:g} is a misprint: one token per forward takes "
            f"{self.length} forwards."
        )

    @property
    def forwards(self) -> float | None:
        """The NFE, unless it is a misprint."""
        return None if self.misprint else self.nfe

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a reader of the figure must know."""
        return tuple(text for text in (self.remark, self.misprint) if text)


@cache
def published() -> tuple[Published, ...]:
    """All figures on the four benchmarks, table by table."""
    paper = _paper()
    figures: list[Published] = []
    for model, rows in paper["table1_full_eb"]["models"].items():
        figures += _figures("table1", model, None, rows)
    for table, key, model, block in (
        ("llada-lambda", "llada_full_lambda", LLADA, None),
        ("llada-threshold", "llada_full_threshold", LLADA, None),
        ("llada-top1", "llada_full_top1", LLADA, None),
        ("llada-block32", "llada_block32", LLADA, 32),
        ("dream-lambda", "dream_full_lambda", DREAM, None),
        ("dream-block32", "dream_block32", DREAM, 32),
    ):
        figures += _figures(table, model, block, paper[key]["rows"])
    history = paper["llada_history_aware"]
    figures += _figures("llada-history", LLADA, None, history["full"])
    figures += _figures("llada-history", LLADA, 32, history["block32"])
    figures += _efficiency_figures()
    figures += [Published(**each) for each in paper["remarks"]]
    return tuple(figures)


def efficiency() -> list[dict[str, Any]]:
    """The paper's efficiency table: LLaDA on HumanEval."""
    rows: list[dict[str, Any]] = _paper()["efficiency_llada_humaneval"]
    return rows


def printed_averages() -> dict[tuple[str, str, int | None], float]:
    """Averages that the paper prints wrongly, by model, rule and block."""
    return {
        (each["model"], each["rule"], each["block"]): each["average"]
        for each in _paper()["misprinted_averages"]
    }


def inconsistencies() -> list[str]:
    """Known contradictions between the paper's tables."""
    known: list[str] = _paper()["known_inconsistencies"]
    return known


def _figures(
    table: str, model: str, block: int | None, rows: list[dict[str, Any]]
) -> Iterator[Published]:
    for row in rows:
        for task in TASKS:
            figure = row[task]
            yield Published(
                table,
                model,
                task,
                rule_of(row),
                block,
                figure["acc"],
                figure.get("nfe"),
                LENGTHS[task],
            )


def _efficiency_figures() -> Iterator[Published]:
    for row in efficiency():
        rule = rule_of({**row, "lambda": 5 if row["strategy"] == "swd" else 0})
        yield Published(
            "efficiency", LLADA, "humaneval", rule, None, row["acc"], row["nfe"], row["length"]
        )


def rule_of(row: dict[str, Any]) -> str:
    """A row of a table in the notation."""
    method = row.get("method") or row["strategy"]
    lam = f"swd({row['lambda']:g}) | " if row["lambda"] else ""
    score = row.get("metric", "confidence")
    if method == "credit":
        return f"credit(0.65) | {score} | {lam}threshold(0.9)"
    selection = {
        "eb": "eb(0.1)",
        "swd": "eb(0.1)",
        "threshold": f"threshold({row.get('tau')})",
        "top1": "top(1)",
        "static": "top(1)",
        "klass": "klass(0.9)",
    }[method]
    return f"{score} | {lam}{selection}"


@cache
def _paper() -> dict[str, Any]:
    text = Path(__file__).with_name("paper.json").read_text(encoding="utf-8")
    content: dict[str, Any] = json.loads(text)
    return content
