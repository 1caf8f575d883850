"""What a trial asks of every example."""

from __future__ import annotations

from tests.lab.sweep.test_run import works
from tests.paths import ROOT
from unmask.decoding.options import OPTIONS
from unmask.lab.sweep.grid import settings_of
from unmask.lab.sweep.plan import Sessions, work_of

# A value for every option that is not its default, and options that it needs.
OTHERS = {
    "rule": ("confidence | top(2)", {}), "length": (40, {}), "block": (8, {}),
    "eos": ("stop", {}), "steps": (20, {}), "history": (8, {}), "temperature": (0.5, {}),
    "top_p": (0.9, {"temperature": 0.5}), "top_k": (5, {"temperature": 0.5}),
    "tempered": (True, {"temperature": 0.5}), "seed": (7, {}), "cache": ("prefix", {}),
    "guidance": (1.5, {}), "dtype": ("bfloat16", {}), "mask_id": (1, {}), "family": ("llada", {}),
    "sub_block": (2, {"model": str(ROOT / "tests/golden/models/sdar-tiny")}),
    "template_args": ('{"enable_thinking": false}', {}),
}  # fmt: skip


def seeds(work):
    return {ask.example: work.request(ask).seed for ask in work.asks}


def test_every_example_has_a_seed_of_its_own_that_no_other_setting_changes():
    first, other_rule = works(limit=4)
    assert len(set(seeds(first).values())) == 4
    assert seeds(other_rule) == seeds(first)
    (fewer, _), (reseeded, _) = works(limit=2), works(limit=4, seed=1)
    assert seeds(fewer).items() < seeds(first).items()
    assert not set(seeds(reseeded).values()) & set(seeds(first).values())


def trial(sessions, **options):
    table = {"task": "words", "rule": "confidence | top(1)", **options}
    (setting,) = settings_of(table, "mine.toml")
    return work_of(setting, sessions.of(setting), []).trial


def test_every_option_is_part_of_a_trials_key():
    sessions = Sessions()
    assert set(OTHERS) == set(OPTIONS)
    for name, (value, needed) in OTHERS.items():
        with_it, without = trial(sessions, **needed, **{name: value}), trial(sessions, **needed)
        assert with_it.record().get(name) == value, name
        assert with_it.key != without.key, name
