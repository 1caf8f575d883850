"""A trace holds what the rule saw and did in every step."""

from __future__ import annotations

import json
import math
import zlib
from dataclasses import replace
from io import BytesIO

import numpy as np
import pytest
import torch

from tests.helpers import MASK, VOCABULARY, part_texts, random_lookup
from tests.trace.runs import anything, traced
from unmask import Batch, Rule, Settings, decode_steps, load, prompt_request
from unmask.kernels.reduce import divergence
from unmask.models.function import from_function
from unmask.rules.select import best_first
from unmask.rules.spelling import for_file
from unmask.trace import Trace, Tracer
from unmask.trace.recording import tracer as tracer_module

SWD = "confidence | swd(5) | eb(0.5)"


def rounded(values):
    """As 16 bits hold them."""
    with np.errstate(over="ignore"):
        return np.asarray(values, dtype=np.float64).astype(np.float16).astype(np.float64)


@pytest.mark.parametrize(("seed", "text"), [*enumerate(part_texts())])
def test_every_step_is_there_with_its_candidates_and_commitments(text, seed):
    model, request = anything(text, seed)
    data, steps = traced(model, request)
    trace = Trace.of(data)
    assert [m.forward for m in trace.moments] == list(range(len(steps)))
    for number, (moment, step) in enumerate(zip(trace.moments, steps, strict=True)):
        start = int(step.start[0])
        assert moment.window == (start, int(step.stop[0]))
        masked = step.view.masked[0].nonzero()[:, 0]
        assert moment.positions.tolist() == (masked + start).tolist()
        assert moment.token.tolist() == step.view.token[0, masked].tolist()
        chosen = step.decision.chosen[0].nonzero()[:, 0]
        assert list(moment.committed) == (chosen + start).tolist()
        assert list(moment.committed.values()) == step.view.token[0, chosen].tolist()
        assert moment.chosen.tolist() == step.decision.chosen[0, masked].tolist()
        after = trace.canvas_after(number + 1)
        assert after.tolist() == step.tokens[0, : len(after)].tolist()


@pytest.mark.parametrize(("seed", "text"), [*enumerate(part_texts())])
def test_the_numbers_are_the_rules_own_to_sixteen_bits_and_ranks_are_exact(text, seed):
    model, request = anything(text, seed)
    data, steps = traced(model, request)
    for moment, step in zip(Trace.of(data).moments, steps, strict=True):
        view, decision, masked = step.view, step.decision, step.view.masked
        for name in ("confidence", "margin"):
            expected = np.exp(rounded(getattr(view, name)[masked].log()))
            np.testing.assert_allclose(getattr(moment, name), expected, rtol=1e-9)
        np.testing.assert_array_equal(moment.entropy, rounded(view.entropy[masked]))
        kept = moment.raw_entropy
        np.testing.assert_allclose(kept, rounded(view.raw_entropy[masked]), rtol=2e-3, atol=1e-6)
        for name, scores in (("base", decision.base), ("score", decision.scores)):
            kept = getattr(moment, name)
            np.testing.assert_allclose(kept, rounded(scores.key[masked]), rtol=2e-3, atol=1e-6)
        order = best_first(decision.scores.key, masked)[0][: len(moment.rank)]
        assert (order + int(step.start[0])).tolist() == moment.positions[moment.queue].tolist()


def test_a_score_in_another_unit_than_its_rank_is_told_in_its_own():
    model, request = anything("entropy | swd(2, form=signed) | top(1)", 1)
    data, steps = traced(model, request)
    for moment, step in zip(Trace.of(data).moments, steps, strict=True):
        value = step.decision.scores.value[step.view.masked]
        np.testing.assert_allclose(moment.value, rounded(value), rtol=2e-3)


def test_alternatives_are_the_five_likeliest_tokens_of_the_model():
    model = random_lookup(3)
    request = prompt_request(model.spec, [1, 2, 3], 10, Settings(Rule.parse(SWD)))
    data, steps = traced(model, request)
    for moment, step in zip(Trace.of(data).moments, steps, strict=True):
        p = step.logits.values.double().softmax(-1)
        best = p.sort(descending=True, stable=True)
        np.testing.assert_allclose(moment.probabilities, best.values[:, :5], rtol=3e-3)
        assert moment.alternatives.tolist() == best.indices[:, :5].tolist()


