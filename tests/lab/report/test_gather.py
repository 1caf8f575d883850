"""A store read for a report."""

from __future__ import annotations

import pytest

from tests.lab.makers import answer, asks, trial
from tests.lab.stores import HERE, fill, solved
from unmask.errors import LabError
from unmask.lab.report.findings import Findings
from unmask.lab.report.gather import gather
from unmask.lab.sweep.store import AskedExample, Store


@pytest.fixture
def file(tmp_path):
    return tmp_path / "store.sqlite"


def test_every_trial_with_a_verdict_has_a_summary(file):
    gathered = gather(fill(file, {trial(): solved("110"), trial(block=16): solved("10")}))
    assert [(each.trial.block, each.count) for each in gathered.summaries] == [(16, 2), (None, 3)]
    assert gathered.name == "store.sqlite"


def test_texts_and_ids_are_not_kept_in_memory(file):
    gathered = gather(fill(file, {trial(): solved("1", text="long", ids=[1, 2])}))
    assert not {"text", "ids"} & gathered.summaries[0].rows[0].answer.keys()


def test_incomplete_trials_are_named_with_what_they_have(file):
    trials = {
        trial(): solved("1111"),
        trial(block=4): solved("11"),
        trial(block=8): solved("1?1?"),
        trial(block=16): solved("??"),
        trial(block=32): [],
        trial(task="code"): solved("11"),
    }
    incomplete = {each.trial.block: each for each in gather(fill(file, trials)).incomplete}
    assert {block: (w.graded, w.decoded, w.most) for block, w in incomplete.items()} == {
        4: (2, 2, 4),
        8: (2, 4, 4),
        16: (0, 2, 4),
        32: (0, 0, 4),
    }


def test_an_example_in_two_wordings_is_counted_once_and_named(file):
    fill(file, {trial(): solved("11"), trial(block=4): solved("11")})
    with Store(file) as store:
        store.sign_in(HERE)
        again = AskedExample("000", "reworded")
        store.claim(trial(block=4), again)
        store.finish(trial(block=4), again, answer())
        store.grade(trial(block=4), again, {"acc": True, "acc_compat": True}, "words 1")
    (incomplete,) = gather(file).incomplete
    assert (incomplete.trial.block, incomplete.graded, incomplete.most, incomplete.twice) == (
        4,
        3,
        2,
        1,
    )


def test_workers_of_one_environment_are_one_machine(file):
    (first, second, third) = asks(3)
    for environment, ask in ((HERE, first), (HERE | {"device": "other"}, second), (HERE, third)):
        with Store(file) as store:
            store.sign_in(environment)
            store.add(trial())
            store.claim(trial(), ask)
            store.finish(trial(), ask, answer())
            store.grade(trial(), ask, {"acc": True, "acc_compat": True}, "words 1")
    gathered = gather(file)
    assert [(m.name, m.workers, m.examples) for m in gathered.machines] == [
        ("A", (1, 3), 2),
        ("B", (2,), 1),
    ]
    assert gathered.machines_of(gathered.summaries[0]) == "A+B"


def test_an_empty_store_is_refused_in_one_line(file):
    Store(file).close()
    with pytest.raises(LabError, match=r"store\.sqlite holds no trial; fill it with `unmask eval`"):
        gather(file)


def test_a_store_without_a_verdict_is_refused_in_one_line(file):
    fill(file, {trial(): solved("??"), trial(block=16): []})
    with pytest.raises(LabError, match="holds 2 trials with 2 answers, none of them graded"):
        gather(file)


def test_a_store_that_is_not_there_is_not_made(file):
    with pytest.raises(LabError, match="does not exist"):
        gather(file)
    assert not file.exists()


def test_the_wording_of_prompts_goes_into_the_record(file):
    with Store(file) as store:
        store.sign_in(HERE)
        store.add(trial(), {"task": "words", "preset": {"name": "own", "version": 1}})
        (ask,) = asks(1)
        store.claim(trial(), ask)
        store.finish(trial(), ask, answer())
        store.grade(trial(), ask, {"acc": True, "acc_compat": True}, "words 1")
    record = Findings.of(gather(file)).record()
    assert record["tasks"] == [{"task": "words", "preset": {"name": "own", "version": 1}}]
