"""No sentence says what the run contradicts: all of it recomputed from the steps themselves."""

from __future__ import annotations

import json
import re
import warnings
from collections import Counter
from dataclasses import replace
from functools import cache

import pytest
import torch

from tests.helpers import READINGS, part_texts
from tests.trace.runs import anything, traced
from unmask.rules.select import best_first
from unmask.text.terminal import Painter
from unmask.trace import Trace
from unmask.trace.recording.records import without_swd
from unmask.trace.story.format import spans
from unmask.trace.story.locate import written
from unmask.trace.story.overview import tell_run
from unmask.trace.story.position_story import tell_moment, tell_position
from unmask.trace.story.step_story import tell_step
from unmask.trace.story.timeline import Timeline
from unmask.trace.story.why_step import cause

RULES = [*part_texts(), *READINGS]


@cache
def run(text, seed=1):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model, request = anything(text, seed)
        data, steps = traced(model, request)
    return Trace.of(data), steps


def queue(step):
    """Canvas positions of the candidates, the best first, by the exact numbers."""
    order = best_first(step.decision.scores.key, step.view.masked)[0].tolist()
    start, masked = int(step.start[0]), step.view.masked[0].tolist()
    return [start + place for place in order if masked[place]]


def placed(flags, step):
    return {int(step.start[0]) + place for place in flags[0].nonzero()[:, 0].tolist()}


def forced(decision, step):
    """What a decision commits, if --steps asks for as many as it did in the step."""
    chosen = placed(decision.chosen, step)
    if step.decision.least is None:
        return chosen
    order = queue(replace(step, decision=decision))
    return chosen | set(order[: int(step.decision.least)])


@pytest.mark.parametrize("text", RULES)
def test_the_head_line_is_what_the_run_did(text):
    trace, steps = run(text)
    result = steps[-1].finished[0]
    for position in written(trace):
        head = tell_position(trace, position).head
        number = int(result.commit_step[position]) + 1
        token = int(result.canvas[position])
        assert head.startswith(
            f"Position {position} got '#{token}' at step {number} of {result.nfe}"
        )
        step = steps[number - 1]
        if bool(step.filled[0, position]):
            assert "wrote it" in head
            continue
        went = [p for p in queue(step) if p in placed(step.decision.chosen, step)]
        if len(went) == 1:
            assert head.endswith("as the only commitment of that step.")
        else:
            match = re.search(r"as the (\d+)\w\w of (\d+) commitments", head)
            assert [int(n) for n in match.groups()] == [went.index(position) + 1, len(went)]


@pytest.mark.parametrize("text", RULES)
def test_who_was_ahead_is_who_was_ahead(text):
    trace, steps = run(text)
    for position in written(trace):
        for told in tell_position(trace, position).after:
            match = re.match(r"At step (\d+), it was (\d+)\w\w of (\d+) by score", told)
            if match:
                number, rank, count = (int(n) for n in match.groups())
                order = queue(steps[number - 1])
                assert (rank, count) == (order.index(position) + 1, len(order))
                names = re.findall(r"(\d+) '", told)
                assert [int(n) for n in names] == order[: len(names)]
                assert len(names) == rank - 1 or "more" in told


@pytest.mark.parametrize("text", RULES)
def test_whoever_is_said_to_have_gone_first_did(text):
    trace, steps = run(text)
    for position in written(trace):
        told = [s for s in tell_position(trace, position).after if s.startswith("While it waited")]
        for other, number in re.findall(r"(\d+) '[^']*' \(step (\d+)\)", " ".join(told)):
            step = steps[int(number) - 1]
            order = queue(step)
            assert int(other) in placed(step.decision.chosen, step)
            assert order.index(int(other)) < order.index(position)
            assert position not in placed(step.decision.chosen, step)


@pytest.mark.parametrize("text", [text for text in RULES if "swd" in text])
def test_what_lam_0_would_have_done_is_what_it_does(text):
    trace, steps = run(text)
    plain = without_swd(trace.rule)
    assert plain is not None
    there = [forced(plain(step.view), step) for step in steps]
    here = [placed(step.decision.chosen, step) for step in steps]
    for position in written(trace):
        told = " ".join(tell_position(trace, position).after)
        held = [i + 1 for i in range(len(steps)) if position in there[i] - here[i]]
        brought = [i + 1 for i in range(len(steps)) if position in here[i] - there[i]]
        match = re.search(r"Without SWD it would have been committed at step (\d+)", told)
        assert (int(match[1]) if match else None) == (held[0] if held else None)
        assert ("SWD changed nothing" in told) == (
            not held and not brought and bool(Timeline(trace, position).looks)
        )
        for number in brought:
            assert f"would not have been committed at step {number}" in told
    for number, (more, less) in enumerate(zip(there, here, strict=True), 1):
        told = tell_step(trace, number).after
        for only, verb in ((more - less, "also"), (less - more, "not")):
            sentence = f"lam = 0 would {verb} have committed {spans(only)}."
            assert (sentence in told) == bool(only)


@pytest.mark.parametrize("text", RULES)
def test_every_written_position_has_a_reason_and_every_wait_too(text):
    trace, _ = run(text)
    for position in written(trace):
        timeline = Timeline(trace, position)
        told = tell_position(trace, position).record["told"]
        went = [event.step for event in timeline.events if event.kind == "commit"]
        said = [int(n) for n in re.findall(r"Committed at step (\d+):", " ".join(told))]
        assert said == went
        assert all(cause(timeline, entry).words for entry in timeline.entries)
        states = Counter(entry.state for entry in timeline.entries)
        assert states["stale"] == 0  # there is no cache here


@pytest.mark.parametrize("text", RULES)
def test_everything_can_be_told_as_text_and_as_json(text):
    trace, _ = run(text)
    numbers = range(1, len(trace.moments) + 1)
    tellings = [tell_run(trace), *(tell_step(trace, number) for number in numbers)]
    for position in written(trace):
        tellings.append(tell_position(trace, position))
        tellings += [tell_moment(trace, position, number) for number in numbers]
    for telling in tellings:
        json.dumps(telling.record, allow_nan=False)
        assert all(len(line) <= 80 for line in telling.lines(Painter(False), 80))
        assert all(sentence.strip().endswith((".", ":")) for sentence in telling.record["told"])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("text", [text for text in RULES if "revoke" in text])
def test_a_trace_s_canvas_is_the_run_s_where_the_eos_policy_fills_what_was_taken_back(text, seed):
    trace, steps = run(text, seed)
    for number, step in enumerate(steps, 1):
        assert torch.equal(torch.from_numpy(trace.canvas_after(number)), step.tokens[0])
    assert trace.commit_step.tolist() == steps[-1].finished[0].commit_step.tolist()