@pytest.mark.parametrize("kl", ["prev_cur", "cur_prev"])
def test_the_instability_is_the_kl_between_two_steps_also_where_the_rule_needs_none(kl):
    rules = [f"confidence | swd(1, kl={kl}, start=skip) | top(2)", "confidence | top(2)"]
    for text in rules if kl == "prev_cur" else rules[:1]:
        model = random_lookup(5)
        request = prompt_request(model.spec, [4, 2], 12, Settings(Rule.parse(text)))
        data, steps = traced(model, request)
        past = {}
        for moment, step in zip(Trace.of(data).moments, steps, strict=True):
            now = dict(zip(step.logits.positions.tolist(), step.logits.values, strict=True))
            for place, position in enumerate(moment.positions.tolist()):
                told = moment.instability[place]
                if position not in past:
                    assert math.isnan(told)
                    continue
                pair = (past[position][None], now[position][None])
                moved = float(divergence(*(pair if kl == "prev_cur" else pair[::-1])))
                assert told == pytest.approx(moved, rel=1e-3, abs=1e-7)
            past = now


def test_how_many_steps_wait_changes_nothing(monkeypatch):
    remembering = [text for text in part_texts() if Rule.parse(text).memory]
    plain = [SWD, "credit | margin | threshold(0.6)", "confidence | budget(0.1) | floor(1)"]
    for seed, text in enumerate([*plain, *remembering]):
        model, request = anything(text, seed)
        traces = []
        for steps in (64, 3):
            monkeypatch.setattr(tracer_module, "STEPS", steps)
            traces.append(Trace.of(traced(model, request)[0]))
        for first, second in zip(*(trace.moments for trace in traces), strict=True):
            for name, value in vars(first).items():
                where = f"{name} of {text}, seed {seed}"
                np.testing.assert_equal(value, getattr(second, name), err_msg=where)


def test_the_likeliest_token_has_its_probability_also_where_another_token_was_drawn():
    for seed in range(6):
        model, request = anything("credit(0.65) | confidence | swd(5) | threshold(0.5)", seed)
        data, steps = traced(model, request)
        for moment, step in zip(Trace.of(data).moments, steps, strict=True):
            inside = np.isin(step.logits.positions.numpy(), moment.positions)
            best = step.logits.values.double().softmax(-1).amax(-1).numpy()[inside]
            np.testing.assert_allclose(moment.probabilities[:, 0], best, rtol=3e-3)


@pytest.mark.parametrize("text", [SWD, "entropy | top(1)", "credit | confidence | threshold(0.7)"])
def test_a_row_of_a_batch_is_traced_as_if_it_were_alone(text):
    model = random_lookup(11)
    settings = Settings(Rule.parse(text), 4)
    requests = [
        prompt_request(model.spec, [seed + 1] * (seed + 1), 6 + seed, settings, seed)
        for seed in range(5)
    ]
    outs = [BytesIO() for _ in requests]
    writers = [
        Tracer(out, model.spec, request) for out, request in zip(outs, requests, strict=True)
    ]
    for step in decode_steps(model, requests, batch_size=3, keep_logits=True):
        for row, key in enumerate(step.keys):
            writers[key].see(step, row)
        for result in step.finished:
            writers[result.key].close(result, "text")
    for out, request in zip(outs, requests, strict=True):
        assert zlib.decompress(out.getvalue(), 31) == zlib.decompress(traced(model, request)[0], 31)


def test_what_lam_0_would_have_done_in_the_same_step_is_told():
    model, request = anything("confidence | swd(20, start=skip) | threshold(0.3)", 2)
    request = replace(request, settings=replace(request.settings, steps=None))
    plain = Rule.parse("confidence | threshold(0.3)")
    data, steps = traced(model, request)
    moments = Trace.of(data).moments
    for moment, step in zip(moments, steps, strict=True):
        would = plain(step.view).chosen[0].nonzero()[:, 0] + step.start[0]
        assert list(moment.unweighted) == would.tolist()
    assert any(set(m.unweighted) != set(m.committed) for m in moments)


