"""What a trial asks of every example."""

from __future__ import annotations

from tests.lab.sweep.test_run import works


def seeds(work):
    return {ask.example: work.request(ask).seed for ask in work.asks}


def test_every_example_has_a_seed_of_its_own_that_no_other_setting_changes():
    first, other_rule = works(limit=4)
    assert len(set(seeds(first).values())) == 4
    assert seeds(other_rule) == seeds(first)
    (fewer, _), (reseeded, _) = works(limit=2), works(limit=4, seed=1)
    assert seeds(fewer).items() < seeds(first).items()
    assert not set(seeds(reseeded).values()) & set(seeds(first).values())
