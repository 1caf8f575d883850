"""500 random corruptions of traces, stores and checkpoints; prints a count of each outcome as JSON.

Run it alone: PYTHONPATH=src python -m tests.hostile.corruptions
"""

from __future__ import annotations

import gzip
import json
import random
import resource
import shutil
import struct
import sys
import tempfile
import traceback
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from tests.checkpoints import make_llada, make_sdar
from tests.lab.makers import answer, asks, trial
from tests.trace.runs import anything, traced
from unmask import decode, load
from unmask.errors import UnmaskError
from unmask.lab.report.gather import gather
from unmask.lab.sweep.store import Store
from unmask.models.fingerprint import fingerprint
from unmask.trace import Trace
from unmask.trace.recording.replay import replay
from unmask.trace.story.locate import written
from unmask.trace.story.overview import tell_run
from unmask.trace.story.position_story import tell_position
from unmask.trace.story.step_story import tell_step

PART = int(sys.argv[1]) if len(sys.argv) > 1 else 1  # 1 of so many corruptions
TRACES, STORES, CHECKPOINTS = 200 // PART, 150 // PART, 150 // PART
RULES = (
    "confidence | swd(1) | top(1)",
    "margin | threshold(0.4) | revoke(0.2)",
    "confidence | swd(5) | eb(0.1)",
)
ODD: list[Any] = [
    None, True, False, -1, 0, 1, 10**6, 2**31, 2**70, 1.5, 1e300, float("inf"), float("nan"),
    "", "x", "a\nb", "../x", [], [[]], {}, {"a": 1}, [1], [[1, 2]], [[1, 2, 3]],
]  # fmt: skip


def damaged(raw: bytes, pick: random.Random, kind: str) -> bytes:
    """The bytes of a file after an accident."""
    data, at = bytearray(raw), pick.randrange(len(raw))
    if kind == "bit":
        data[at] ^= 1 << pick.randrange(8)
    elif kind == "bytes":
        size = len(data[at : at + pick.choice([1, 8, 64])])
        data[at : at + size] = pick.randbytes(size)
    elif kind == "swap":
        size = len(data[at : at + 64])
        other = pick.randrange(max(1, len(data) - size))
        data[at : at + size] = data[other : other + size]
    else:
        data = data[:at]
    return bytes(data)


def forged(record: Any, pick: random.Random) -> None:
    """Change a field of a JSON record by hand."""
    places = list(_places(record))
    if not places:
        return
    node, key = pick.choice(places)
    if pick.random() < 0.2 and isinstance(node, dict):
        del node[key]
    else:
        node[key] = pick.choice(ODD)


def _places(node: Any) -> Iterator[tuple[Any, Any]]:
    inner = node.items() if isinstance(node, dict) else enumerate(node[:5])
    for key, value in list(inner):
        yield node, key
        if isinstance(value, dict | list):
            yield from _places(value)


def outcome(use: Callable[[], str]) -> str:
    """What `use` says, `refused` for an error in one line, else `traceback`."""
    try:
        return use()
    except UnmaskError as error:
        return "refused" if "\n" not in str(error) and len(str(error)) < 1000 else "long message"
    except BaseException:
        traceback.print_exc()
        return "traceback"


def corrupt_traces(count: int) -> Iterator[tuple[str, str]]:
    """Accidents, forged fields and a few bombs, read, told and replayed."""
    runs = [anything(text, seed) for text in RULES for seed in (1, 5)]
    kept = [(model, traced(model, request)[0]) for model, request in runs]
    for seed in range(count):
        pick = random.Random(f"trace {seed}")
        model, raw = pick.choice(kept)
        kind = pick.choice(["bit", "bytes", "swap", "cut", "forged", "forged"])
        if seed % 40 == 39:
            kind, data = "bomb", _bomb(pick.choice([b" ", b"\n", b'{"a":[]}\n', b"[[],[]]\n"]))
        elif kind == "forged":
            records = [json.loads(line) for line in gzip.decompress(raw).splitlines()]
            forged(pick.choice(records), pick)
            lines = [json.dumps(record).encode() + b"\n" for record in records]
            data = gzip.compress(b"".join(lines))
        else:
            data = damaged(raw, pick, kind)
        yield kind, outcome(lambda: _use_trace(data, Trace.of(raw), model, kind == "forged"))  # noqa: B023


