"""Starts the real server for tests, in a thread, on a free loopback port."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import httpx
import openai

from unmask.cli import main, parser
from unmask.cli.serve import served_model
from unmask.server.app import create_app
from unmask.server.run import Server, listen, server_of
from unmask.server.service import Service

PENS = "Ann has 12 pens. She buys 3, then loses 5. How many now?"
WORDS = [PENS, "Repeat: pig, bee, cow.", "Sort: 5, 2, 9.", "Reverse: cat, dog.", "Repeat: pig."]


@dataclass
class Running:
    """A running server, and clients for it."""

    url: str
    service: Service
    server: Server
    thread: threading.Thread

    @property
    def http(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=60, trust_env=False)

    @property
    def openai(self) -> openai.OpenAI:
        return openai.OpenAI(base_url=f"{self.url}/v1", api_key="none", max_retries=0, timeout=60)

    def chat(self, text=PENS, **fields):
        """Send a chat; the response is not streamed."""
        messages = [{"role": "user", "content": text}]
        with self.http as http:
            return http.post("/v1/chat/completions", json={"messages": messages, **fields})

    def complete(self, prompt, **fields):
        with self.http as http:
            return http.post("/v1/completions", json={"prompt": prompt, **fields})

    def stream(self, text=PENS, **fields):
        """The events of a chat, read as JSON; the last one must be [DONE]."""
        messages = [{"role": "user", "content": text}]
        body = {"messages": messages, "stream": True, **fields}
        with self.http as http:
            response = http.post("/v1/chat/completions", json=body)
        return events_of(response.text)


def events_of(text):
    *events, done, rest = text.split("\n\n")
    assert (done, rest) == ("data: [DONE]", "")
    return [json.loads(event.removeprefix("data: ")) for event in events]


def text_of(events):
    """All deltas of the first choice, joined."""
    deltas = (c["delta"].get("content") for e in events for c in e["choices"] if c["index"] == 0)
    return "".join(delta for delta in deltas if delta)


class Gate:
    """A model that waits for a permit before each forward."""

    def __init__(self, model):
        self.model, self.spec, self.device = model, model.spec, model.device
        self.permits, self.open = threading.Semaphore(0), threading.Event()
        self.arrived = threading.Semaphore(0)
        self.sizes = []

    def trunk(self, canvas):
        self.sizes.append(len(canvas.tokens))
        self.arrived.release()
        if not self.open.is_set():
            self.permits.acquire(timeout=60)
        return self.model.trunk(canvas)

    def head(self, hidden, rows, positions):
        return self.model.head(hidden, rows, positions)

    def wait(self):
        """Wait until a forward is about to start."""
        assert self.arrived.acquire(timeout=60)

    def let(self, count=1):
        for _ in range(count):
            self.permits.release()

    def let_all(self):
        self.open.set()
        self.permits.release()


@contextmanager
def serving(*options, wrap=lambda model: model, key=None, traces=True) -> Iterator[Running]:
    """`unmask serve` with these options, without signal handlers; `wrap` wraps the model."""
    arguments = parser().parse_args(["serve", *map(str, options)])
    served = served_model(arguments)
    begin_trace = served.session.tracer if traces is True else traces
    model, size = wrap(served.session.model()), arguments.batch_size
    service = Service(served, model, size, arguments.queue, begin_trace)
    ready = threading.Event()
    app = create_app(service, key, arguments.allow_host)
    bound = listen("127.0.0.1", 0)
    server = server_of(app, service, arguments.grace, ready.set)
    thread = threading.Thread(target=server.run, args=([bound],))
    service.start()
    thread.start()
    assert ready.wait(30)
    try:
        yield Running(f"http://127.0.0.1:{bound.getsockname()[1]}", service, server, thread)
    finally:
        server.should_exit = True
        thread.join(30)
        service.stop()
        assert not thread.is_alive()


def run_text(capsys, *arguments):
    """The JSON that `unmask run` prints."""
    assert main(["run", *map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)
