"""The engine: rows join, leave, fail and start again without changing other rows."""

import threading
from dataclasses import dataclass

import pytest
import torch

import unmask
from tests.helpers import outcome, random_lookup
from tests.server.serving import Gate
from unmask import Rule, RuleError, Settings, decode, prompt_request
from unmask.rules.select import best_first, first_in
from unmask.server.engine import Closing, Engine, Full, RowOutcome
from unmask.server.fairness import Account

RULES = [
    "confidence | swd(5) | eb(0.5)",
    "confidence | top(1)",
    "entropy | swd(1) | eb(1)",
    "random | top(2)",
    "confidence | klass(0.5, kl=0.1)",
    "credit(0.65) | confidence | threshold(0.5)",
    "confidence | eb(1) | revoke(0.3)",
]


class Asked:
    """A row that keeps its outcomes and hands its steps to listeners."""

    apart, started = False, 0.0

    def __init__(self, model, rule="confidence | top(1)", prompt=(1,), length=8, listeners=list):
        settings = Settings(Rule.parse(rule))
        self.rule, self.prompt, self.length = rule, prompt, length
        self.done, self.outcomes = threading.Event(), []
        self.request = prompt_request(model.spec, list(prompt), length, settings, seed=3)
        self.listen, self.listeners = listeners, []
        self.account = Account()

    def begin(self):
        self.listeners = self.listen()

    def see(self, step, row):
        return any(listener.see(step, row) for listener in self.listeners)

    def close(self, result):
        for listener in self.listeners:
            listener.close(result)

    def end(self, outcome: RowOutcome) -> None:
        self.outcomes.append(outcome)
        self.done.set()

    def result(self):
        assert self.done.wait(60)
        (ended,) = self.outcomes
        if ended.error is not None:
            raise ended.error
        return ended.result

    def check(self, model):
        """Check that the result is the same as without other rows."""
        alone = decode(model, list(self.prompt), self.rule, length=self.length, seed=3)
        assert outcome(self.result()) == outcome(alone)


@dataclass
class Following:
    """A listener that records its steps, and ends its row or raises at one of them."""

    steps: list
    enough_at: int = -1
    fails_at: int = -1
    closed: list | None = None

    def see(self, step, row):
        forward = int(step.forward[row])
        self.steps.append(forward)
        if forward == self.fails_at:
            raise ZeroDivisionError
        return forward == self.enough_at

    def close(self, result):
        if self.closed is not None:
            self.closed.append(result)


@pytest.fixture
def engine():
    started = []

    def start(model, **sizes):
        made = Engine(model, **sizes)
        made.start()
        started.append(made)
        return made

    yield start
    for made in started:
        if isinstance(made._batch.model, Gate):
            made._batch.model.let_all()
        made.stop()


def test_rows_of_all_settings_in_one_batch_are_as_if_alone(engine):
    model = random_lookup(0)
    asked = [Asked(model, rule, (1 + n % 5,), 6 + n % 4) for n, rule in enumerate(RULES * 3)]
    engine(model, batch_size=5).submit(asked)
    for one in asked:
        one.check(model)


def test_a_place_that_is_free_is_taken_at_the_next_step(engine):
    gate = Gate(random_lookup(0))
    running = engine(gate, batch_size=2)
    asked = [Asked(gate, length=n) for n in (2, 4, 3)]
    running.submit(asked)
    gate.let_all()
    for one in asked:
        one.check(gate.model)
    assert gate.sizes == [2, 2, 2, 2, 1]
    assert running.counts.forwards == 5
    assert running.counts.row_forwards == 9
    assert running.counts.tokens == 9


def test_a_full_queue_refuses_and_takes_again_when_there_is_room(engine):
    gate = Gate(random_lookup(0))
    running = engine(gate, batch_size=1, queue_size=2)
    asked = [Asked(gate) for _ in range(5)]
    running.submit([asked[0]])
    gate.wait()
    running.submit([asked[1], asked[2]])
    with pytest.raises(Full):
        running.submit([asked[3]])
    assert (running.rows, running.waiting) == (1, 2)
    assert 1 <= running.retry_after() <= 60
    running.cancel([asked[1]])
    assert running.waiting == 1
    running.submit([asked[3]])
    with pytest.raises(Full):
        running.submit([asked[4]])
    gate.let_all()
    for number in (0, 2, 3):
        asked[number].check(gate.model)
    assert not asked[1].done.is_set()


