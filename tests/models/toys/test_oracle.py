"""Exact oracles against brute force."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers import canvas_of, logits_of
from unmask import ModelError, ModelSpec, infill
from unmask.embedded.tasks.grids import LATIN
from unmask.models.toys.oracle import MarkovOracle, TableOracle

SIZE, LENGTH = 3, 4
MASK = SIZE
SPEC = ModelSpec(MASK, SIZE + 1, name="oracle")
EVERY = list(itertools.product(range(SIZE), repeat=LENGTH))
CANVASES = st.lists(st.integers(0, MASK), min_size=LENGTH, max_size=LENGTH)


def random_table(seed, count=12):
    generator = torch.Generator().manual_seed(seed)
    picked = torch.randperm(len(EVERY), generator=generator)[:count].tolist()
    weights = (torch.rand(count, generator=generator, dtype=torch.float64) + 0.05).tolist()
    return [EVERY[i] for i in picked], weights


def brute_force(sequences, weights, canvas, position):
    """p(x_position | the other positions), from the sequences with the fewest mismatches."""
    mistakes = [
        sum(
            shown not in (MASK, token)
            for j, (shown, token) in enumerate(zip(canvas, sequence, strict=True))
            if j != position
        )
        for sequence in sequences
    ]
    fewest = min(mistakes)
    actual = [0.0] * (SIZE + 1)
    for sequence, weight, wrong in zip(sequences, weights, mistakes, strict=True):
        if wrong == fewest:
            actual[sequence[position]] += weight
    return [p / sum(actual) for p in actual]


def marginals(model, canvas):
    return logits_of(model, canvas_of(canvas, mask=MASK))[0].exp()


@given(seed=st.integers(0, 1000), canvas=CANVASES)
def test_table_marginals_are_those_of_brute_force_and_leave_the_position_itself_out(seed, canvas):
    sequences, weights = random_table(seed)
    actual = marginals(TableOracle(sequences, weights, SPEC), canvas)
    for position in range(LENGTH):
        wanted = brute_force(sequences, weights, canvas, position)
        assert actual[position].tolist() == pytest.approx(wanted, abs=1e-12)


def test_a_visible_token_is_no_evidence_about_itself():
    oracle = TableOracle([(0, 0), (1, 1)], [1.0, 3.0], ModelSpec(3, 4))
    actual = logits_of(oracle, canvas_of([0, 3], mask=3))[0].exp()
    assert actual[0].tolist() == pytest.approx([0.25, 0.75, 0.0, 0.0])
    assert actual[1].tolist() == pytest.approx([1.0, 0.0, 0.0, 0.0])


def test_what_no_sequence_fits_is_answered_by_the_nearest():
    oracle = TableOracle([(0, 0, 0), (1, 1, 1)], [1.0, 1.0], ModelSpec(3, 4))
    actual = logits_of(oracle, canvas_of([2, 0, 3], mask=3))
    assert actual[0, 2].exp().tolist() == pytest.approx([1.0, 0.0, 0.0, 0.0])


def test_weights_need_not_sum_to_one():
    oracle = TableOracle([(0, 0), (1, 0)], [2.0, 6.0], ModelSpec(3, 4))
    assert oracle.log_likelihood([1, 0]) == pytest.approx(math.log(0.75))
    assert oracle.log_likelihood([1, 1]) == -math.inf


def test_a_table_oracle_fills_a_valid_answer_one_token_at_a_time():
    squares = [[cell for row in grid for cell in row] for grid in LATIN]
    oracle = TableOracle(squares, [1.0] * len(squares), ModelSpec(4, 5))
    result = infill(oracle, [4] * 16, "confidence | top(1)")
    assert oracle.log_likelihood(result.canvas.tolist()) == pytest.approx(-math.log(576))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TableOracle([[0, 1], [0]], [1, 1], SPEC), "sequences of one length"),
        (lambda: TableOracle([[0, 1]], [1, 1], SPEC), "one weight for each"),
        (lambda: TableOracle([[0, 1], [1, 1]], [1, 0], SPEC), "every weight .* must be > 0"),
        (lambda: TableOracle([[0, 9]], [1], SPEC), "vocabulary"),
        (lambda: TableOracle([], [], SPEC), "sequences of one length"),
    ],
)
def test_a_broken_table_is_named(make, message):
    with pytest.raises(ModelError, match=message):
        make()


def test_a_canvas_of_another_length_is_named():
    with pytest.raises(ModelError, match=r"must have 4 positions, got \[3\]"):
        marginals(TableOracle(*random_table(0), SPEC), [MASK] * 3)


def chain(seed):
    generator = torch.Generator().manual_seed(seed)
    initial = torch.rand(SIZE, generator=generator, dtype=torch.float64) + 0.05
    transition = torch.rand(SIZE, SIZE, generator=generator, dtype=torch.float64) + 0.05
    return MarkovOracle(initial / initial.sum(), transition / transition.sum(-1, True), SPEC)


@given(seed=st.integers(0, 1000), canvas=CANVASES)
def test_forward_backward_is_brute_force_over_the_chain(seed, canvas):
    oracle = chain(seed)
    weights = [math.exp(oracle.log_likelihood(sequence)) for sequence in EVERY]
    actual = marginals(oracle, canvas)
    for position in range(LENGTH):
        wanted = brute_force(EVERY, weights, canvas, position)
        assert actual[position].tolist() == pytest.approx(wanted, abs=1e-10)


def test_the_chain_is_a_distribution():
    oracle = chain(0)
    total = sum(math.exp(oracle.log_likelihood(sequence)) for sequence in EVERY)
    assert total == pytest.approx(1.0)


@given(canvas=CANVASES, other=st.lists(st.integers(0, MASK), min_size=5, max_size=9))
def test_padding_changes_nothing_about_the_chain(canvas, other):
    oracle = chain(3)
    both = logits_of(oracle, canvas_of(canvas, other, mask=MASK))[0, :LENGTH]
    torch.testing.assert_close(both.exp(), marginals(oracle, canvas), rtol=1e-12, atol=1e-12)


def test_a_long_chain_neither_under_nor_overflows():
    actual = marginals(chain(0), [MASK] * 2000)
    assert not actual.isnan().any()
    torch.testing.assert_close(actual.sum(-1), torch.ones(2000, dtype=torch.float64))


def test_a_token_outside_the_chain_is_refused_or_tells_nothing():
    oracle = MarkovOracle(
        torch.tensor([0.5, 0.5]), torch.tensor([[0.9, 0.1], [0.1, 0.9]]), ModelSpec(3, 4, 2)
    )
    try:
        strange = logits_of(oracle, canvas_of([2, 3], mask=3))[0, 1].exp()
    except ModelError:
        return
    blank = logits_of(oracle, canvas_of([3, 3], mask=3))[0, 1].exp()
    torch.testing.assert_close(strange, blank)


@pytest.mark.parametrize(
    ("initial", "transition", "message"),
    [
        ([0.5, 0.6], [[0.5, 0.5], [0.5, 0.5]], "must sum to 1"),
        ([0.5, 0.5], [[0.5, 0.6], [0.5, 0.5]], "must sum to 1"),
        ([0.5, 0.5], [[1.0, 0.0], [0.5, 0.5]], "must be > 0"),
    ],
)
def test_a_broken_chain_is_named(initial, transition, message):
    with pytest.raises(ModelError, match=message):
        MarkovOracle(torch.tensor(initial), torch.tensor(transition), SPEC)