@pytest.mark.parametrize("text", ["confidence | top(1)", "confidence | swd(0) | top(1)"])
def test_a_rule_without_swd_has_nothing_to_compare_with(text):
    model, request = anything(text, 2)
    assert all(m.unweighted is None for m in Trace.of(traced(model, request)[0]).moments)


def test_the_budget_that_was_spent_and_the_next_ones_price_are_told():
    model, request = anything("confidence | eb(1)", 4)
    for moment in Trace.of(traced(model, request)[0]).moments:
        entropies = moment.raw_entropy[moment.queue]
        spent = entropies.cumsum() - np.maximum.accumulate(entropies)
        taken = len(moment.selected)
        assert moment.gauge["spent"] == pytest.approx(spent[taken - 1], abs=0.01)
        if taken < len(spent):
            assert moment.gauge["next"] == pytest.approx(spent[taken], abs=0.01)
            assert moment.gauge["next"] > 1 >= moment.gauge["spent"]
        else:
            assert moment.gauge["next"] is None


def test_it_is_gzipped_json_lines_that_begin_with_all_that_was_asked():
    model, request = anything(SWD, 0)
    lines = zlib.decompress(traced(model, request)[0], 31).decode().splitlines()
    records = [json.loads(line) for line in lines]
    assert records[0]["trace"] == 1
    assert records[0]["settings"]["rule"] == for_file(SWD)
    assert records[0]["canvas"] == request.canvas.tolist()
    assert records[-1]["end"]["text"] == "text"


def test_it_is_written_while_the_run_goes_on(monkeypatch):
    monkeypatch.setattr(tracer_module, "STEPS", 2)
    model, request = anything("confidence | top(1)", 3)
    out, batch = BytesIO(), Batch(model, keep_logits=True)
    writer = Tracer(out, model.spec, request)
    batch.admit(request)
    for _ in range(4):
        writer.see(batch.step()[0])
    trace = Trace.of(out.getvalue())
    assert len(trace.moments) == 4
    assert not trace.finished


def test_the_words_of_all_tokens_that_occur_come_with_it():
    model, tokenizer = load("embedded")
    ids = tokenizer.encode("Ann has 12 pens.")
    request = prompt_request(model.spec, ids, 8, Settings(Rule.parse(SWD)))
    trace = Trace.of(traced(model, request, tokenizer=tokenizer)[0])
    used = {int(i) for m in trace.moments for i in (*m.alternatives.ravel(), *m.token)}
    assert used <= trace.words.keys()
    assert trace.word(ids[0]) == tokenizer.decode([ids[0]])


@pytest.mark.long
def test_512_positions_and_512_steps_take_less_than_5_megabytes():
    size, width = 200, 512
    generator = torch.Generator().manual_seed(0)

    def noise(ids):
        return 3 * torch.randn((*ids.shape, size), generator=generator)

    model = from_function(noise, mask_id=size - 1, vocab_size=size)
    rule = Settings(Rule.parse("confidence | swd(1) | top(1)"))
    data, steps = traced(model, prompt_request(model.spec, [1], width, rule))
    assert len(steps) == 512
    assert len(data) < 5_000_000


def test_a_vocabulary_smaller_than_five_has_fewer_alternatives():
    model = from_function(lambda ids: torch.randn(*ids.shape, 3), mask_id=2, vocab_size=3)
    request = prompt_request(model.spec, [0], 3, Settings(Rule.parse(SWD)))
    assert Trace.of(traced(model, request)[0]).moments[0].alternatives.shape == (3, 3)


def test_tokens_that_may_not_be_written_have_no_probability():
    model = random_lookup(1)
    request = prompt_request(model.spec, [1], 4, Settings(Rule.parse("confidence | top(1)")))
    for moment in Trace.of(traced(model, request)[0]).moments:
        assert MASK not in moment.alternatives[moment.probabilities > 0]
        assert (moment.alternatives < VOCABULARY).all()
