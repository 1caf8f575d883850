"""The memory of parts is kept, joined, cut and forgotten with its rows."""

import torch

from unmask.decoding.memory import MemoryStore
from unmask.rules.memory import PartMemory

COUNT = PartMemory("a.count", 0, row=True)
LEVEL = PartMemory("a.level", 0.5, sequence=True)
PAIR = PartMemory("a.pair", -1, (2,))
ALL = (COUNT, LEVEL, PAIR)


def test_new_rows_hold_the_start_values():
    store = MemoryStore.of(ALL, 2, 3)
    assert store.values["a.count"].tolist() == [0, 0]
    assert store.values["a.level"].tolist() == [[0.5] * 3] * 2
    assert store.values["a.pair"].shape == (2, 3, 2)


def test_joined_rows_have_the_greatest_length_and_start_values_in_the_gaps():
    long, short = MemoryStore.of(ALL, 1, 4), MemoryStore.of(ALL, 1, 2)
    short.values["a.level"] += 1
    short.values["a.pair"] += 5
    both = long.joined([short], 4)
    assert both.values["a.level"][1].tolist() == [1.5, 1.5, 0.5, 0.5]
    assert both.values["a.pair"][1].tolist() == [[4, 4], [4, 4], [-1, -1], [-1, -1]]


def test_a_new_window_forgets_what_does_not_belong_to_the_sequence():
    store = MemoryStore.of(ALL, 2, 2)
    for value in store.values.values():
        value += 1
    store.forget(torch.tensor([True, False]))
    assert store.values["a.count"].tolist() == [0, 1]
    assert store.values["a.level"].tolist() == [[1.5, 1.5], [1.5, 1.5]]
    assert store.values["a.pair"].tolist() == [[[-1, -1]] * 2, [[0, 0]] * 2]


def test_only_the_own_window_of_a_row_is_written():
    store, inside = MemoryStore.of(ALL, 2, 4), torch.tensor([[True, True], [True, False]])
    new = {"a.level": torch.tensor([[1.0, 2.0], [3.0, 4.0]])}
    store.write(new, torch.tensor([0, 2]), inside)
    assert store.values["a.level"].tolist() == [[1, 2, 0.5, 0.5], [0.5, 0.5, 3, 0.5]]
    assert store.seen(torch.tensor([0, 2]), torch.tensor([2, 3]), 2)["a.level"].tolist() == [
        [1, 2],
        [3, 0.5],
    ]


def test_a_part_sees_start_values_beyond_a_rows_own_window():
    store = MemoryStore.of(ALL, 2, 4)
    store.values["a.level"] += 1
    seen = store.seen(torch.tensor([0, 1]), torch.tensor([3, 2]), 3)["a.level"]
    assert seen.tolist() == [[1.5, 1.5, 1.5], [1.5, 0.5, 0.5]]


def test_what_a_step_has_seen_is_not_changed_by_later_steps():
    store = MemoryStore.of(ALL, 1, 1)
    seen = store.seen(torch.tensor([0]), torch.tensor([1]), 1)
    store.values["a.count"] += 1
    assert seen["a.count"].tolist() == [0]


def test_rows_are_kept_by_their_numbers():
    store = MemoryStore.of(ALL, 3, 1)
    store.values["a.count"][:] = torch.tensor([7, 8, 9])
    assert store[torch.tensor([2, 0])].values["a.count"].tolist() == [9, 7]


def test_a_canvas_that_grows_moves_what_is_remembered_of_its_positions():
    store = MemoryStore.of(ALL, 1, 2)
    store.values["a.level"][0] = torch.tensor([1.0, 2.0])
    store.relay(torch.tensor([[0, -1, -1, 1]]))
    assert store.values["a.level"].tolist() == [[1, 0.5, 0.5, 2]]
