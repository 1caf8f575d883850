"""What docs/embedded.md says of the tables is what they show."""

from __future__ import annotations

import re
from typing import NamedTuple

from tests.paths import ROOT

PAGE = "\n".join(
    (ROOT / "docs" / name).read_text() for name in ("embedded.md", "embedded-tables.md")
)
PROSE = " ".join(PAGE.split())  # without line breaks
MEASURED = " ".join((ROOT / "docs" / "measured.md").read_text().split())
SEMANTICS = (ROOT / "docs" / "semantics.md").read_text()


class Figure(NamedTuple):
    """A cell of a table."""

    accuracy: float
    nfe: float
    bold: bool

    def beats(self, other: Figure) -> bool:
        """Whether it solves more with no more forwards, by the printed digits."""
        return self.accuracy > other.accuracy and self.nfe <= other.nfe


def rows_under(heading: str) -> dict[str, list[Figure]]:
    """The rows of the table whose head line, or the heading above it, starts so."""
    rows: dict[str, list[Figure]] = {}
    lines = iter(PAGE.splitlines())
    next(line for line in lines if line.startswith(heading))
    for line in lines:
        if figures := re.findall(r"(\d+\.\d) @ (\d+\.\d)([^|]*)", line):
            name = line.split("|")[1].strip()
            rows[name] = [
                Figure(float(acc), float(nfe), "**" in rest) for acc, nfe, rest in figures
            ]
        elif rows:
            break
    return rows


def test_the_gains_over_the_full_window_are_those_of_the_table():
    rows = rows_under("| Full window, EOS kept")
    gains = {name: row[1].accuracy - row[0].accuracy for name, row in rows.items()}
    assert (min(gains.values()), max(gains.values())) == (11.5, 23.0)
    assert "11.5 to 23 points at lam 1" in PROSE
    dearer = [name for name, row in rows.items() if not row[1].beats(row[0])]
    assert len(rows) == 9
    assert dearer == ["entropy, threshold"]
    assert "no more forwards in 8 of the 9 rows; entropy with a threshold needs 15.1" in PROSE
    assert "at lam 1 needs no more forwards in 8 of 9 settings" in MEASURED


def test_no_difference_with_eos_suppressed_is_bold():
    rows = rows_under("| Full window, EOS suppressed")
    assert not any(figure.bold for row in rows.values() for figure in row)
    assert "no difference is bold" in PROSE
    kept = rows_under("| Full window, EOS kept")
    as_many = {name for name, row in rows.items() if row[0].nfe >= kept[name][0].nfe}
    assert as_many == {name for name in rows if name.endswith("top-1")}
    assert "(top-1: as many)" in PROSE


def test_the_gains_in_blocks_are_those_of_the_table():
    rows = rows_under("| Blocks of 16, EOS kept")
    gains = {name: row[1].accuracy - row[0].accuracy for name, row in rows.items()}
    entropy = [gain for name, gain in gains.items() if name.startswith("entropy")]
    others = [gain for name, gain in gains.items() if not name.startswith("entropy")]
    assert (min(others), max(others), min(entropy), max(entropy)) == (3.0, 9.5, -2.5, -2.0)
    assert not any(row[1].bold for row in rows.values())
    assert "confidence and margin gain 3 to 9.5 points and entropy" in PROSE
    at_five = [r[2].accuracy - r[0].accuracy for n, r in rows.items() if n.startswith("entropy")]
    assert (min(at_five), max(at_five)) == (-16.0, -7.5)
    assert "At lam 5, entropy loses 7.5 to 16 points" in PROSE


def test_how_often_each_start_solves_more_with_no_more_forwards():
    rows = rows_under("## How SWD starts")
    tasks = [row for name, row in rows.items() if name.startswith(("words", "code"))]
    assert len(tasks) == 10
    better = [sum(row[start].beats(row[0]) for row in tasks) for start in (1, 2, 3)]
    assert better == [6, 2, 2]
    assert "no more forwards in 6 of 10 rows, `single` and `skip` in 2" in PROSE
    assert "with no more forwards in 6 of 10 settings, the other readings in 2" in SEMANTICS
