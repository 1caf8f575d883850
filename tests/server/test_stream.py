"""Streams: settled text that only grows, whole canvases, and clients that leave."""

import asyncio
import threading
import time

import httpx
import pytest

from tests.server.serving import PENS, Gate, events_of, serving, text_of
from unmask.server.choices import Mailbox
from unmask.server.engine import RowOutcome
from unmask.server.replies import Reply
from unmask.server.schema import ChatRequest
from unmask.server.stream import EventStream, events
from unmask.text.settled import RowCanvas

RULES = [
    "confidence | eb(3)",
    "random | top(3)",
    "confidence | eb(3) | revoke(0.001, times=2)",
    "confidence | swd(5) | eb(1)",
]


@pytest.mark.parametrize(
    ("rule", "fields"),
    [*zip(RULES, [{"temperature": 1.0}, {"eos": "fill"}, {"block": 6}, {}], strict=True)],
    ids=str,
)
def test_all_deltas_together_are_the_whole_text(tiny, rule, fields):
    fields = {"rule": rule, **fields}
    for text in ("Hello", "Grüße, 你好"):
        whole = tiny.chat(text, **fields).json()["choices"][0]["message"]["content"]
        assert text_of(tiny.stream(text, **fields)) == whole


def test_a_canvas_that_is_filled_is_streamed_too(tiny):
    body = {"prompt": "A [MASK*5] and [MASK*3].", "infill": True}
    with tiny.http as http:
        whole = http.post("/v1/completions", json=body).json()["choices"][0]["text"]
        text = http.post("/v1/completions", json={**body, "stream": True}).text
    assert "".join(e["choices"][0]["text"] for e in events_of(text)) == whole
    assert whole.startswith("A ")


def test_text_is_sent_before_the_row_is_finished():
    gates = []

    def gate(model):
        gates.append(Gate(model))
        return gates[0]

    with serving(wrap=gate) as running, running.openai as client:
        stream = client.chat.completions.create(
            model="embedded",
            messages=[{"role": "user", "content": PENS}],
            stream=True,
            extra_body={"rule": "confidence | ar(2)"},
        )
        gates[0].let(3)
        pieces = []
        for chunk in stream:
            pieces.append(chunk.choices[0].delta.content or "")
            if len("".join(pieces)) >= len("12 + 3"):
                gates[0].let_all()
    assert "".join(pieces).startswith("12 + 3 = 15.")
    assert len([piece for piece in pieces if piece]) > 3


