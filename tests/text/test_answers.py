"""Text in, text out: masks in texts, chats, and the time of model and decision apart."""

from dataclasses import dataclass

import pytest

from tests.checkpoints import BOS, MASK, make_llada
from unmask.decoding.api import decode
from unmask.decoding.request import Settings
from unmask.decoding.resolve import Resolved
from unmask.errors import RequestError
from unmask.kernels.reduce import reduce
from unmask.models.load import load
from unmask.models.wrappers.timed import Timed
from unmask.rules.rule import Rule
from unmask.rules.scores import confidence
from unmask.rules.select import TopK
from unmask.text.answers import decode_requests
from unmask.text.clock import Seconds, timed_steps
from unmask.text.prompts import PromptFormat, encode_masks

SETTINGS = Settings(Rule.parse("confidence | top(2)"))


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    return load(make_llada(tmp_path_factory.mktemp("models") / "tiny"))


class FakeTime:
    """Time that passes only when it is told to."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = FakeTime()
    monkeypatch.setattr("unmask.text.clock.perf_counter", clock)
    monkeypatch.setattr("unmask.models.wrappers.timed.perf_counter", clock)
    monkeypatch.setattr("unmask.decoding.kl_clock.perf_counter", clock)
    return clock


class Slow:
    """A model whose trunk takes 4 seconds and whose head takes 2."""

    def __init__(self, model, clock):
        self.model, self.clock = model, clock
        self.spec, self.device = model.spec, model.device

    def trunk(self, canvas):
        self.clock.now += 4
        return self.model.trunk(canvas)

    def head(self, *cells):
        self.clock.now += 2
        return self.model.head(*cells)


@dataclass(frozen=True)
class Pondering:
    """A selection that takes half a second."""

    clock: FakeTime

    def __call__(self, view, scores):
        self.clock.now += 0.5
        return TopK(2)(view, scores)


def request_of(loaded, text, settings, length):
    """A plain text as a request."""
    spec = loaded.model.spec
    rendered = PromptFormat().of_text(text).render(loaded.tokenizer)
    return rendered.request(loaded.tokenizer, spec, Resolved(settings, length, spec, 0))


def test_placeholders_become_masks_and_the_rest_stays_text(loaded):
    tokenizer = loaded.tokenizer
    ids = encode_masks(tokenizer, "a[MASK] b[MASK*3]<|mdm_mask|>", MASK)
    assert ids == [*tokenizer.encode("a"), MASK, *tokenizer.encode(" b"), *[MASK] * 4]


def test_a_chat_with_masks_is_rendered_first(loaded):
    prompt = PromptFormat(chat=True, has_template=True, infill=True).of_text("a [MASK]")
    rendered = prompt.render(loaded.tokenizer)
    resolved = Resolved(SETTINGS, 1, loaded.model.spec, 0)
    request = rendered.request(loaded.tokenizer, loaded.model.spec, resolved)
    canvas = request.canvas.tolist()
    assert canvas[0] == BOS
    assert canvas.count(MASK) == 1


def test_a_chat_keeps_its_own_system_message():
    own = [{"role": "system", "content": "mine"}, {"role": "user", "content": "a"}]
    texts = PromptFormat(chat=True, has_template=True, system="yours")
    assert list(texts.of_messages(own).messages) == own
    assert texts.of_messages(own[1:]).messages[0] == {"role": "system", "content": "yours"}


def test_texts_with_masks_are_raw_unless_a_chat_is_asked_for():
    assert PromptFormat(has_template=True).in_chat(infill=False)
    assert not PromptFormat(has_template=True).in_chat(infill=True)
    assert PromptFormat(chat=True).in_chat(infill=True)
    assert not PromptFormat(chat=False, has_template=True).in_chat(infill=False)


def test_the_time_of_the_model_is_not_the_decisions_and_the_readers_is_nobodys(loaded, clock):
    def read(step):
        clock.now += 100

    settings = Settings(Rule(confidence, Pondering(clock)))
    request = request_of(loaded, "Hello", settings, 8)
    slow = Slow(loaded.model, clock)
    _, answer = next(decode_requests(slow, loaded.tokenizer, [request], 1, read, timed_steps))
    assert answer.nfe == 4
    assert answer.seconds == Seconds.of_parts(model=4 * 6.0, decision=4 * 0.5)
    assert answer.seconds.total == 26.0


def test_an_ordinary_run_measures_the_whole_step_and_waits_for_nothing(loaded, clock, monkeypatch):
    monkeypatch.setattr(Timed, "_wait", lambda self: pytest.fail("it waits for the device"))
    request = request_of(loaded, "Hello", Settings(Rule(confidence, Pondering(clock))), 8)
    _, answer = next(decode_requests(Slow(loaded.model, clock), loaded.tokenizer, [request]))
    assert answer.seconds == Seconds(total=4 * 6.5)
    assert answer.record()["seconds"] == {"total": 26.0}


def test_rows_of_a_batch_share_the_time_of_their_forwards(loaded, clock):
    settings = Settings(Rule(confidence, Pondering(clock)))
    requests = [
        request_of(loaded, text, settings, length)
        for text, length in (("Hello", 4), ("Good morning", 12))
    ]
    slow = Slow(loaded.model, clock)
    answers = decode_requests(slow, loaded.tokenizer, requests, 2, None, timed_steps)
    seconds = {key: answer.seconds for key, answer in answers}
    assert seconds[0] == Seconds.of_parts(2 * 6.0 / 2, 2 * 0.5 / 2)
    assert seconds[1] == Seconds.of_parts(2 * 6.0 / 2 + 4 * 6.0, 2 * 0.5 / 2 + 4 * 0.5)


def test_the_kl_is_a_part_of_the_decision_and_its_measurement_of_nothing(
    loaded, clock, monkeypatch
):
    def passing(logits, previous=None, kl=frozenset(), uniform_start=False):
        clock.now += 5 if kl else 2
        return reduce(logits, previous, kl, uniform_start)

    monkeypatch.setattr("unmask.decoding.kl_clock.reduce", passing)
    settings = Settings(Rule.parse("confidence | swd(5) | top(2)"))
    request = request_of(loaded, "Hello", settings, 8)
    _, answer = next(
        decode_requests(loaded.model, loaded.tokenizer, [request], 1, None, timed_steps)
    )
    assert answer.nfe == 4
    assert answer.seconds.decision == 4 * 5.0
    assert answer.seconds.kl == pytest.approx(3 * 3.0)  # the first forward has no past
    assert answer.record()["seconds"]["kl"] == 9.0


def test_timed_changes_nothing_but_its_seconds(loaded):
    model = loaded.model
    timed = Timed(model)
    prompt = loaded.tokenizer.encode("Hello")
    assert decode(timed, prompt, length=8).ids == decode(model, prompt, length=8).ids
    assert (timed.spec, timed.device) == (model.spec, model.device)
    assert timed.seconds > 0


def test_half_a_character_is_refused(loaded):
    with pytest.raises(RequestError, match="half a character"):
        request_of(loaded, "a\ud83d", SETTINGS, 4)
