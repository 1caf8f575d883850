"""A trace that was made by somebody else: every field is checked before it is used."""

from __future__ import annotations

import gzip
import json
import resource
import zlib

import pytest

from tests.trace.runs import anything, traced
from unmask.cli import main
from unmask.errors import UnmaskError
from unmask.trace import Trace
from unmask.trace.recording import codec
from unmask.trace.recording.codec import TraceError


@pytest.fixture(scope="module")
def lines():
    model, request = anything("confidence | swd(1) | top(1)", 5)
    return gzip.decompress(traced(model, request)[0]).splitlines()


def changed(lines, number, **fields):
    records = [json.loads(line) for line in lines]
    records[number].update(fields)
    return gzip.compress(b"".join(json.dumps(record).encode() + b"\n" for record in records))


def test_a_field_that_does_not_fit_is_named_in_one_line(lines):
    step = json.loads(lines[1])
    header = json.loads(lines[0])
    wrong = [
        (0, {"canvas": [10**9]}, "a token of the canvas"),
        (0, {"canvas": []}, "the canvas has no usable length"),
        (0, {"seed": -1}, "the seed"),
        (0, {"spec": {**header["spec"], "vocab_size": 2**40}}, "the vocabulary"),
        (0, {"settings": {**header["settings"], "rule": ["x"]}}, "the rule is not a text"),
        (0, {"model": {"path": ["x"]}}, "path of the model"),
        (1, {"window": [-4, 4]}, "the start of a window"),
        (1, {"window": [0, 2**40]}, "the end of a window"),
        (1, {"count": step["count"] + 1}, "a count"),
        (1, {"cells": step["cells"] + "AAAA"}, "longer than its counts"),
        (1, {"candidates": "AAAAAAAA"}, "flags do not fit"),
        (1, {"committed": [[10**6, 1]]}, "a position that was committed"),
        (1, {"committed": [[0, 1]]}, "a position of the prompt was committed"),
        (1, {"revoked": [-1]}, "a revoked position"),
        (1, {"gauge": {"spent": "much"}}, "the gauge"),
        (1, {"words": {"1": 5}}, "a word is not a text"),
        (-1, {"end": {"nfe": "x", "nfe_eos": None, "text": None}}, "the NFE"),
    ]
    for number, fields, message in wrong:
        with pytest.raises(TraceError, match=message) as caught:
            Trace.of(changed(lines, number, **fields), "some.trace")
        assert str(caught.value).startswith(("some.trace is damaged", "the trace is damaged"))


def test_a_step_that_was_taken_out_is_noticed(lines):
    for number in range(1, len(lines) - 1):
        rest = [*lines[:number], *lines[number + 1 :]]
        with pytest.raises(TraceError, match="step is missing"):
            Trace.of(gzip.compress(b"\n".join([*rest, b""])))


def test_deep_json_is_no_trace():
    with pytest.raises(TraceError, match="a line is not JSON"):
        Trace.of(gzip.compress(b"[" * 100_000 + b"\n"))


def test_a_few_bytes_that_expand_to_gigabytes_are_refused_without_the_memory(monkeypatch):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for content in (b" ", b'{"a": 1}\n'):
        zipper = zlib.compressobj(9, zlib.DEFLATED, codec.GZIP)
        piece = content * (2**20 // len(content))
        first, again = (zipper.compress(piece) + zipper.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
        bomb = first + again * 2047  # its checksum is wrong, but nobody should come so far
        with pytest.raises(UnmaskError, match=r"too large|not a trace"):
            Trace.of(bomb)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 200 * 1024  # KiB


def test_many_tiny_steps_are_too_large(lines, monkeypatch):
    monkeypatch.setattr(codec, "CONTENT", 1 << 16)
    with pytest.raises(TraceError, match="is too large: a trace holds at most"):
        Trace.of(gzip.compress(b"\n".join(lines) + b"\n" + b"{}\n" * 100))


def test_a_step_that_was_filled_without_an_eos_policy_is_refused(lines):
    header = json.loads(lines[0])
    kept = {**header["settings"], "eos": "keep"}
    step = json.loads(lines[1])
    records = [{**header, "settings": kept}, {**step, "filled": step["committed"]}]
    data = gzip.compress(b"".join(json.dumps(record).encode() + b"\n" for record in records))
    with pytest.raises(TraceError, match="its EOS policy never fills positions"):
        Trace.of(data)


def test_no_model_is_downloaded_because_a_trace_names_it(lines, tmp_path, capsys, monkeypatch):
    def fetched(*_: object, **__: object):
        raise AssertionError("a download was tried")

    hub = pytest.importorskip("huggingface_hub")
    monkeypatch.setattr(hub, "snapshot_download", fetched)
    file = tmp_path / "some.trace"
    file.write_bytes(changed(lines, 0, model={"path": "somebody/some-model"}))
    assert main(["replay", str(file)]) == 2
    err = capsys.readouterr().err
    assert "to download it, give its name with --model" in err
    assert err.count("\n") == 1


def test_no_more_of_a_file_is_read_than_a_trace_may_have(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(codec, "CONTENT", 1 << 16)
    file = tmp_path / "endless.trace"
    file.symlink_to("/dev/zero")
    for command in ("explain", "page"):
        assert main([command, str(file)]) == 2
        assert "endless.trace is too large; at most" in capsys.readouterr().err
