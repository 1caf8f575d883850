"""Which position should EB's free slot take? Chosen on the calibration split, reported on the test.

Forms of `eb` (the free slot, with and without SWD, its bounded form among them) run along gamma on
the calibration split. The form that gains most on plain EB at equal forwards is then compared on
the test split with every other rule, and so is plain EB: `python -m bench.free_slot`. Finished
examples are stored.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from unmask.decoding.options import DecodingOptions
from unmask.embedded.tasks import TASKS, Split
from unmask.lab.arena.entries import Entry, Roster, roster
from unmask.lab.arena.run import Place, places_of, plan_arena
from unmask.lab.benchmarks import benchmark
from unmask.lab.benchmarks.embedded import embedded
from unmask.lab.equal_cost import EqualCost, RuleCurve, at_equal_cost
from unmask.lab.grading import Tools
from unmask.lab.stats import LEVEL, holm
from unmask.lab.sweep.grid import Setting
from unmask.lab.sweep.plan import Sessions, work_of
from unmask.lab.sweep.run import run, summaries
from unmask.lab.sweep.run_options import RunOptions, Silent
from unmask.rules.free_slot import Free

LENGTH, EOS = 32, "last"
GAMMAS = ("0.1", "0.3", "1")
STABILITY = ("", "swd(1) | ", "swd(1, form=bounded) | ")
Curves = dict[Place, dict[str, RuleCurve]]


def forms() -> list[Entry]:
    """Every free slot with every SWD, each along gamma; plain EB comes first."""
    made = []
    for free in get_args(Free):
        for swd in STABILITY:
            curve = f"entropy | {swd}eb(GAMMA, free={free})"
            settings = tuple(curve.replace("GAMMA", gamma) for gamma in GAMMAS)
            made.append(Entry(settings[0], settings, curve))
    return made


def measured(
    rules: Sequence[Entry], places: Sequence[Place], split: Split, count: int, folder: Path
) -> Curves:
    """The curve of every rule in every field, on the first problems of a split."""
    usual = Setting("embedded", "", DecodingOptions(length=LENGTH), None, count)
    plan, sessions = plan_arena(Roster(tuple(rules), {}), places, usual), Sessions()
    examples = {
        task: embedded(task, (task,), count, split).load(None) for task in {p[0] for p in places}
    }
    works = [work_of(each, sessions.of(each), examples[each.task]) for each in plan.all]
    folder.mkdir(parents=True, exist_ok=True)
    options = RunOptions(folder / f"{split}.sqlite", memo=True, batch_size=16)
    with Tools.of([benchmark(task) for task in examples], False) as tools:
        run(works, options, tools, Silent())
    results = iter(summaries(options.store, works))
    return {
        place: {
            entry.name: RuleCurve(entry.name, tuple(next(results) for _ in settings))
            for entry, settings in field.items()
        }
        for place, field in plan.settings.items()
    }


def gain(curves: Curves, name: str, base: str) -> float:
    """The mean difference to another rule at equal forwards, over all fields."""
    fields = curves.values()
    gains = [at_equal_cost(field[base], field[name]).difference for field in fields]
    return sum(gains) / len(gains)


def verdict(curves: Curves, own: str) -> tuple[dict[tuple[Place, str], EqualCost], list[float]]:
    """The chosen rule against every other one in every field, and Holm's p of all of them."""
    compared = {
        (place, name): at_equal_cost(curve, field[own])
        for place, field in curves.items()
        for name, curve in field.items()
        if name != own
    }
    return compared, holm([each.p for each in compared.values()])


def report(compared: dict[tuple[Place, str], EqualCost], ps: list[float], own: str) -> str:
    """How often the rule is better or worse with a star, where it beats all, and each star."""
    stars = {key: p < LEVEL for key, p in zip(compared, ps, strict=True)}
    better = [key for key, each in compared.items() if stars[key] and each.difference > 0]
    worse = [key for key, each in compared.items() if stars[key] and each.difference < 0]
    places = list(dict.fromkeys(place for place, _ in compared))
    best = [
        f"{place[0]} ({place[1]})"
        for place in places
        if all(key in better for key in compared if key[0] == place)
    ]
    lines = [
        f"{own}: {len(compared)} comparisons in {len(places)} fields.",
        f"Better with a star in {len(better)}, worse in {len(worse)}; better than every other rule "
        f"in: {', '.join(best) or 'no field'}.",
    ]
    for place, name in [*better, *worse]:
        each = compared[place, name]
        lines.append(
            f"  {100 * each.difference:+6.1f}  {place[0]}, {place[1]}: {name}, {each.first:.1%} -> "
            f"{each.second:.1%} at {each.low:.1f}-{each.high:.1f} forwards"
        )
    return "\n".join(lines)


def main(words: Sequence[str] | None = None) -> None:
    """Choose on the calibration split, report on the test split."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--calibration", type=int, default=50)
    parser.add_argument("--test", type=int, default=200)
    parser.add_argument("--only", default="", help="recipes to compare with (default: all)")
    parser.add_argument("--folder", type=Path, default=Path("build/free-slot"))
    given = parser.parse_args(words)
    places = places_of(given.tasks.split(","), ["full", 16], [EOS])
    known = measured(forms(), places, "calibration", given.calibration, given.folder)
    plain, *others = forms()
    ranked = sorted(others, key=lambda each: -gain(known, each.name, plain.name))
    print("On the calibration split, against plain EB at equal forwards:")
    for each in ranked:
        print(f"  {100 * gain(known, each.name, plain.name):+5.1f}  {each.name}")
    recipes = roster(LENGTH, (), [name for name in given.only.split(",") if name]).entries
    rivals = [each for each in recipes if each.name != "eb"]  # plain EB has the same gammas here
    tested = measured([ranked[0], plain, *rivals], places, "test", given.test, given.folder)
    for own in (ranked[0].name, plain.name):
        print(report(*verdict(tested, own), own))


if __name__ == "__main__":
    main()
