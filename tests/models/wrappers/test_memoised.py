"""A model with a memory gives the same results as without."""

from dataclasses import replace

import pytest
import torch

from tests.helpers import canvas_of, outcome
from tests.models.common import one_line
from tests.models.configs import MASK
from tests.models.makers import make
from unmask import (
    Guided,
    ModelError,
    Rule,
    Settings,
    decode,
    decode_many,
    decode_steps,
    infill_request,
    load,
    prompt_request,
)
from unmask.models.wrappers import memoised as remembered
from unmask.models.wrappers.memoised import Memoised

TOP = "confidence | top(1)"
REVOKE = "confidence | swd(1) | threshold(0.3) | revoke(0.3, times=2)"
RULES = [
    TOP,
    "confidence | swd(5) | eb(0.5)",
    "confidence | swd(5, scope=block) | eb(1)",
    "confidence | klass(0.2, kl=0.5, gate=no)",
    REVOKE,
]
PROMPTS = [[5, 17, 200], [9], [33, 34, 35, 36, 37, 38, 39], [5, 17, 200]]
CANVASES = [[MASK, 4, MASK, MASK, 9, 12, MASK, MASK], [5, MASK, 200, *[MASK] * 9]]
LENGTH = 8


@pytest.fixture(scope="module")
def model_of(tmp_path_factory):
    """Models in float64, so that rounding changes no decision."""
    made = {}

    def get(family):
        if family not in made:
            folder = make(tmp_path_factory.mktemp("model"), family)
            made[family] = load(folder, dtype=torch.float64).model
        return made[family]

    return get


def mixed_requests(spec):
    """Prompts and canvases with every rule, in blocks and not."""
    for number, text in enumerate(RULES):
        settings = Settings(Rule.parse(text), (None, 4)[number % 2])
        for prompt in PROMPTS:
            yield prompt_request(spec, prompt, LENGTH, settings)
        for canvas in CANVASES:
            yield infill_request(spec, canvas, settings)


def steps_and_outcomes(model, batch_size):
    steps = list(decode_steps(model, mixed_requests(model.spec), batch_size))
    actual = {result.key: outcome(result) for step in steps for result in step.finished}
    return steps, [actual[key] for key in sorted(actual)]


def said(model, canvas):
    """Logits of all positions outside the prompt."""
    rows, positions = (~canvas.given).nonzero(as_tuple=True)
    with torch.no_grad():
        return model.head(model.trunk(canvas), rows, positions)


@pytest.mark.long
@pytest.mark.parametrize("family", ["llada", "dream"])
def test_a_mixed_batch_decodes_as_without_memory(model_of, family):
    model = model_of(family)
    steps, wanted = steps_and_outcomes(model, 30)
    assert any(step.decision.revoked.any() for step in steps)
    memory = Memoised(model)
    assert steps_and_outcomes(memory, 30)[1] == wanted
    assert memory.computed < memory.asked
    computed = memory.computed
    assert steps_and_outcomes(memory, 9)[1] == wanted  # rows enter and leave
    assert memory.computed == computed


def test_equal_canvases_are_computed_once(model_of):
    model, fed = model_of("llada"), []
    memory = Memoised(model)
    hook = model.module.register_forward_pre_hook(lambda _, inputs: fed.append(inputs[0]))
    for times in (1, 2):
        results = decode_many(memory, [PROMPTS[0]] * 3, TOP, length=LENGTH)
        assert [result.nfe for result in results] == [LENGTH] * 3
        assert (memory.asked, memory.computed) == (times * 3 * LENGTH, LENGTH)
    hook.remove()
    assert [tokens.shape for tokens in fed] == [(1, 3 + LENGTH)] * LENGTH


def test_other_rules_compute_only_what_is_new_to_them(model_of):
    memory = Memoised(model_of("llada"))
    decode(memory, PROMPTS[0], TOP, length=LENGTH)
    decode(memory, PROMPTS[0], "confidence | top(2)", length=LENGTH)
    assert memory.asked == LENGTH + LENGTH // 2
    assert memory.computed <= memory.asked - 1  # both begin with the empty canvas