def _bomb(content: bytes) -> bytes:
    """600 megabytes in a small gzip file: one that is compressed once, repeated."""
    piece, count, check = content * (2**20 // len(content)), 600, 0
    zipper = zlib.compressobj(9, zlib.DEFLATED, -15)
    once = zipper.compress(piece) + zipper.flush(zlib.Z_FULL_FLUSH)
    for _ in range(count):
        check = zlib.crc32(piece, check)
    end = zlib.compressobj(9, zlib.DEFLATED, -15).flush()
    head = b"\x1f\x8b\x08" + bytes(6) + b"\xff"
    return head + once * count + end + struct.pack("<II", check, len(piece) * count)


def _use_trace(data: bytes, whole: Trace, model: Any, by_hand: bool) -> str:
    trace = Trace.of(data)
    tell_run(trace)
    for position in written(trace)[:2]:
        tell_position(trace, position)
    for step in range(1, len(trace.moments) + 1):
        tell_step(trace, step)
    replay(trace, model)
    if by_hand:  # with a right checksum it is another trace
        return "read"
    pairs = zip(whole.moments, trace.moments, strict=False)
    alike = all((a.writes, a.revoked) == (b.writes, b.revoked) for a, b in pairs)
    if not alike or (trace.finished and trace.end != whole.end):
        return "CHANGED"
    return "same" if trace.finished else "cut off"


def corrupt_stores(folder: Path, count: int) -> Iterator[tuple[str, str]]:
    """Accidents with a store of 200 answers, which a report then reads."""
    file = folder / "store.sqlite"
    with Store(file) as store:
        store.sign_in({"torch": "2"})
        store.add(trial(), {"task": "words"})
        for ask in asks(200):
            store.claim(trial(), ask)
            store.finish(trial(), ask, answer(text=f"the answer to {ask.example}"))
            store.grade(trial(), ask, {"acc": True, "acc_compat": False}, "words 1")
    whole, figures = file.read_bytes(), _figures(file)
    for seed in range(count):
        pick = random.Random(f"store {seed}")
        kind = pick.choice(["bit", "bytes", "swap", "cut"])
        for old in folder.iterdir():
            old.unlink()
        file.write_bytes(damaged(whole, pick, kind))
        yield kind, outcome(lambda: "same" if _figures(file) == figures else "CHANGED")


def _figures(file: Path) -> str:
    results = gather(file)
    with Store(file, create=False) as store:
        return repr((results, [store.rows(each) for each in store.trials()]))


def corrupt_checkpoints(folder: Path, count: int) -> Iterator[tuple[str, str]]:
    """Accidents and forged fields in each file of a checkpoint, which is then loaded and run."""
    bases = [make_llada(folder / "llada"), make_sdar(folder / "sdar")]
    known = {base: (fingerprint(base), _answer(base)) for base in bases}
    for seed in range(count):
        pick = random.Random(f"checkpoint {seed}")
        base, copy = pick.choice(bases), folder / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(base, copy)
        names = ("config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors")
        file = copy / pick.choice(names)
        kind = pick.choice(["bit", "bytes", "cut", "forged"])
        if kind == "forged" and file.suffix == ".json":
            record = json.loads(file.read_bytes())
            forged(record, pick)
            file.write_text(json.dumps(record))
        else:
            kind = "bit" if kind == "forged" else kind
            file.write_bytes(damaged(file.read_bytes(), pick, kind))
        yield kind, outcome(lambda: _use_checkpoint(copy, *known[base]))  # noqa: B023


def _answer(folder: Path) -> list[int]:
    model, tokenizer = load(folder)
    prompt = tokenizer.encode_chat([{"role": "user", "content": "Hello you"}])
    return decode(model, torch.tensor(prompt), rule="confidence | top(2)", length=8).ids


def _use_checkpoint(folder: Path, mark: str, wanted: list[int]) -> str:
    """Another answer is no secret: stores and traces hold the fingerprint of the weights."""
    if _answer(folder) == wanted:
        return "same"
    return "other fingerprint" if fingerprint(folder) != mark else "CHANGED"


def main() -> None:
    """Corrupt everything and print the counts."""
    torch.set_num_threads(1)
    counts: dict[str, Counter[str]] = {}
    with tempfile.TemporaryDirectory() as stores, tempfile.TemporaryDirectory() as checkpoints:
        attacks = {
            "trace": corrupt_traces(TRACES),
            "store": corrupt_stores(Path(stores), STORES),
            "checkpoint": corrupt_checkpoints(Path(checkpoints), CHECKPOINTS),
        }
        for name, attack in attacks.items():
            counts[name] = Counter(f"{kind}: {result}" for kind, result in attack)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    json.dump({"counts": counts, "megabytes": memory}, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
