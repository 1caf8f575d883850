"""Stability-Weighted Decoding: the paper's figure, and every reading by name."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

import pytest
import torch

from tests.helpers import (
    SPEC,
    Scripted,
    bits,
    hand_view,
    outcome,
    places,
    random_lookup,
    random_view,
    table,
)
from unmask import Needs, Rule, RuleError, Settings, decode, decode_steps, prompt_request
from unmask.rules.scores import confidence, entropy
from unmask.rules.stability import Stability


def test_the_worked_figure_of_the_paper():
    view = hand_view([0.9, 0.8], kl_prev_cur=table([0.607, 0.393]))
    decision = Rule.parse("confidence | swd(1) | top(1)")(view)
    assert decision.scores.value[0].tolist() == pytest.approx([0.49, 0.54], abs=5e-3)
    assert places(decision.chosen) == [1]


def test_without_stability_the_figure_goes_the_other_way():
    view = hand_view([0.9, 0.8], kl_prev_cur=table([0.607, 0.393]))
    assert places(Rule.parse("confidence | top(1)")(view).chosen) == [0]


def test_the_base_score_is_kept_beside_the_modulated_one():
    view = hand_view([0.9, 0.8], kl_prev_cur=table([0.607, 0.393]))
    decision = Rule.parse("confidence | swd(1) | top(1)")(view)
    assert decision.base.value.tolist() == [[0.9, 0.8]]


def test_the_default_direction_is_from_the_previous_to_the_current():
    view = hand_view([0.9], kl_prev_cur=table([1.0]), kl_cur_prev=table([3.0]))
    scores = Stability(2)(view, confidence(view))
    assert float(scores.key) == pytest.approx(math.log(0.9) - 2)


def test_the_other_direction_has_a_name():
    view = hand_view([0.9], kl_prev_cur=table([1.0]), kl_cur_prev=table([3.0]))
    scores = Stability(2, kl="cur_prev")(view, confidence(view))
    assert float(scores.key) == pytest.approx(math.log(0.9) - 6)


def test_each_direction_asks_for_itself_alone():
    for kl in ("prev_cur", "cur_prev"):
        assert Stability(1, kl=kl, start="skip").needs == Needs(kl=frozenset({kl}))


ENTROPIES, MOVES = [0.5, 0.4], [0.1, 0.3]  # at lam 1: additive -0.6, -0.7


def _entropy_keys(form, lam=1.0):
    view = hand_view([0.5, 0.5], entropy=table(ENTROPIES), kl_prev_cur=table(MOVES))
    return Stability(lam, form=form)(view, entropy(view))


def test_the_additive_form_subtracts():
    scores = _entropy_keys("additive")
    assert scores.value[0].tolist() == pytest.approx([-0.6, -0.7])
    assert scores.key.tolist() == scores.value.tolist()


def test_the_signed_form_multiplies_by_the_growing_exponential():
    scores = _entropy_keys("signed")
    assert scores.value[0].tolist() == pytest.approx([-0.5 * math.exp(0.1), -0.4 * math.exp(0.3)])
    assert scores.key[0].tolist() == pytest.approx([-math.log(0.5) - 0.1, -math.log(0.4) - 0.3])


def test_the_literal_form_is_the_equation_as_printed_and_rewards_instability():
    with pytest.warns(UserWarning, match="rewards instability"):
        scores = _entropy_keys("literal")
    assert scores.value[0].tolist() == pytest.approx([-0.5 * math.exp(-0.1), -0.4 * math.exp(-0.3)])
    assert (scores.value > table([-0.5, -0.4])).all()


def test_the_literal_form_warns_when_it_is_read_from_text():
    with pytest.warns(UserWarning, match="rewards instability"):
        Rule.parse("entropy | swd(5, form=literal) | top(1)")


def test_the_literal_form_without_weight_warns_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Stability(0, form="literal")


@pytest.mark.parametrize("form", ["signed", "literal"])
def test_the_forms_are_one_for_a_score_in_the_unit_interval(form):
    view = hand_view([0.9, 0.8], kl_prev_cur=table([0.607, 0.393]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scores = Stability(1, form=form)(view, confidence(view))
    assert torch.equal(scores.key, Stability(1)(view, confidence(view)).key)


def test_the_signed_form_ranks_a_certain_position_first_whatever_it_did():
    view = hand_view([1.0, 0.9], entropy=table([0.0, 0.1]), kl_prev_cur=table([math.inf, 0.0]))
    scores = Stability(5, form="signed")(view, entropy(view))
    assert scores.key[0, 0] == math.inf
    assert not scores.value.isnan().any()


def test_the_signed_form_ranks_where_its_values_overflow():
    view = hand_view([0.5, 0.5], entropy=table([1.0, 1.0]), kl_prev_cur=table([1000.0, 900.0]))
    scores = Stability(1, form="signed")(view, entropy(view))
    assert places(scores.key > scores.key.amin(-1, keepdim=True)) == [1]


def test_a_strong_lam_ranks_large_instabilities_without_ties():
    view = hand_view([0.9, 0.9], kl_prev_cur=table([40.0, 39.0]))
    assert places(Rule.parse("confidence | swd(30) | top(1)")(view).chosen) == [1]


def test_an_infinite_instability_is_the_last_choice_but_a_choice():
    view = hand_view([0.9, 0.1], kl_prev_cur=table([math.inf, 1.0]))
    rule = Rule.parse("confidence | swd(5) | top(1)")
    assert places(rule(view).chosen) == [1]
    assert places(rule(view.among(bits([1, 0]))).chosen) == [0]


def test_a_threshold_compares_the_modulated_value():
    view = hand_view([0.9, 0.8], kl_prev_cur=table([0.607, 0.0]))
    assert places(Rule.parse("confidence | swd(1) | threshold(0.7)")(view).chosen) == [1]


def test_an_entropy_bound_orders_by_the_modulated_key_but_counts_raw_entropies():
    view = hand_view([0.9, 0.8, 0.7], entropy=table([0.3, 0.2, 0.1]))
    moved = hand_view(
        [0.9, 0.8, 0.7], entropy=table([0.3, 0.2, 0.1]), kl_prev_cur=table([5.0, 0.0, 0.0])
    )
    rule = Rule.parse("confidence | swd(1) | eb(0.15)")
    assert places(rule(view).chosen) == [0]  # 0.3, then 0.2 more is too much
    assert places(rule(moved).chosen) == [1, 2]  # 0.2 and 0.1: all but the largest is 0.1


@pytest.mark.parametrize("select", ["threshold(0.1)", "eb(9)", "budget(9)", "factor(9)"])
def test_single_commits_only_the_best_by_the_base_score_without_history(select):
    view = hand_view([0.5, 0.9, 0.8], seen=bits([0, 0, 0]))
    assert places(Rule.parse(f"confidence | swd(5, start=single) | {select}")(view).chosen) == [1]


def test_single_leaves_top_k_alone():
    view = hand_view([0.5, 0.9, 0.8], seen=bits([0, 0, 0]))
    assert places(Rule.parse("confidence | swd(5, start=single) | top(2)")(view).chosen) == [1, 2]


@pytest.mark.parametrize("select", ["static(1)", "timesteps(1)"])
def test_single_leaves_timetables_alone(select):
    view = hand_view([0.5, 0.9, 0.8], seen=bits([0, 0, 0]))
    assert places(Rule.parse(f"confidence | swd(5, start=single) | {select}")(view).chosen) == [
        0,
        1,
        2,
    ]


def test_single_breaks_ties_to_the_lowest_position():
    view = hand_view([0.5, 0.9, 0.9], seen=bits([0, 0, 0]))
    assert places(
        Rule.parse("confidence | swd(5, start=single) | threshold(0.1)")(view).chosen
    ) == [1]


def test_single_chooses_among_keys_of_minus_infinity():
    view = hand_view([0.0, 0.0], seen=bits([0, 0]), masked=bits([0, 1]))
    assert places(
        Rule.parse("confidence | swd(5, start=single) | threshold(0.1)")(view).chosen
    ) == [1]


def test_single_lets_positions_without_history_wait_for_those_that_have_some():
    view = hand_view([0.9, 0.8, 0.7], seen=bits([0, 1, 1]))
    assert places(
        Rule.parse("confidence | swd(5, start=single) | threshold(0.1)")(view).chosen
    ) == [1, 2]


def test_single_is_decided_row_by_row():
    view = random_view(0)
    seen = view.seen.clone()
    seen[0], seen[1] = False, True
    whole = replace(view, seen=seen, masked=torch.ones_like(view.masked))
    ready = Stability(5, start="single").ready(whole, confidence(view))
    assert ready[0].sum() == 1
    assert ready[1].all()


@pytest.mark.parametrize("start", ["skip", "uniform"])
def test_the_other_starts_hold_nobody_back(start):
    view = hand_view([0.5, 0.9, 0.8], seen=bits([0, 0, 0]))
    rule = Rule.parse(f"confidence | swd(5, start={start}) | threshold(0.1)")
    assert places(rule(view).chosen) == [0, 1, 2]


def test_a_uniform_start_is_asked_of_the_pass_over_the_logits():
    assert Stability(5).needs.uniform_start  # the default, as Algorithm 1
    assert not Stability(5, start="skip").needs.uniform_start
    assert not Stability(5, start="single").needs.uniform_start


def _first_view(start):
    logits = torch.full((4, SPEC.vocab_size), 0.0)
    logits[1:, 3] = torch.tensor([3.0, 2.0, 1.0])
    settings = Settings(Rule.parse(f"confidence | swd(5, start={start}) | top(1)"))
    request = prompt_request(SPEC, [1], 3, settings)
    return next(decode_steps(Scripted([logits], SPEC), [request])).view


@pytest.mark.parametrize("start", ["single", "skip"])
def test_the_first_forward_has_no_instability(start):
    view = _first_view(start)
    assert view.kl_prev_cur.tolist() == [[0.0] * 3]
    assert not view.seen.any()


def test_a_uniform_start_gives_the_first_forward_the_divergence_from_uniform():
    view = _first_view("uniform")
    p = torch.zeros(3, SPEC.vocab_size - 1, dtype=torch.float64)
    p[:, 3] = torch.tensor([3.0, 2.0, 1.0])
    wanted = -math.log(SPEC.vocab_size - 1) - p.log_softmax(-1).mean(-1)  # the mask is left out
    torch.testing.assert_close(view.kl_prev_cur[0], wanted, rtol=1e-5, atol=1e-6)
    assert not view.seen.any()


def test_a_block_scope_is_asked_of_the_history():
    assert Stability(5, scope="block").needs.block_scope
    assert not Stability(5).needs.block_scope


def test_the_scope_changes_runs_in_blocks_and_only_there():
    def run(scope, block, seed):
        rule = f"confidence | swd(5, scope={scope}) | eb(0.5)"
        return outcome(decode(random_lookup(seed), [1], rule, length=12, block=block))

    seeds = range(6)
    assert all(run("block", None, seed) == run("sequence", None, seed) for seed in seeds)
    assert any(run("block", 4, seed) != run("sequence", 4, seed) for seed in seeds)


@pytest.mark.parametrize("lam", [-1.0, math.inf, math.nan])
def test_lam_is_a_finite_number_of_at_least_zero(lam):
    with pytest.raises(RuleError, match="lam must be >= 0 and finite"):
        Stability(lam)


def test_lam_zero_holds_nobody_back_in_the_first_step():
    view = hand_view([0.5, 0.9, 0.8], seen=bits([0, 0, 0]))
    assert places(Rule.parse("confidence | swd(0) | threshold(0.1)")(view).chosen) == [0, 1, 2]


def test_two_stabilities_are_refused():
    with pytest.raises(RuleError, match="swd is given twice"):
        Rule.parse("confidence | swd(1) | swd(2) | top(1)")


def test_left_to_right_starts_at_the_leftmost_mask_without_history_too():
    view = hand_view([0.1, 0.9, 0.8], seen=bits([0, 0, 0]))
    assert places(Rule.parse("confidence | swd(5) | ar(0.5)")(view).chosen) == [0]


@pytest.mark.parametrize(
    ("form", "negative"),
    [
        ("additive", "From a negative score, such as -H, subtract 30 D instead."),
        ("signed", "A negative score is multiplied by exp(+lam D)."),
        ("literal", "A negative score is multiplied by exp(-lam D), which rewards instability."),
    ],
)
def test_the_words_say_what_happens_to_a_negative_score(form, negative):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # literal warns
        words = Stability(30, form=form).describe()
    assert "multiply it by exp(-30 D)" in words
    assert negative in words


def test_the_bounded_form_never_costs_more_than_lam():
    view = hand_view([0.9, 0.9, 0.9], kl_prev_cur=table([0.0, 0.5, 1e9]))
    scores = Stability(2, form="bounded")(view, confidence(view))
    wanted = [1.0, math.exp(-2 * (1 - math.exp(-0.5))), math.exp(-2)]
    assert scores.value[0].tolist() == pytest.approx([0.9 * weight for weight in wanted])
    sure = hand_view([0.9], entropy=table([0.3]), kl_prev_cur=table([0.5]))
    cost = 2 * (1 - math.exp(-0.5))
    assert Stability(2, form="bounded")(sure, entropy(sure)).value.item() == pytest.approx(
        -0.3 - cost
    )


@pytest.mark.parametrize("kl", ["js", "tv"])
def test_a_bounded_divergence_is_read_only_if_it_was_asked_for(kl):
    view = hand_view([0.9, 0.8], **{kl: table([0.6, 0.0])})
    assert places(Rule.parse(f"confidence | swd(5, kl={kl}) | top(1)")(view).chosen) == [1]
    with pytest.raises(RuleError, match=f"reads {kl} of the view without declaring it"):
        Stability(5, kl=kl)(hand_view([0.9]), confidence(hand_view([0.9])))


@pytest.mark.parametrize("kl", ["js", "tv"])
def test_decoding_computes_the_bounded_divergences(kl):
    model = random_lookup(3)
    rule = f"confidence | swd(5, kl={kl}, start=skip) | eb(0.5)"
    changed = [
        outcome(decode(random_lookup(seed), [1], rule, length=12))
        != outcome(decode(random_lookup(seed), [1], "confidence | eb(0.5)", length=12))
        for seed in range(5)
    ]
    assert any(changed)
    whole = decode(model, [1], rule, length=12)
    assert outcome(decode(model, [1], rule, length=12, history=12)) == outcome(whole)