def test_rows_go_in_forwards_of_equal_length_without_padding(model_of, monkeypatch):
    monkeypatch.setattr(remembered, "ROWS", 2)
    model, fed = model_of("llada"), []
    rows = [[1, MASK, 3], [1, 2, 3, MASK], [2, MASK, 3], [3, MASK, 3]]
    canvas = canvas_of(*rows, given=1)
    canvas = replace(canvas, given=canvas.given | (canvas.tokens == 0))
    wanted = said(model, canvas)
    hook = model.module.register_forward_pre_hook(lambda _, inputs: fed.append(inputs[0].tolist()))
    actual = said(Memoised(model), canvas)
    hook.remove()
    assert fed == [[rows[0], rows[2]], [rows[3]], [rows[1]]]
    torch.testing.assert_close(actual, wanted)


@pytest.mark.parametrize("family", ["llada", "dream"])
def test_equal_tokens_of_which_other_ones_were_given_are_told_apart(model_of, family):
    """The head may need a filled mask inside the prompt, but never a token of the prompt."""
    model = model_of(family)
    memory = Memoised(model)
    for given in ([1, 1, 1, 0], [0, 1, 1, 0], [1, 0, 1, 0], [1, 1, 1, 0]):
        canvas = replace(canvas_of([5, 4, 7, MASK]), given=torch.tensor([given]).bool())
        torch.testing.assert_close(said(memory, canvas), said(model, canvas))


@pytest.mark.long
@pytest.mark.parametrize("most", [0, 5_000])
def test_beyond_its_limit_it_forgets_and_says_the_same(model_of, monkeypatch, most):
    model = model_of("llada")
    endless = Memoised(model)
    wanted = steps_and_outcomes(endless, 20)[1]
    monkeypatch.setattr(remembered, "MOST_BYTES", most)
    memory = Memoised(model)
    assert steps_and_outcomes(memory, 20)[1] == wanted
    assert memory.asked == endless.asked
    assert memory.computed > endless.computed


def test_what_was_said_stays_when_the_memory_grows(model_of):
    memory = Memoised(model_of("llada"))
    canvas = canvas_of([5, MASK, MASK], given=1)
    rows, positions = torch.tensor([0, 0]), torch.tensor([1, 2])
    with torch.no_grad():
        hidden = memory.trunk(canvas)
        before = memory.head(hidden, rows, positions)
        memory.trunk(canvas_of(*([i] + [MASK] * 99 for i in range(50)), given=1))
        assert torch.equal(memory.head(hidden, rows, positions), before)
        assert torch.equal(memory.head(memory.trunk(canvas), rows, positions), before)
    assert (memory.asked, memory.computed) == (52, 51)


def test_what_is_forgotten_is_computed_again(model_of):
    memory = Memoised(model_of("llada"))
    first = decode(memory, PROMPTS[0], TOP, length=LENGTH)
    memory.forget()
    assert outcome(decode(memory, PROMPTS[0], TOP, length=LENGTH)) == outcome(first)
    assert memory.computed == memory.asked == 2 * LENGTH


def test_guidance_goes_over_a_memory(model_of):
    model = model_of("llada")
    memory = Memoised(model)
    actual = decode(Guided(memory, 1.5), PROMPTS[0], RULES[1], length=LENGTH)
    assert outcome(actual) == outcome(decode(Guided(model, 1.5), PROMPTS[0], RULES[1], length=8))
    assert memory.asked == 2 * actual.nfe


def test_it_shows_the_models_special_tokens(model_of):
    model = model_of("llada")
    memory = Memoised(model)
    spec = replace(model.spec, shadows=False)  # it cannot compute them
    assert (memory.spec, memory.device) == (spec, model.device)


@pytest.mark.parametrize("family", ["sdar", "llada2"])
def test_a_block_causal_model_is_refused_in_one_line(model_of, family):
    model = model_of(family)
    with pytest.raises(ModelError) as caught:
        Memoised(model)
    assert one_line(caught) == f"{model.spec.name} attends in blocks; use its block cache instead"
