"""Lanes: a wide canvas does not slow down narrow ones, and every row is as if alone."""

import threading

from tests.helpers import random_lookup
from tests.server.test_engine import RULES, Asked
from unmask.models.caches import Cached
from unmask.models.wrappers.guided import Guided
from unmask.server import lanes
from unmask.server.engine import Engine
from unmask.server.lanes import TimeShares, can_take_turns, lane_of


class Widths:
    """A model that records the width and the rows of each forward."""

    def __init__(self, model):
        self.model, self.spec, self.device = model, model.spec, model.device
        self.seen, self.go = [], threading.Event()

    def trunk(self, canvas):
        assert self.go.wait(60)
        self.seen.append((canvas.tokens.shape[-1], len(canvas.tokens)))
        return self.model.trunk(canvas)

    def head(self, hidden, rows, positions):
        return self.model.head(hidden, rows, positions)


def test_lanes_are_four_times_as_wide_as_the_one_before():
    widths = {1: 0, 128: 0, 129: 1, 512: 1, 513: 2, 2048: 2, 5120: 3}
    assert {width: lane_of(width) for width in widths} == widths


def test_a_narrow_row_does_not_pay_for_a_wide_one(monkeypatch):
    monkeypatch.setattr(lanes, "NARROW", 4)
    model = Widths(random_lookup(0))
    engine = Engine(model, batch_size=8)
    wide = [Asked(model, "confidence | top(1)", (n,), 20) for n in (1, 2)]
    narrow = [Asked(model, rule, (3,), 8) for rule in RULES]
    engine.start()
    try:
        engine.submit([*wide, *narrow[:6]])
        model.go.set()
        for one in [*narrow[:6], *wide]:
            one.check(model.model)
        assert {width for width, _ in model.seen} == {9, 21}
        assert all(rows <= 2 for width, rows in model.seen if width == 21)
        assert max(rows for width, rows in model.seen if width == 9) == 6
        assert engine.idle
    finally:
        engine.stop()


def test_lanes_share_the_time_by_their_requests():
    shares, seconds, steps = TimeShares(), {0: 0.001, 2: 0.1}, {0: 0, 2: 0}
    for _ in range(2000):
        lane = shares.next_lane([0, 2])
        steps[lane] += 1
        shares.spend(lane, seconds[lane], {0: 3, 2: 1}[lane])
    spent = {lane: steps[lane] * seconds[lane] for lane in steps}
    assert 2.5 < spent[0] / spent[2] < 3.5
    shares = TimeShares()
    for _ in range(50):
        shares.spend(shares.next_lane([2]), 0.1, 1)
    assert shares.next_lane([0, 2]) == 0  # it begins level and does not make up for its absence
    shares.spend(0, 0.2, 1)
    assert shares.next_lane([0, 2]) == 2


def test_rows_with_a_cache_never_miss_a_forward():
    class Remembering(Cached):
        def __init__(self, model):
            self.model, self.spec, self.device = model, model.spec, model.device

    model = random_lookup(0)
    assert can_take_turns(model)
    assert not can_take_turns(Remembering(model))
    assert not can_take_turns(Guided(Remembering(model), 0.5))