def test_all_choices_of_a_request_are_taken_or_none(engine):
    gate = Gate(random_lookup(0))
    running = engine(gate, batch_size=1, queue_size=2)
    with pytest.raises(Full):
        running.submit([Asked(gate) for _ in range(4)])
    assert running.idle
    running.submit([Asked(gate) for _ in range(3)])


def test_a_cancelled_row_is_free_before_the_next_forward(engine):
    gate = Gate(random_lookup(0))
    running = engine(gate, batch_size=2)
    kept, gone, next_one = (Asked(gate, prompt=(n,)) for n in (1, 2, 3))
    running.submit([kept, gone, next_one])
    gate.wait()
    gate.let()
    gate.wait()
    running.cancel([gone])
    gate.let_all()
    kept.check(gate.model)
    next_one.check(gate.model)
    assert not gone.done.is_set()
    assert gate.sizes[:4] == [2, 2, 2, 2]  # the next one took its place at once
    assert running.counts.row_forwards == 8 + 8 + 2
    assert running.counts.cancelled == 1


def test_a_listener_sees_every_step_of_its_row_and_no_other(engine):
    model = random_lookup(0)
    notes = [[] for _ in range(3)]
    closed = []
    asked = []
    for n, note in enumerate(notes):
        following = Following(note, closed=closed)
        asked.append(Asked(model, prompt=(n + 1,), length=3 + n, listeners=lambda f=following: [f]))
    engine(model, batch_size=2).submit(asked)
    results = [one.result() for one in asked]
    assert notes == [[0, 1, 2], [0, 1, 2, 3], [0, 1, 2, 3, 4]]
    assert {r.key for r in closed} == {r.key for r in results}


def test_a_listener_that_has_enough_lets_the_row_go(engine):
    model, notes, closed = random_lookup(0), [], []
    running = engine(model, batch_size=2)
    asked = Asked(model, listeners=lambda: [Following(notes, enough_at=2, closed=closed)])
    other = Asked(model, prompt=(2,))
    running.submit([asked, other])
    assert asked.result() is None
    assert (notes, closed) == ([0, 1, 2], [None])
    other.check(model)


def test_a_listener_that_fails_fails_its_own_request(engine, caplog):
    model = random_lookup(0)
    running = engine(model, batch_size=3)
    asked = Asked(model, listeners=lambda: [Following([], fails_at=2)])
    last = Asked(model, listeners=lambda: [Following([], fails_at=7)])
    other = Asked(model, prompt=(2,))
    running.submit([asked, last, other])
    for one in (asked, last):
        with pytest.raises(ZeroDivisionError):
            one.result()
    other.check(model)
    assert running.counts.failed == 2


def test_listeners_that_cannot_be_made_fail_their_own_request(engine):
    model = random_lookup(0)
    running = engine(model)
    asked, other = Asked(model, listeners=lambda: [][0]), Asked(model, prompt=(2,))
    running.submit([asked, other])
    with pytest.raises(IndexError):
        asked.result()
    other.check(model)


@pytest.fixture
def picky():
    """A selection that raises if any row of the view would write token 3."""

    @unmask.selection
    def picky(view, scores):
        chosen = first_in(best_first(scores.key, view.masked), 1, view.masked)
        if 3 in view.token[chosen]:
            raise ZeroDivisionError("3")
        return chosen

    return "confidence | picky"


def test_a_rule_that_fails_fails_only_the_rows_it_fails_on(engine, picky):
    model = random_lookup(0)
    asked = [Asked(model, picky, (n,)) for n in range(1, 8)]
    others = [Asked(model, rule, (2,)) for rule in RULES]
    running = engine(model, batch_size=16)
    running.submit([*asked, *others])
    for one in others:
        one.check(model)
    failed = 0
    for one in asked:
        try:
            expected = decode(model, list(one.prompt), picky, length=8, seed=3)
        except RuleError:
            failed += 1
            with pytest.raises(RuleError):
                one.result()
        else:
            assert outcome(one.result()) == outcome(expected)
    assert 0 < failed < len(asked)
    assert running.idle


