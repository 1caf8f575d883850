"""Shadow positions: masks that attend to everything but the token at their own place."""

from dataclasses import replace

import pytest
import torch

import unmask
from tests.helpers import logits_of
from unmask import Rule, Settings, prompt_request
from unmask.errors import RuleError
from unmask.models.caches import Cached
from unmask.models.denoiser import Canvas
from unmask.models.wrappers.guided import Guided


@pytest.fixture(scope="module")
def model():
    return unmask.load().model


def canvas_with(tokens, start, stop, lengths=None):
    rows = torch.tensor(tokens)
    size = torch.full((len(rows),), rows.shape[-1])
    no = torch.zeros_like(rows, dtype=torch.bool)
    length = size if lengths is None else torch.tensor(lengths)
    return Canvas(
        rows, length, no, no, torch.tensor(start), torch.tensor(stop), tuple(range(len(rows)))
    )


def shadow_logits(model, canvas, row, position):
    hidden = model.trunk(replace(canvas, shadow=True))
    return model.head(hidden.shadow, torch.tensor([row]), torch.tensor([position]))[0]


TOKENS = [[5, 6, 7, 8, 9, 10, 11, 12], [15, 16, 17, 18, 19, 20, 0, 0]]


def test_the_canvas_does_not_see_its_shadow(model):
    canvas = canvas_with(TOKENS, [2, 1], [5, 4], [8, 6])
    plain = logits_of(model, canvas)
    hidden = model.trunk(replace(canvas, shadow=True))
    rows, places = torch.tensor([0, 1]), torch.tensor([3, 5])
    torch.testing.assert_close(
        model.head(hidden, rows, places), plain[rows, places], rtol=1e-4, atol=1e-4
    )


def test_a_shadow_attends_to_all_positions_but_its_own_and_to_the_other_shadows(model):
    tokens, start, stop = TOKENS[0], 2, 5
    count, places = len(tokens), [*range(len(tokens)), *range(start, stop)]
    sees = [
        [
            (key < count and places[key] != places[query] if query >= count else key < count)
            or (query >= count and key >= count)
            for key in range(len(places))
        ]
        for query in range(len(places))
    ]
    ids = torch.tensor([[*tokens, *[model.spec.mask_id] * (stop - start)]])
    mask = torch.tensor(sees)[None, None]
    states = model.module(ids, torch.tensor([places]), mask)
    canvas = canvas_with([tokens], [start], [stop])
    for offset in range(stop - start):
        wanted = model.module.logits(states[0, count + offset])
        torch.testing.assert_close(shadow_logits(model, canvas, 0, start + offset), wanted)


def test_a_shadow_is_the_same_alone_and_in_a_batch(model):
    both = canvas_with(TOKENS, [2, 1], [5, 4], [8, 6])
    alone = canvas_with([TOKENS[1][:6]], [1], [4])
    together, single = shadow_logits(model, both, 1, 2), shadow_logits(model, alone, 0, 2)
    torch.testing.assert_close(together, single, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("wrap", [lambda m: Cached(m, "prefix"), lambda m: Guided(m, 1.0)])
def test_a_model_that_has_no_shadows_is_refused_by_name(model, wrap):
    wrapped = wrap(model)
    settings = Settings(Rule.parse("wino"))
    with pytest.raises(RuleError, match=f"narrow needs shadow positions, and {model.spec.name}"):
        prompt_request(wrapped.spec, [5], 8, settings)


def test_a_request_that_was_made_for_another_model_is_refused_too(model):
    batch = unmask.Batch(Cached(model, "prefix"))
    request = prompt_request(model.spec, [5], 8, Settings(Rule.parse("wino")))
    with pytest.raises(RuleError, match="narrow needs shadow positions"):
        batch.admit(request)
