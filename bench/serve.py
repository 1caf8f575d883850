"""Load test of the server on the embedded model: errors, latency, memory, exactness, rows left.

The clients break off a tenth of their requests. Every answer is compared with the answer to the
same request sent alone.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PROMPTS = (
    "Ann has 12 pens. She buys 3, then loses 5. How many now?",
    "Repeat: pig, bee, cow.", "Sort: 5, 2, 9.", "Reverse: cat, dog.", "Repeat: pig.",
)  # fmt: skip
WAYS: tuple[dict[str, Any], ...] = (
    {"rule": "swd"},
    {"rule": "confidence | eb(0.5)", "length": 32},
    {"rule": "swd-block32", "block": 16},
    {"rule": "entropy | swd(1) | eb(0.3)", "eos": "stop"},
    {"rule": "confidence | threshold(0.9)", "temperature": 0.8, "seed": 7},
    {"rule": "confidence | eb(1) | revoke(0.3)", "length": 24},
    {"rule": "confidence | top(2)", "length": 24, "stop": "="},
)
KINDS = ("whole", "stream", "diffusing")


@dataclass
class LoadTally:
    """Counts of all clients."""

    statuses: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    killed: int = 0
    memory: list[int] = field(default_factory=list)  # every second


class ServerProcess:
    """`unmask serve` in its own process."""

    def __init__(self, batch_size: int, queue: int, *more: str) -> None:
        command = [sys.executable, "-m", "unmask", "serve", "--port", "0"]
        command += ["--batch-size", str(batch_size), "--queue", str(queue), *more]
        command.append("--no-access-log")  # nobody reads it, and a full pipe would stop the server
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        ports = (re.search(r":(\d+)\s*$", line) for line in self.process.stderr)
        port = next(filter(None, ports), None)
        assert port, "the server did not start"
        self.port = int(port[1])

    def memory(self) -> int:
        """Resident bytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) * 1024  # type: ignore[index]

    def stop(self) -> tuple[int, str]:
        """Terminate the server; returns its exit code and its output on stderr."""
        self.process.terminate()
        _, stderr = self.process.communicate(timeout=60)
        return self.process.returncode, stderr


async def ask(
    port: int, body: dict[str, Any], kill_after: float | None = None
) -> tuple[int, bytes, int]:
    """Send one request on a new connection: status, body, Retry-After; (0, ...) if killed."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        data = json.dumps(body).encode()
        head = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
        writer.write(head.encode() + data)
        if kill_after is not None:
            await asyncio.sleep(kill_after)
            writer.transport.abort()
            return 0, b"", 0
        top = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        pieces = []
        while chunk := await reader.read(65536):
            pieces.append(chunk)
        retry = re.search(r"retry-after: (\d+)", top)
        raw = b"".join(pieces)
        text = _unchunked(raw) if "transfer-encoding: chunked" in top else raw
        return int(top.split()[1]), text, int(retry[1]) if retry else 0
    finally:
        writer.close()


def _unchunked(raw: bytes) -> bytes:
    parts = []
    while raw:
        size, _, rest = raw.partition(b"\r\n")
        count = int(size, 16)
        if count == 0:
            return b"".join(parts)
        parts.append(rest[:count])
        raw = rest[count + 2 :]
    raise ValueError("the body was cut off")


def answer_of(kind: str, data: bytes) -> tuple[str, int, str]:
    """Text, NFE and finish reason of a response of that kind."""
    if kind == "whole":
        (choice,) = json.loads(data)["choices"]
        return choice["message"]["content"], choice["unmask"]["nfe"], choice["finish_reason"]
    *events, done, rest = data.decode().split("\n\n")
    assert (done, rest) == ("data: [DONE]", ""), data[-300:]
    chunks = [json.loads(event.removeprefix("data: ")) for event in events]
    contents = [chunk["choices"][0]["delta"].get("content") for chunk in chunks]
    text = contents[-1] if kind == "diffusing" else "".join(c for c in contents if c)
    last = chunks[-1]["choices"][0]
    return text, last["unmask"]["nfe"], last["finish_reason"]


def body_of(number: int, kind: str) -> dict[str, Any]:
    """Request number `number`."""
    prompt, way = PROMPTS[number % len(PROMPTS)], WAYS[number // len(PROMPTS)]
    body = {"messages": [{"role": "user", "content": prompt}], **way}
    return body | ({} if kind == "whole" else {"stream": True, "diffusing": kind == "diffusing"})


async def client(
    port: int, expected: list[Any], end: float, tally: LoadTally, dice: random.Random
) -> None:
    """Send one request after another; wait as long as a 429 says."""
    while time.perf_counter() < end:
        number, kind = dice.randrange(len(expected)), dice.choice(KINDS)
        kill = dice.uniform(0.0, 1.5) if dice.random() < 0.1 else None
        begin = time.perf_counter()
        try:
            status, data, wait = await ask(port, body_of(number, kind), kill)
        except (OSError, asyncio.IncompleteReadError, ValueError) as error:
            tally.statuses[type(error).__name__] += 1
            continue
        if status == 0:
            tally.killed += 1
            continue
        tally.statuses[str(status)] += 1
        if status == 200:
            tally.seconds.append(time.perf_counter() - begin)
            if answer_of(kind, data) != expected[number]:
                tally.wrong.append(f"{body_of(number, kind)}: {answer_of(kind, data)}")
        elif status == 429:
            await asyncio.sleep(wait * dice.uniform(1.0, 1.5))


async def watch(server: ServerProcess, end: float, tally: LoadTally) -> None:
    """Record the server's memory every second."""
    while time.perf_counter() < end:
        tally.memory.append(server.memory())
        await asyncio.sleep(1)