def test_diffusing_gives_the_whole_canvas_at_each_step(embedded):
    whole = embedded.chat(length=16).json()
    events = embedded.stream(length=16, diffusing=True)
    opening, *steps, last = events
    assert opening["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    progress = [event["diffusion_meta"]["diffusion_progress"] for event in [*steps, last]]
    assert progress == sorted(progress)
    assert progress[-1] == 1.0
    assert all(event["diffusion_meta"]["diffusion_content"] for event in steps)
    assert last["choices"][0]["delta"]["content"] == whole["choices"][0]["message"]["content"]
    assert last["choices"][0]["finish_reason"] == "stop"
    forwards = [event["unmask"]["forward"] for event in steps]
    assert forwards == sorted(set(forwards))
    assert forwards[-1] <= whole["usage"]["nfe"]
    for event in steps:
        cells = event["unmask"]["cells"]
        assert len(cells) == 16
        assert {cell["state"] for cell in cells} <= {"masked", "new", "committed", "end"}
        masked = sum(cell["state"] == "masked" for cell in cells)
        assert event["diffusion_meta"]["diffusion_progress"] == round(1 - masked / 16, 4)


def test_a_snapshot_replaces_the_one_before(tiny):
    body = {"prompt": "A [MASK*6]!", "infill": True, "stream": True, "diffusing": True}
    with tiny.http as http:
        *steps, last = events_of(http.post("/v1/completions", json=body).text)[1:]
    for event in steps:
        text, cells = event["choices"][0]["text"], event["unmask"]["cells"]
        assert text.startswith("A ")
        assert text.endswith("!")
        assert text.count("·") == sum(cell["state"] == "masked" for cell in cells)
        assert [cell["state"] for cell in cells][:2] == ["given", "given"]
    whole = {key: body[key] for key in ("prompt", "infill")}
    with tiny.http as http:
        expected = http.post("/v1/completions", json=whole).json()["choices"][0]["text"]
    assert last["choices"][0]["text"] == expected


# Clients that leave


def until(condition):
    """Poll until the server has noticed that its client left."""
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


@pytest.fixture
def gated():
    gates = []

    def gate(model):
        gates.append(Gate(model))
        return gates[0]

    with serving("--batch-size", 2, "--queue", 8, wrap=gate) as running:
        try:
            yield running, gates[0]
        finally:
            gates[0].let_all()


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_leaves_frees_its_row_at_once(gated, stream):
    running, gate = gated
    engine = running.service.engine
    body = {"messages": [{"role": "user", "content": PENS}], "stream": stream}
    client = httpx.Client(base_url=running.url, timeout=60, trust_env=False)
    request = client.build_request("POST", "/v1/chat/completions", json=body)

    def ask():
        try:
            response = client.send(request, stream=True)
            response.read()
        except httpx.HTTPError:
            pass

    asking = threading.Thread(target=ask)
    asking.start()
    gate.wait()
    assert engine.rows == 1
    kill(client)
    until(lambda: engine._cancelled)
    gate.let()  # the forward that was under way
    until(lambda: engine.idle)
    asking.join(30)
    assert engine.counts.cancelled == 1
    assert engine.counts.forwards == 1
    with running.http as http:
        until(lambda: 'status="499"' in http.get("/metrics").text)


def kill(client):
    """Close the connections of a client, as a killed process does."""
    for connection in client._transport._pool.connections:
        stream = connection._connection._network_stream
        stream.get_extra_info("socket").shutdown(2)


def test_a_client_that_leaves_the_queue_gives_its_place_to_the_next(gated):
    running, gate = gated
    engine = running.service.engine
    body = {"messages": [{"role": "user", "content": PENS}], "stream": True}
    clients = [httpx.Client(base_url=running.url, timeout=60, trust_env=False) for _ in range(4)]
    streams = [
        client.send(client.build_request("POST", "/v1/chat/completions", json=body), stream=True)
        for client in clients
    ]
    until(lambda: engine.rows + engine.waiting == 4)
    waiting = engine.waiting  # two of them, or three if the second came too late to join
    streams[3].close()
    until(lambda: engine.waiting == waiting - 1)
    gate.let_all()
    texts = [text_of(events_of(stream.read().decode())) for stream in streams[:3]]
    assert len(set(texts)) == 1
    for client in clients:
        client.close()
    assert engine.counts.finished == 3


def test_a_slow_reader_gets_the_latest_and_nothing_piles_up():
    async def read():
        mailbox = Mailbox()
        frames = [RowCanvas([number], 0, number) for number in range(1000)]
        for frame in frames:
            mailbox.put(0, frame)
        mailbox.put(1, frames[5])
        first = await mailbox.take()
        filling = threading.Thread(target=lambda: [mailbox.put(0, frame) for frame in frames])
        filling.start()
        filling.join()
        mailbox.put(0, RowOutcome())
        return first, await mailbox.take()

    first, second = asyncio.run(read())
    assert {index: news.forward for index, news in first.items()} == {0: 999, 1: 5}
    assert second == {0: RowOutcome()}


def test_a_reader_that_sleeps_is_sent_what_is_new_when_it_wakes(embedded):
    """While sending blocks, the row goes on and only its latest canvas is kept."""
    service, sent, awake = embedded.service, [], None

    async def send(message):
        sent.append(message)
        await awake.wait()

    async def receive():
        await asyncio.Event().wait()

    async def answer():
        nonlocal awake
        awake = asyncio.Event()
        messages = [{"role": "user", "content": PENS}]
        body = ChatRequest(messages=messages, rule="confidence | ar(2)", stream=True)
        _, choices = await service.submit(body)
        reply = Reply(True, "embedded", {}, 0, service.served.session.tokenizer)
        stream = events(choices, reply, diffusing=True, usage=False, first_text=lambda: None)
        response = EventStream(stream, lambda: service.cancel(choices))
        answering = asyncio.ensure_future(response({}, receive, send))
        while not service.engine.idle or not sent:
            await asyncio.sleep(0.01)
        assert len(sent) == 1
        awake.set()
        await answering

    asyncio.run(answer())
    assert len(sent) == 5  # the head, the opening, the end, [DONE], and the end of the body
    assert b'"finish_reason": "stop"' in sent[2]["body"]
