"""Reading a trace: whole, cut off, damaged, or no trace at all."""

from __future__ import annotations

import gzip
import json
from io import BytesIO

import pytest

from tests.helpers import rule_texts
from tests.trace.runs import anything, traced
from unmask.trace import Trace, Tracer
from unmask.trace.recording.codec import TraceError


def zipped(content):
    return gzip.compress(content, mtime=0)


@pytest.fixture(scope="module")
def data():
    model, request = anything("confidence | swd(1) | top(1)", 5)
    return traced(model, request)[0]


def test_the_settings_come_back_as_they_were():
    for text in rule_texts():
        model, request = anything(text, 1)
        out = BytesIO()
        Tracer(out, model.spec, request)
        trace = Trace.of(out.getvalue())
        assert trace.settings == request.settings
        assert trace.spec == model.spec
        assert trace.canvas.tolist() == request.canvas.tolist(), text


def test_a_cut_off_file_gives_all_whole_steps(data):
    whole = Trace.of(data)
    counts = set()
    for end in range(len(data) // 2, len(data) - 1, 7):
        try:
            trace = Trace.of(data[:end])
        except TraceError:
            continue
        assert not trace.finished
        counts.add(len(trace.moments))
        for old, new in zip(whole.moments, trace.moments, strict=False):
            assert old.digest == new.digest
    assert counts <= set(range(len(whole.moments) + 1))


def test_a_bit_that_flipped_is_noticed(data):
    whole = Trace.of(data)
    for place in range(0, len(data), 11):
        broken = bytearray(data)
        broken[place] ^= 1 << place % 8
        try:
            trace = Trace.of(bytes(broken))
        except TraceError:
            continue
        # as good as cut off, or a bit of gzip's header that says nothing of the content
        assert not trace.finished or trace.end == whole.end
        for old, new in zip(whole.moments, trace.moments, strict=False):
            assert old.writes == new.writes, f"byte {place}"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not a trace"),
        (b"plain text", "is not a trace"),
        (zipped(b"not json\n"), "damaged: a line is not JSON"),
        (zipped(b"[1]\n"), "is not a trace"),
        (zipped(b'{"some": "json"}\n'), "is not a trace"),
        (
            zipped(b'{"trace": 2, "unmask": "9.9"}\n'),
            "reads format 1; read it with unmask 9",
        ),
        (zipped(b'{"trace": 1}\n{"forward": 0}\n'), "damaged"),
    ],
)
def test_what_is_no_trace_is_refused_in_one_line(tmp_path, content, message):
    file = tmp_path / "some.trace"
    file.write_bytes(content)
    with pytest.raises(TraceError, match=message) as caught:
        Trace.read(file)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(TraceError, match=r"none\.trace cannot be read: No such file"):
        Trace.read(tmp_path / "none.trace")


def test_columns_of_a_kind_that_is_not_known_are_refused(data):
    lines = gzip.decompress(data).splitlines()
    record = json.loads(lines[1])
    record["columns"][0] = "token:u99"
    changed = zipped(b"\n".join([lines[0], json.dumps(record).encode(), b""]))
    with pytest.raises(TraceError, match="'token:u99'"):
        Trace.of(changed)