async def health(port: int) -> dict[str, Any]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    data = await reader.read()
    writer.close()
    counts: dict[str, Any] = json.loads(data.partition(b"\r\n\r\n")[2])
    return counts


async def load(
    server: ServerProcess, clients: int, seconds: float, seed: int
) -> tuple[LoadTally, dict[str, Any]]:
    """Run the whole test against a running server."""
    count, tally = len(PROMPTS) * len(WAYS), LoadTally()
    expected = []
    for number in range(count):
        status, data, _ = await ask(server.port, body_of(number, "whole"))
        assert status == 200, data
        expected.append(answer_of("whole", data))
    end = time.perf_counter() + seconds
    dice = [random.Random(f"{seed}.{number}") for number in range(clients)]
    work = [client(server.port, expected, end, tally, die) for die in dice]
    await asyncio.gather(watch(server, end, tally), *work)
    left: dict[str, Any] = {}
    for _ in range(200):  # the server notices the last broken requests a moment later
        left = await health(server.port)
        if not left["rows"] and not left["waiting"]:
            break
        await asyncio.sleep(0.05)
    return tally, left


def quantile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")


def report(tally: LoadTally, left: dict[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    """The results of the test."""
    sizes = [round(size / 1e6, 1) for size in tally.memory]
    return {
        "clients": options.clients,
        "seconds": options.seconds,
        "batch_size": options.batch_size,
        "queue": options.queue,
        "statuses": dict(tally.statuses),
        "killed": tally.killed,
        "answers_compared": len(tally.seconds),
        "answers_wrong": len(tally.wrong),
        "answers_per_second": round(len(tally.seconds) / options.seconds, 1),
        "latency_p50": round(quantile(tally.seconds, 0.50), 3),
        "latency_p95": round(quantile(tally.seconds, 0.95), 3),
        "latency_p99": round(quantile(tally.seconds, 0.99), 3),
        "memory_mb_quarters": [sizes[(len(sizes) - 1) * part // 4] for part in range(5)],
        "memory_mb_peak": max(sizes),
        "rows_left": left["rows"],
        "waiting_left": left["waiting"],
    }


def main() -> None:
    """Print a table and JSON; exit 1 if any answer or status is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--queue", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    server = ServerProcess(options.batch_size, options.queue)
    try:
        tally, left = asyncio.run(load(server, options.clients, options.seconds, options.seed))
    finally:
        code, stderr = server.stop()
    figures = {**report(tally, left, options), "exit_code": code, "stderr": stderr.count("\n")}
    for name, value in figures.items():
        print(f"{name:20} {value}")
    print(json.dumps(figures))
    for line in tally.wrong[:3]:
        print(line)
    print(stderr[-2000:], end="")
    fine = set(tally.statuses) <= {"200", "429"} and not tally.wrong and not stderr
    raise SystemExit(0 if fine and code == left["rows"] == left["waiting"] == 0 else 1)


if __name__ == "__main__":
    main()
