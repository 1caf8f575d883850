"""Many rules at once give what each gives on its own."""

from collections import Counter
from dataclasses import replace
from hashlib import sha256

import pytest
import torch

from tests.checkpoints import make_llada
from unmask import decode_many, load
from unmask.embedded import compare as comparison
from unmask.embedded.cells import EB, THRESHOLD, TOP, Cell
from unmask.embedded.compare import Outcome, Part, Series, compare, decode_cells, gathered
from unmask.embedded.tasks import TASKS
from unmask.errors import LabError
from unmask.models.wrappers.memoised import Remembered

LENGTH = 12
SERIES = Series("copy", 3, LENGTH)
ONE_BY_ONE = [
    Cell("confidence", 0.0, TOP),
    Cell("margin", 5.0, TOP),
    Cell("confidence", 5.0, TOP, 4),
    Cell("entropy", 1.0, TOP, 6, "suppress"),
    Cell("confidence", 0.0, TOP, None, "last"),
]
OTHERS = [
    Cell("confidence", 5.0, "eb(3)"),
    Cell("entropy", 0.0, THRESHOLD, 4),
    Cell("margin", 1.0, EB, None, "suppress"),
    Cell("confidence", 0.0, "top(2)", 4, "last"),
    *(Cell("confidence", 0.0, TOP, 4, eos) for eos in ("stop", "block", "fill")),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_llada(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="module")
def loaded(folder):
    """In float64, so that rounding decides nothing; EOS is a token that it likes to write."""
    model, tokenizer = load(folder, dtype=torch.float64)
    written = [
        result.answer.tolist()
        for result in decode_many(model, prompts(tokenizer), "confidence | top(1)", length=LENGTH)
    ]
    inside = Counter(token for answer in written for token in set(answer[2:-3]) - set(answer[:2]))
    often = inside.most_common(1)[0][0]
    ending = replace(model.spec, eos_id=often, stop_ids=(often,))
    return replace(model, spec=ending), tokenizer


@pytest.fixture(autouse=True)
def coin(monkeypatch):
    """A checker that says of any text at random, but always the same, whether it solves."""

    def solved(problem, text):
        return sha256(f"{problem.content}/{text}".encode()).digest()[0] % 2 == 0

    monkeypatch.setitem(TASKS, "copy", replace(TASKS["copy"], solved=solved))


def prompts(tokenizer):
    return [
        tokenizer.encode_chat([{"role": "user", "content": problem.prompt}])
        for problem in SERIES.problems()
    ]


def one_by_one(model, tokenizer, cell):
    """A cell through the ordinary loop, to the last position."""
    results = decode_many(
        model, prompts(tokenizer), cell.rule, length=LENGTH, block=cell.block, eos=cell.eos
    )
    texts = [tokenizer.decode(result.ids, skip_special=True) for result in results]
    return [
        Outcome(
            TASKS["copy"].solved(problem, text), result.nfe, result.nfe_eos, len(result.ids), text
        )
        for problem, result, text in zip(SERIES.problems(), results, texts, strict=True)
    ]


def test_every_cell_gives_what_it_gives_alone(loaded):
    model, tokenizer = loaded
    cells = ONE_BY_ONE + OTHERS
    found = decode_cells(Remembered(model), tokenizer, SERIES.problems(), cells, LENGTH)
    assert list(found) == cells
    for cell in cells:
        assert found[cell] == one_by_one(model, tokenizer, cell)


def test_one_token_per_forward_is_not_decoded_beyond_its_end(loaded):
    model, tokenizer = loaded
    memory = Remembered(model)
    found = decode_cells(memory, tokenizer, SERIES.problems(), ONE_BY_ONE[:1], LENGTH)
    outcomes = found[ONE_BY_ONE[0]]
    assert any(outcome.nfe_eos < LENGTH for outcome in outcomes)
    assert [outcome.nfe for outcome in outcomes] == [LENGTH] * 3
    ends = [outcome.nfe_eos if outcome.tokens < LENGTH else LENGTH for outcome in outcomes]
    assert memory.asked == sum(ends)


def test_problems_are_held_out_and_the_same_every_time():
    problems = SERIES.problems()
    assert problems == Series("copy", 5, LENGTH).problems()[:3]
    assert problems == TASKS["copy"].sample("test", 3, 0)
    assert problems != replace(SERIES, seed=1).problems()
    assert problems != replace(SERIES, split="calibration").problems()


def test_parts_are_gathered_in_the_order_of_the_problems():
    cell = Cell("confidence", 0.0, TOP)
    some = [Outcome(False, number, number, number, str(number)) for number in range(5)]
    parts = [(range(2, 4), some[2:4]), (range(4, 5), some[4:]), (range(2), some[:2])]
    found = gathered([Part(SERIES, places, {cell: each}) for places, each in parts])
    assert found == {SERIES: {cell: some}}


def test_processes_give_what_one_gives(folder, monkeypatch):
    monkeypatch.setattr(comparison, "AT_ONCE", 2)
    series, cells = Series("reverse", 3, LENGTH), [ONE_BY_ONE[0], OTHERS[0]]
    other = Series("copy", 1, LENGTH)
    parts = list(compare(folder, {series: cells, other: cells[:1]}, workers=2))
    found = gathered(parts)
    assert sorted((part.series.task, part.places.start) for part in parts) == [
        ("copy", 0),
        ("reverse", 0),
        ("reverse", 2),
    ]
    model, tokenizer = load(folder, dtype="float32")
    problems, memory = series.problems(), Remembered(model)
    assert found[series] == decode_cells(memory, tokenizer, problems, cells, LENGTH)
    assert found[other] == decode_cells(memory, tokenizer, other.problems(), cells[:1], LENGTH)


@pytest.mark.parametrize("count", [0, -1])
def test_a_series_without_problems_is_refused(count):
    with pytest.raises(LabError, match=f"a series of copy needs at least one problem, got {count}"):
        Series("copy", count, LENGTH)


def test_comparing_nothing_is_refused(folder):
    with pytest.raises(LabError, match="there is nothing to compare"):
        next(compare(folder, {}))
