"""Compares rules on a task from Python, as `unmask sweep` and `unmask report` do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from unmask.errors import LabError
from unmask.lab.benchmarks import benchmark
from unmask.lab.grading import Tools
from unmask.lab.stats import LEVEL, holm, star_rule
from unmask.lab.summary import Comparison, Summary
from unmask.lab.sweep.grid import Setting, spelled_out
from unmask.lab.sweep.plan import work_of
from unmask.lab.sweep.run import check_graders, run, summaries
from unmask.lab.sweep.run_options import RunOptions, Silent
from unmask.text.session import Session

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class RuleComparison:
    """Rules on the same examples of one task, each against the first."""

    summaries: tuple[Summary, ...]

    def rows(self) -> list[dict[str, Any]]:
        """One row per rule: accuracy in percent, forward passes, and the difference to the first.

        Intervals cover 95%. The difference is paired: the same examples under both rules. `p` is
        McNemar's exact p, `p_holm` the same after Holm's correction for all rules but the first.
        """
        rows = [self._row(number, each) for number, each in enumerate(self.summaries)]
        for row, p in zip(rows[1:], holm([row["p"] for row in rows[1:]]), strict=True):
            row["p_holm"] = p
        return rows

    def _row(self, number: int, summary: Summary) -> dict[str, Any]:
        low, high = summary.interval()
        row = {
            "rule": summary.trial.rule,
            "n": summary.count,
            "accuracy": 100 * summary.accuracy(),
            "low": 100 * low,
            "high": 100 * high,
            "nfe": summary.mean("nfe"),
            "nfe_eos": summary.mean("nfe_eos"),
            "tokens_per_forward": summary.rates["effective"],
            "difference": None,
            "difference_low": None,
            "difference_high": None,
            "p": None,
            "p_holm": None,
        }
        if number:
            pair = Comparison(self.summaries[0], summary).accuracy()
            row |= {
                "difference": 100 * pair.difference,
                "difference_low": 100 * pair.interval.low,
                "difference_high": 100 * pair.interval.high,
                "p": pair.p,
            }
        return row

    def to_pandas(self) -> pandas.DataFrame:
        """The rows as a data frame. Needs pandas."""
        try:
            import pandas
        except ImportError:
            raise LabError("to_pandas needs pandas; pip install pandas, or use rows()") from None
        return pandas.DataFrame(self.rows())

    def _cells(self) -> list[tuple[str, ...]]:
        cells: list[tuple[str, ...]] = [
            ("rule", "n", "accuracy %", "forwards", "tokens/forward", "difference", "p")
        ]
        for row in self.rows():
            apart, p = "", ""
            if row["difference"] is not None:
                span = f"[{row['difference_low']:+.1f}, {row['difference_high']:+.1f}]"
                star = "*" if row["p_holm"] < LEVEL else ""
                apart, p = f"{row['difference']:+.1f}{star} {span}", f"{row['p']:.2g}"
            accuracy = f"{row['accuracy']:.1f} [{row['low']:.1f}, {row['high']:.1f}]"
            forwards, rate = f"{row['nfe']:.1f}", f"{row['tokens_per_forward']:.2f}"
            cells.append((row["rule"], str(row["n"]), accuracy, forwards, rate, apart, p))
        return cells

    def __str__(self) -> str:
        cells = self._cells()
        widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
        lines = (
            "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
            for row in cells
        )
        return "\n".join([*lines, *self._notes])

    @property
    def _notes(self) -> list[str]:
        """What a star means, if anything is compared."""
        count = len(self.summaries) - 1
        return [f"* {star_rule(count)}"] if count else []

    def _repr_html_(self) -> str:
        head, *body = self._cells()
        lines = ["".join(f"<th>{escape(text)}</th>" for text in head)]
        lines += ["".join(f"<td>{escape(text)}</td>" for text in row) for row in body]
        rows = "".join(f"<tr>{line}</tr>" for line in lines)
        trial = self.summaries[0].trial
        about = f"{trial.task}, {trial.length} tokens, {trial.window}, EOS {trial.eos}"
        caption = escape(". ".join([about, *self._notes]))
        return f"<table><caption>{caption}</caption>{rows}</table>"


def compare(
    rules: Sequence[str],
    task: str,
    model: Session | str | Path | None = None,
    *,
    limit: int | None = None,
    store: Path | str | None = None,
    data: Path | str | None = None,
    **options: Any,
) -> RuleComparison:
    """Decode and grade a task under several rules; the first is the baseline.

    Args:
        rules: rules, recipes, or rules with braces, which stand for several.
        task: the name of a task; `unmask tasks` lists them.
        model: a session, a checkpoint folder, a hub id, or None for the embedded model.
        limit: only the first examples (default: all).
        store: keep every finished example in this file, so that the same call goes on after an
            interruption (default: a temporary file).
        data: folder of the benchmarks' JSON lines.
        options: decoding options that all rules share, such as `length`, `block` or `eos`; the
            task's preset gives the others.
    """
    session = model if isinstance(model, Session) else Session(model)
    examples = benchmark(task).load(None if data is None else Path(data))
    texts = [rule for text in rules for rule in spelled_out(text)]
    if not texts:
        raise LabError("compare needs at least one rule")
    works = [
        work_of(
            Setting(session.name, task, session.changed({**options, "rule": rule}), limit=limit),
            session,
            examples,
        )
        for rule in dict.fromkeys(texts)
    ]
    works[0].request(works[0].asks[0])  # wrong options fail before anything is decoded
    with _file(store) as file, Tools.of([works[0].bench]) as tools:
        check_graders(works, tools)
        run(works, RunOptions(file, (str(session.device),)), tools, Silent())
        return RuleComparison(tuple(summaries(file, works)))


@contextmanager
def _file(store: Path | str | None) -> Iterator[Path]:
    if store is not None:
        yield Path(store)
        return
    with TemporaryDirectory() as folder:
        yield Path(folder) / "compare.sqlite"
