"""Parts around a modulator: where it acts, and which signal it reads."""

from dataclasses import replace

import pytest
import torch

import unmask
from tests.helpers import random_scores, random_view
from unmask import Rule, RuleError
from unmask.lab.sweep.grid import spelled_out
from unmask.rules.registry import TABLE

SEEDS = range(8)


def modulated(text, view, scores):
    """The scores after the modulators of a rule."""
    for modulation in Rule.parse(f"confidence | {text} | eb(0.1)").modulations:
        scores = modulation.apply(view, scores)
    return scores


@pytest.mark.parametrize(("where", "flip"), [("ends", False), ("others", True)])
def test_only_keeps_the_modulator_there_and_the_score_elsewhere(where, flip):
    for seed in SEEDS:
        view, scores = random_view(seed), random_scores(seed)
        whole, part = (
            modulated(text, view, scores) for text in ("swd(5)", f"swd(5) | only({where})")
        )
        here = view.ends ^ flip
        for name in ("key", "value"):
            wanted = torch.where(here, getattr(whole, name), getattr(scores, name))
            assert torch.equal(getattr(part, name), wanted)


def test_only_first_acts_without_history_in_the_first_forward():
    view, scores = random_view(1), random_scores(1)
    for step, acts in ((0, True), (1, False)):
        progress = replace(view.progress, step=torch.full_like(view.progress.step, step))
        here = replace(view, progress=progress)
        part = modulated("swd(5, start=uniform) | only(first)", here, scores)
        whole = modulated("swd(5, start=uniform)", here, scores)
        wanted = torch.where(~view.seen & acts, whole.key, scores.key)
        assert torch.equal(part.key, wanted)


def test_only_narrows_who_must_wait_for_a_history():
    view = random_view(3)
    view = replace(view, seen=torch.zeros_like(view.seen))
    rule = Rule.parse("confidence | swd(5, start=single) | only(ends) | eb(0.1)")
    ready = rule.selectable(view, random_scores(3)).masked
    others = view.masked & ~view.ends
    assert torch.equal(ready & others, others)
    assert ((ready & view.ends).sum(-1) <= 1).all()
    assert torch.equal(ready.any(-1), view.masked.any(-1))


def test_the_mean_signal_is_the_mean_over_the_masks_of_the_row():
    view, scores = random_view(5), random_scores(5)
    moved = modulated("swd(5) | signal(mean)", view, scores)
    for row in range(3):
        masked = view.masked[row]
        mean = view.kl_prev_cur[row][masked].mean()
        wanted = scores.key[row] - 5 * mean
        torch.testing.assert_close(moved.key[row][masked], wanted[masked])


def test_the_shuffled_signal_is_that_of_another_mask_of_the_row():
    for seed in SEEDS:
        view, scores = random_view(seed), random_scores(seed)
        flat = replace(scores, key=torch.zeros_like(scores.key))
        seen = -modulated("swd(1) | signal(shuffled)", view, flat).key
        for row in range(3):
            masked = view.masked[row]
            own, given = view.kl_prev_cur[row][masked], seen[row][masked]
            assert own.sort().values.tolist() == pytest.approx(given.sort().values.tolist())
            moving = own > 0  # without a history D is 0 at several positions
            if masked.sum() > 1:
                assert not (own == given)[moving].any()


def test_a_modulator_of_a_user_can_be_narrowed():
    @unmask.modulator
    def halved(view, scores):
        return scores - torch.ones_like(scores.key)

    try:
        view = random_view(2)
        scores = unmask.Scores.log_utility(random_scores(2).key.clamp_min(-9))
        part = modulated("halved | only(ends)", view, scores)
        assert torch.equal(part.key, torch.where(view.ends, scores.key - 1, scores.key))
    finally:
        del TABLE["halved"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("only(ends)", "changes the modulator before it, and there is none"),
        ("only(ends) | swd(5)", "there is none"),
        ("certainty(10) | signal(mean)", "D, which certainty(10) does not read"),
        ("swd(5, form=signed) | only(ends)", "different units; use form=additive"),
    ],
)
def test_a_part_that_fits_no_modulator_is_refused(text, message):
    with pytest.raises(RuleError, match=message.replace("(", r"\(").replace(")", r"\)")):
        Rule.parse(f"entropy | {text} | eb(0.1)")


def test_a_rule_without_a_modulator_is_without_the_parts_around_it():
    rule = Rule.parse("confidence | certainty(9) | swd(5) | only(ends) | signal(mean) | eb(0.1)")
    assert str(rule.without(rule.modulators[1])) == "confidence | certainty(9) | eb(0.1)"
    assert str(rule.without(rule.modulators[0])) == (
        "confidence | swd(5) | only(ends) | signal(mean) | eb(0.1)"
    )


def test_a_sweep_leaves_out_the_parts_around_swd_0():
    assert spelled_out("entropy | swd({0,5}) | only(ends) | eb(0.1)") == [
        "entropy | eb(0.1)",
        "entropy | swd(5) | only(ends) | eb(0.1)",
    ]
