"""P2 and temporal voting, against loops written out from what their docstrings say."""

import pytest
import torch

from tests.helpers import MASK, random_lookup
from unmask import decode
from unmask.models.denoiser import Canvas

PROMPT, LENGTH, STEPS = [3, 1, 4], 9, 4


def probabilities(model, canvas):
    tokens = torch.tensor([canvas])
    lengths, masked = torch.tensor([len(canvas)]), tokens == MASK
    hidden = model.trunk(Canvas(tokens, lengths, masked, ~masked, lengths * 0, lengths, (0,)))
    logits = model.head(hidden, torch.zeros(len(canvas), dtype=torch.int64), torch.arange(12))
    logits[:, MASK] = -torch.inf
    return logits.double().softmax(-1)


def planned(model, eta, rank):
    """P2: the canvas after each step."""
    canvas, answer = [*PROMPT, *[MASK] * LENGTH], range(3, 12)
    shares = [3, 2, 2, 2]  # of nine masks
    for step in range(STEPS):
        p = probabilities(model, canvas)
        known = {i for i in answer if canvas[i] != MASK}

        def standing(i, p=p, known=known, canvas=canvas):
            own = p[i, canvas[i]] if rank == "own" else p[i].max()
            return eta * own.log() if i in known else p[i].max().log()

        best = sorted(answer, key=lambda i: -standing(i))[: len(known) + shares[step]]
        canvas = [
            MASK if i >= 3 and i not in best else token if token != MASK else int(p[i].argmax())
            for i, token in enumerate(canvas)
        ]
        yield canvas


@pytest.mark.parametrize("rank", ["own", "newest"])
@pytest.mark.parametrize("seed", range(4))
def test_masks_and_commitments_compete_for_the_places_of_the_timetable(seed, rank):
    model, eta = random_lookup(seed, dtype=torch.float64), (0.3, 1.0, 2.0)[seed % 3]
    rule = f"confidence | p2({STEPS}, eta={eta}, rank={rank}) | p2_back({STEPS}, rank={rank})"
    *_, last = planned(model, eta, rank)
    assert decode(model, PROMPT, rule, length=LENGTH).canvas.tolist() == last


@pytest.mark.parametrize(("weight", "seed"), [("even", 0), ("linear", 1), ("double", 2)])
def test_a_full_block_gets_the_tokens_with_most_votes(weight, seed):
    model = random_lookup(seed, dtype=torch.float64)
    canvas, answer = [*PROMPT, *[MASK] * LENGTH], range(3, 12)
    votes = torch.zeros(12, 12, dtype=torch.float64)
    for step in range(LENGTH):
        p = probabilities(model, canvas)
        amount = {"even": 1, "linear": step + 1, "double": 2**step}[weight]
        votes[torch.arange(12), p.argmax(-1)] += amount
        best = max((i for i in answer if canvas[i] == MASK), key=lambda i: float(p[i].max()))
        canvas[best] = int(p[best].argmax())
    won = [*PROMPT, *votes[3:].argmax(-1).tolist()]
    rule = f"confidence | top(1) | vote({weight})"
    assert decode(model, PROMPT, rule, length=LENGTH).canvas.tolist() == won