def test_a_row_that_begins_again_has_new_listeners(engine, picky):
    model, made = random_lookup(0), []
    fine = next(n for n in range(1, 8) if _works(model, picky, n))
    bad = next(n for n in range(1, 8) if not _works(model, picky, n))
    closed = []

    def listen():
        made.append(Following([], closed=closed))
        return [made[-1]]

    asked = Asked(model, picky, (fine,), listeners=listen)
    engine(model).submit([asked, Asked(model, picky, (bad,))])
    assert len(asked.result().answer) == 8
    assert made[-1].steps == list(range(8))
    assert len(made) == 2
    assert len(closed) == 1


def _works(model, rule, prompt):
    try:
        decode(model, [prompt], rule, length=8, seed=3)
    except RuleError:
        return False
    return True


class Weak:
    """A model that raises for more than two rows, and for a canvas that starts with token 4."""

    def __init__(self, model):
        self.model, self.spec, self.device = model, model.spec, model.device

    def trunk(self, canvas):
        if len(canvas.tokens) > 2 or bool((canvas.tokens[:, 0] == 4).any()):
            raise MemoryError
        return self.model.trunk(canvas)

    def head(self, hidden, rows, positions):
        return self.model.head(hidden, rows, positions)


def test_a_forward_that_fails_fails_only_the_row_that_cannot_do_alone(engine, caplog):
    model = Weak(random_lookup(0))
    running = engine(model, batch_size=4)
    asked = [Asked(model, RULES[n % 3], (n,)) for n in (1, 2, 3, 4, 5, 6)]
    running.submit(asked)
    for one in asked:
        if one.prompt == (4,):
            with pytest.raises(MemoryError):
                one.result()
        else:
            one.check(model)
    assert "start again alone" in caplog.text
    assert running.idle


def test_a_suspect_can_be_cancelled(engine):
    model = Weak(random_lookup(0))
    gate = Gate(model)
    running = engine(gate, batch_size=3)
    asked = [Asked(model, prompt=(n,)) for n in (1, 2, 3)]
    running.submit(asked)
    gate.wait()
    gate.let()
    gate.wait()  # the first of them, alone
    running.cancel([asked[1]])
    gate.let_all()
    asked[0].check(model)
    asked[2].check(model)
    assert not asked[1].done.is_set()


def test_a_rule_that_goes_on_for_ever_is_given_up(engine):
    model = random_lookup(0)
    running = engine(model, most_forwards=20)
    endless = Asked(model, "confidence | top(1) | revoke(1e-9, times=1000)")
    fine = Asked(model, prompt=(2,), length=20)
    running.submit([endless, fine])
    with pytest.raises(RuleError, match="the rule is not done after 20 forwards"):
        endless.result()
    fine.check(model)


def test_closing_refuses_what_is_new_and_finishes_what_is_there(engine):
    gate = Gate(random_lookup(0))
    running = engine(gate, batch_size=1)
    asked = [Asked(gate), Asked(gate, prompt=(2,))]
    running.submit(asked)
    gate.wait()
    running.close()
    with pytest.raises(Closing):
        running.submit([Asked(gate)])
    gate.let_all()
    for one in asked:
        one.check(gate.model)


def test_aborting_tells_everybody_at_once(engine):
    gate = Gate(random_lookup(0))
    running = engine(gate, batch_size=1)
    asked = [Asked(gate), Asked(gate, prompt=(2,))]
    running.submit(asked)
    gate.wait()
    running.abort(RuleError("enough"))
    for one in asked:
        with pytest.raises(RuleError, match="enough"):
            one.result()
    gate.let_all()
    later = Asked(gate, prompt=(3,))
    running.submit([later])
    later.check(gate.model)
    assert [len(one.outcomes) for one in asked] == [1, 1]


def test_a_model_that_gives_nan_is_told_to_those_it_concerns(engine, caplog):
    class Nan(Weak):
        def trunk(self, canvas):
            self.bad = canvas.tokens[:, 0] == 4
            return self.model.trunk(canvas)

        def head(self, hidden, rows, positions):
            logits = self.model.head(hidden, rows, positions)
            return torch.where(self.bad[rows][:, None], torch.nan, logits)

    model = Nan(random_lookup(0))
    asked = [Asked(model, prompt=(n,)) for n in (1, 4, 5)]
    engine(model).submit(asked)
    with pytest.raises(unmask.ModelError, match="gave NaN"):
        asked[1].result()
    asked[0].check(model.model)
    asked[2].check(model.model)
