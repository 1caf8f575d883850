"""Load test of the server under attack: what its neighbours notice, and whether it ends in time.

First `bench.serve`'s clients alone, then the same clients with silent sockets, pollers of /health
and one request after another of the greatest cost that is allowed. At the end, SIGTERM comes while
requests run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import time
from collections import Counter
from contextlib import suppress
from typing import Any

from bench.serve import (
    PROMPTS,
    WAYS,
    LoadTally,
    ServerProcess,
    answer_of,
    ask,
    body_of,
    client,
    health,
    quantile,
    watch,
)

GREATEST = {
    "messages": [{"role": "user", "content": "Repeat:" + " pig" * 120}],
    "n": 8, "length": 1024, "rule": "confidence | top(1)", "eos": "suppress",
}  # fmt: skip


async def silent(port: int, end: float) -> None:
    """A connection that says nothing, opened again when the server closes it."""
    while time.perf_counter() < end:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        with suppress(asyncio.TimeoutError, OSError):
            await asyncio.wait_for(reader.read(), max(0.0, end - time.perf_counter()))
        writer.transport.abort()


async def poller(port: int, end: float, polls: Counter[str]) -> None:
    """Ask for /health as fast as the server answers."""
    while time.perf_counter() < end:
        try:
            polls[(await health(port)).get("status", "refused")] += 1
        except (OSError, ValueError) as error:
            polls[type(error).__name__] += 1


async def greatest(port: int, end: float, heavy: Counter[str]) -> None:
    """Send the greatest request again and again."""
    while time.perf_counter() < end:
        wait = max(0.1, end - time.perf_counter())
        try:
            status, _, retry = await asyncio.wait_for(ask(port, GREATEST), wait)
            heavy[str(status)] += 1
            await asyncio.sleep(retry)
        except asyncio.TimeoutError:
            heavy["still decoding"] += 1


async def clients(server: ServerProcess, count: int, seconds: float, expected: Any) -> LoadTally:
    """The clients of `bench.serve`, for so many seconds."""
    tally, end = LoadTally(), time.perf_counter() + seconds
    dice = [random.Random(f"siege.{number}") for number in range(count)]
    work = [client(server.port, expected, end, tally, die) for die in dice]
    await asyncio.gather(watch(server, end, tally), *work)
    return tally


async def last_requests(server: ServerProcess, count: int) -> tuple[Counter[str], float]:
    """SIGTERM while requests run: their statuses, and the seconds until the process has ended."""

    async def one(number: int) -> str:
        try:
            return str((await ask(server.port, body_of(number % 35, "whole")))[0])
        except (OSError, asyncio.IncompleteReadError) as error:
            return type(error).__name__

    asked = [asyncio.ensure_future(one(number)) for number in range(count)]
    heavy = asyncio.ensure_future(ask(server.port, GREATEST))
    await asyncio.sleep(0.5)
    begin = time.perf_counter()
    server.process.terminate()
    statuses = Counter(await asyncio.gather(*asked))
    statuses[f"greatest {(await heavy)[0]}"] += 1
    while server.process.poll() is None:
        await asyncio.sleep(0.02)
    return statuses, time.perf_counter() - begin


async def siege(server: ServerProcess, options: argparse.Namespace) -> dict[str, Any]:
    """Quiet, attacked, ended."""
    expected = []
    for number in range(len(PROMPTS) * len(WAYS)):
        _, data, _ = await ask(server.port, body_of(number, "whole"))
        expected.append(answer_of("whole", data))
    quiet = await clients(server, options.clients, options.seconds, expected)
    polls, heavy = Counter[str](), Counter[str]()
    end = time.perf_counter() + options.seconds
    attack = [asyncio.ensure_future(greatest(server.port, end, heavy))]
    while not (await health(server.port))["rows"]:  # it decodes before the queue is full
        await asyncio.sleep(0.02)
    attack += [asyncio.ensure_future(silent(server.port, end)) for _ in range(options.silent)]
    attack += [asyncio.ensure_future(poller(server.port, end, polls)) for _ in range(2)]
    attacked = await clients(server, options.clients, options.seconds, expected)
    await asyncio.gather(*attack)
    statuses, seconds = await last_requests(server, 20)
    sizes = [round(size / 1e6, 1) for size in attacked.memory]
    return {
        **{f"quiet_{name}": value for name, value in figures_of(quiet, options).items()},
        **{f"siege_{name}": value for name, value in figures_of(attacked, options).items()},
        "ratio_p99": round(quantile(attacked.seconds, 0.99) / quantile(quiet.seconds, 0.99), 2),
        "polls": dict(polls),
        "greatest": dict(heavy),
        "memory_mb_quarters": [sizes[(len(sizes) - 1) * part // 4] for part in range(5)],
        "last_requests": dict(statuses),
        "seconds_to_end": round(seconds, 1),
    }


def figures_of(tally: LoadTally, options: argparse.Namespace) -> dict[str, Any]:
    """The figures of one phase."""
    return {
        "answers_per_second": round(len(tally.seconds) / options.seconds, 1),
        "p50": round(quantile(tally.seconds, 0.5), 3),
        "p99": round(quantile(tally.seconds, 0.99), 3),
        "longest": round(max(tally.seconds), 3),
        "statuses": dict(tally.statuses),
        "killed": tally.killed,
        "wrong": len(tally.wrong),
    }


def main() -> None:
    """Print the figures and JSON; exit 1 if an answer is wrong or a limit is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--silent", type=int, default=300)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--grace", type=float, default=10.0)
    options = parser.parse_args()
    server = ServerProcess(8, 64, "--grace", str(options.grace))
    try:
        figures = asyncio.run(siege(server, options))
    finally:
        code, stderr = server.stop()
    figures |= {"exit_code": code, "stderr": stderr.count("\n")}
    for name, value in figures.items():
        print(f"{name:24} {value}")
    print(json.dumps(figures))
    print(stderr[-2000:], end="")
    known = set(figures["quiet_statuses"]) | set(figures["siege_statuses"]) <= {"200", "429"}
    right = figures["quiet_wrong"] == figures["siege_wrong"] == code == 0
    ended = figures["seconds_to_end"] < options.grace + 10
    raise SystemExit(0 if known and right and ended and figures["ratio_p99"] <= 5 else 1)


if __name__ == "__main__":
    main()
