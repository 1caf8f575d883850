"""Fields and standings from invented outcomes."""

import pytest

from tests.lab.stores import summary
from unmask.lab.arena.contest import Arena, Field, best_of
from unmask.lab.arena.entries import Entry
from unmask.lab.arena.levers import Levers
from unmask.lab.arena.words import advice, best_of_task, opening
from unmask.lab.sweep.grid import spelled_out


def entry(name, text):
    return Entry(name, tuple(spelled_out(text)), text)


PLAIN, POOR = entry("eb", "entropy | eb({0.1,1})"), entry("top", "confidence | top({1,2})")
SWD = entry("swd", "confidence | swd(5) | eb({0.1,1})")


def trials(entry, slow, fast, **changes):
    """Two settings of an entry: outcomes at 16 and at 8 forwards."""
    pairs = zip(entry.settings, ((slow, 16), (fast, 8)), strict=True)
    return [
        summary(pattern, rule=rule, counters={"nfe": nfe}, **changes)
        for rule, (pattern, nfe) in pairs
    ]


def field(better="1" * 18 + "00", **changes):
    return Field.of(
        {
            PLAIN: trials(PLAIN, "1" * 8 + "0" * 12, "1" * 6 + "0" * 14, **changes),
            POOR: trials(POOR, "1" * 4 + "0" * 16, "0" * 20, **changes),
            SWD: trials(SWD, better, better, **changes),
        }
    )


def test_the_baseline_is_the_best_rule_without_memory():
    assert field().baseline.entry is PLAIN
    assert set(field().costs) == {"top", "swd"}


def test_a_rule_that_fills_all_at_once_and_is_mostly_wrong_is_not_the_best():
    rash = entry("rash", "margin | top({20,30})")
    fast = [
        summary("1" * 5 + "0" * 15, rule=rule, counters={"nfe": nfe})
        for rule, nfe in zip(rash.settings, (2, 1), strict=True)
    ]
    measured = {each.entry: each.curve.summaries for each in field().contestants}
    first, *_, last = Field.of({**measured, rash: fast}).contestants
    assert last.area.value > first.area.value
    assert best_of([first, last]).entry is PLAIN


def test_the_front_is_what_nothing_dominates():
    (best,) = field().front
    assert best.trial.rule.startswith("confidence | swd(5)")
    assert [field().on_front(each) for each in field().contestants] == [False, False, True]


def test_all_comparisons_of_all_fields_are_corrected_together():
    one = Arena((field(),))
    two = Arena((field(), field(eos="last")))
    assert len(one.holm) == 2
    assert len(two.holm) == 4
    key = (field().title, "swd")
    assert two.holm[key] > one.holm[key]
    assert two.tone(two.fields[0], "swd") == 1


def test_standings_count_fields_and_are_ordered_by_the_mean_difference():
    arena = Arena((field(), field("0" * 20, eos="last")))
    swd = next(each for each in arena.standings if each.entry is SWD)
    assert (swd.better, swd.worse, swd.fronts) == (1, 1, 1)
    differences = [each.difference for each in arena.standings]
    assert differences == sorted(differences, reverse=True)
    assert next(each for each in arena.standings if each.entry is PLAIN).difference == 0


def test_the_opening_says_who_is_on_every_front_and_who_on_none():
    arena = Arena((field(), field(eos="last")))
    text = "\n".join(opening(arena))
    assert text.startswith("3 rules in 6 settings, each in 2 fields")
    assert "On the front in every field: swd. On the front in no field: eb, top." in text
    assert "Of 2 fields, better than the best rule without memory" in text
    assert "with a star: swd in 2." in text
    assert text.endswith("with a star: top in 2.")


def test_the_front_of_a_task_spans_its_fields():
    fields = [field("0" * 20), field("1" * 20, eos="last")]
    ((best, name, title),) = best_of_task(fields)
    assert (best.accuracy(), name) == (1, "swd")
    assert title == "words, full window, EOS last"
    assert advice(fields).startswith("words: the best accuracy is 100.0% at 8.0 forwards, by swd")


def test_a_field_of_unequal_trials_is_refused():
    with pytest.raises(Exception, match="cannot form a curve"):
        Field.of({PLAIN: [summary("10"), summary("10", length=64)]})


def test_swd_and_an_eos_policy_are_weighed_against_rules_without_them():
    """SWD is better where EOS is kept; where EOS is last, eb solves all and SWD nothing."""
    kept, last = field(), field("0" * 20, eos="last")
    last = Field.of({
        each.entry: list(each.curve.summaries)
        if each.entry is not PLAIN
        else trials(PLAIN, "1" * 20, "1" * 20, eos="last")
        for each in last.contestants
    })  # fmt: skip
    levers = Levers.of(Arena((kept, last)))
    policy, same, swd = levers.sentences()
    assert policy.startswith("EOS last: use it for words (+65.0* [")
    assert same.startswith("EOS last, the same rule: ")
    assert swd.startswith("SWD: it depends on the field for words (-22.5* [")
    assert swd.endswith("; -100.0 in full window, EOS last to +55.0 in full window, EOS kept).")
    by_field = {lever.name: lever.contrasts for lever in levers.each}
    assert [round(100 * each.difference, 1) for each in by_field["SWD"]] == [55.0, -100.0]
    assert by_field["EOS last"][0].rules == "eb -> eb"
