"""Conclusions in words follow from the numbers."""

import json

import pytest

from tests.lab.stores import summary
from unmask import Rule
from unmask.lab.dissect.conclusions import level_of, sentence, verdict
from unmask.lab.dissect.findings import Dissection, MeasuredVariant
from unmask.lab.dissect.pages import as_json, lines, write_pages
from unmask.lab.dissect.variants import modulator_of, take_apart
from unmask.lab.equal_cost import RuleCurve
from unmask.models.denoiser import ModelSpec

SPEC = ModelSpec(mask_id=0, vocab_size=9, eos_id=1, name="tiny")
COUNT = 200
# Problems that each variant solves, of the first of 200.
LIKE_WORDS = {
    "base": 140,
    "whole": 176,
    "ends": 184,
    "others": 143,
    "first": 142,
    "mean": 140,
    "shuffled": 150,
    "eos=last": 194,
    "eos=suppress": 160,
}


def dissection(counts, curve=None):
    """A dissection in which each variant solves this many of the first problems."""
    rule = Rule.parse("entropy | swd(5) | eb(0.1)")
    dissected = take_apart(rule, modulator_of(rule, None), SPEC, "keep")
    measured = []
    for place, variant in enumerate(dissected.variants):
        trials = [trial(variant, counts[variant.name], 10 + place)]
        trials += [trial(variant, more, nfe) for more, nfe in (curve or {}).get(variant.name, [])]
        measured.append(MeasuredVariant(variant, RuleCurve(variant.words, tuple(trials))))
    return Dissection(dissected, tuple(measured))


def trial(variant, count, nfe):
    pattern = "1" * count + "0" * (COUNT - count)
    return summary(pattern, counters={"nfe": nfe}, rule=str(variant.rule))


def test_a_gain_of_end_tokens_is_named_as_such():
    words = dissection(LIKE_WORDS)
    assert level_of(words, "ends") == "most"
    assert sentence(words, "ends") == (
        "swd on end tokens only: most of the gain, +22.0 of +18.0 points. It solves more than the "
        "whole rule: +4.0. Most of the gain is the handling of end tokens."
    )
    assert sentence(words, "others") == (
        "swd on all other tokens only: no gain is shown, +1.5 of +18.0 points. It solves less than "
        "the whole rule: -16.5. Without end tokens no gain is left."
    )
    assert sentence(words, "eos=last") == (
        "without swd, EOS last: most of the gain, +27.0 of +18.0 points. It solves more than the "
        "whole rule: +9.0. The policy does the work of swd."
    )
    assert sentence(words, "eos=suppress").startswith("without swd, EOS suppress: most of the gain")
    assert sentence(words, "shuffled").startswith(
        "swd with another position's D: some of the gain, +5.0 of +18.0 points."
    )


def test_the_verdict_names_the_parts_the_signal_and_the_best_policy():
    text = verdict(dissection(LIKE_WORDS))
    assert text.startswith("swd gains +18.0 points [")
    assert "Most of it is there with swd on end tokens only (+22.0)." in text
    assert "The signal matters: with another position's D the rule solves 13.0 points less." in text
    assert text.endswith("EOS last without swd gains +27.0 at 17.0 forwards.")


def test_a_signal_that_another_position_can_give_is_not_what_helps():
    text = verdict(dissection({**LIKE_WORDS, "shuffled": 176}))
    assert "The signal is not what helps" in text
    behind = verdict(dissection({**LIKE_WORDS, "shuffled": 172}))  # shown neither way
    assert "Whether it matters whose D a position gets is not shown." in behind


def test_a_gain_that_is_not_shown_is_not_taken_apart():
    level = dict.fromkeys(LIKE_WORDS, 140)
    assert verdict(dissection({**level, "whole": 142})).startswith("No gain of swd is shown: +1.0")
    assert sentence(dissection(level), "ends") == (
        "swd on end tokens only: no gain is shown, +0.0 points."
    )
    lost = dissection({**level, "whole": 100})
    assert verdict(lost).startswith("A loss of swd is shown: -20.0")


def test_holm_counts_every_comparison_once():
    words = dissection(LIKE_WORDS)
    assert len(words.differences) == 1 + 2 * 7
    smallest = min(each.measured.p for each in words.differences.values())
    assert min(each.p_holm for each in words.differences.values()) == pytest.approx(15 * smallest)


def test_along_a_curve_variants_are_compared_at_equal_forwards():
    curve = {name: [(LIKE_WORDS[name] + 6, 40)] for name in LIKE_WORDS}
    words = dissection(LIKE_WORDS, curve)
    assert words.at_equal_forwards
    ends = words.differences["whole", "ends"].measured
    assert (ends.low, ends.high) == (12, 40)
    assert ends.difference < (184 - 176) / COUNT  # the whole rule is further along its curve
    text = "\n".join(lines(words))
    assert "at equal forwards" in text
    assert "the p of a sign-flip test is below 0.05" in text


def test_the_page_holds_the_verdict_the_table_and_the_plot(tmp_path):
    words = dissection(LIKE_WORDS)
    files = {file.name: file for file in write_pages(words, tmp_path / "out")}
    assert set(files) == {
        "variants.svg", "variants.png", "dissect.md", "dissect.json", "dissect.html",
    }  # fmt: skip
    page, text = (files[name].read_text() for name in ("dissect.html", "dissect.md"))
    assert verdict(words).partition(", p")[2][6:] in text  # without the p, which is escaped
    assert "<svg" in page
    assert "swd on end tokens only" in page
    record = json.loads(as_json(words))
    assert record["verdict"] == verdict(words)
    assert record["differences"]["ends - base"]["difference"] == pytest.approx(0.22)
    assert [each["name"] for each in record["variants"]] == list(LIKE_WORDS)
