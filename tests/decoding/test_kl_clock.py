"""The time of the KL, which is made in one pass with everything else."""

from __future__ import annotations

import pytest
import torch

from unmask import Rule, Settings, decode_steps, from_function, prompt_request
from unmask.decoding.kl_clock import EVERY, KLClock, Lap
from unmask.kernels.reduce import Previous, reduce

KL = frozenset({"prev_cur"})
V = 8


class Passes:
    """`reduce` with a clock: a pass takes 2 seconds, and 3 more with a KL."""

    def __init__(self, monkeypatch):
        self.now, self.made = 0.0, []
        monkeypatch.setattr("unmask.decoding.kl_clock.perf_counter", lambda: self.now)
        monkeypatch.setattr("unmask.decoding.kl_clock.reduce", self)

    def __call__(self, logits, previous=None, kl=frozenset(), uniform_start=False):
        self.made.append(bool(kl))
        self.now += 5.0 if kl else 2.0
        return reduce(logits, previous, kl, uniform_start)


@pytest.fixture
def passes(monkeypatch):
    return Passes(monkeypatch)


def logits(seed=0, rows=3):
    return torch.randn(rows, V, generator=torch.Generator().manual_seed(seed))


def past(seed=1, rows=3):
    return Previous(logits(seed, rows), torch.arange(rows))


def test_the_kl_is_what_a_pass_without_it_saves(passes):
    clock = KLClock()
    clock(logits(), past(), KL, False)
    assert clock.spent() == (3.0, 2.0)
    clock(logits(), past(), KL, False)
    clock(logits(), past(), KL, False)
    kl, probes = clock.spent()
    assert (kl, probes) == (pytest.approx(6.0), 0.0)
    assert clock.spent() == (0.0, 0.0)


def test_one_pass_of_sixteen_is_made_again(passes):
    clock = KLClock()
    for _ in range(2 * EVERY + 1):
        clock(logits(), past(), KL, False)
    assert passes.made.count(False) == 3
    assert passes.made.index(False) == 1


def test_a_pass_without_a_kl_is_not_timed_and_one_without_a_past_not_repeated(passes):
    clock = KLClock()
    clock(logits(), past(), frozenset(), False)
    clock(logits(), None, KL, False)
    assert passes.made == [False, True]
    assert clock.spent() == (0.0, 0.0)


def test_the_statistics_are_those_of_reduce():
    clock = KLClock()
    for seed in range(3):
        now, then = logits(seed), past(seed + 1)
        stats, expected = clock(now, then, KL, False), reduce(now, then, KL)
        for name, value in vars(expected).items():
            column = getattr(stats, name)
            assert column is value is None or torch.equal(column, value), name


def test_a_decode_is_the_same_with_it():
    def model_of(ids):
        return torch.sin(torch.arange(V) * (1.0 + ids.sum(-1)[:, None, None])).repeat(
            1, ids.shape[-1], 1
        ) + torch.cos(torch.arange(ids.shape[-1])[:, None] * torch.arange(V))

    model = from_function(model_of, mask_id=0, vocab_size=V)
    settings = Settings(Rule.parse("confidence | swd(5) | eb(0.5)"))
    request = prompt_request(model.spec, [1, 2], 6, settings)
    clock = KLClock()
    canvases = [
        [step.tokens.tolist() for step in decode_steps(model, [request], **more)]
        for more in ({}, {"reducer": clock})
    ]
    assert canvases[0] == canvases[1]
    assert clock.spent().probes > 0


class Event:
    """A moment on a GPU that is not there; whoever asks for it too early is refused."""

    clock, waited = 0.0, False

    def __init__(self, enable_timing):
        assert enable_timing

    def record(self, stream):
        Event.clock += 250.0
        self.at = Event.clock

    def elapsed_time(self, other):
        assert Event.waited, "nobody has waited for the GPU yet"
        return other.at - self.at


def test_a_gpu_is_timed_by_its_events_and_never_waited_for(monkeypatch):
    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: device)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda *_: pytest.fail("a wait"))
    lap = Lap(torch.device("cuda", 0)).stop()
    Event.waited = True
    assert lap.seconds == 0.25
