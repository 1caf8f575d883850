"""Files and texts from outside: bounded, never waited for, and told in one line."""

from __future__ import annotations

import os
import time

import pytest

from unmask import ModelError, RequestError
from unmask.models.checkpoint import read_optional
from unmask.models.untrusted import check_whole, lines_of, opened, read_bytes, read_text


def test_a_file_without_end_is_refused():
    with pytest.raises(ModelError, match=r"/dev/zero is too large; at most 1 MB are read"):
        read_bytes("/dev/zero", 1 << 20, ModelError)


def test_a_pipe_that_nobody_writes_is_empty_instead_of_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    begin = time.monotonic()
    assert read_bytes(tmp_path / "pipe") == b""
    assert time.monotonic() - begin < 5
    with pytest.raises(OSError, match="No such device"):
        opened(tmp_path / "pipe", "wb")


def test_a_pipe_with_a_writer_is_read_to_its_end():
    out, end = os.pipe()
    os.write(end, b"text")
    os.close(end)
    assert read_text(f"/dev/fd/{out}") == "text"
    os.close(out)


def test_a_line_without_end_is_refused(monkeypatch):
    monkeypatch.setattr("unmask.models.untrusted.LINE", 1 << 12)
    with opened("/dev/zero") as stream, pytest.raises(RequestError, match="a line of more than"):
        next(lines_of(stream, "zeros"))


def test_bytes_that_are_no_text_and_half_characters_are_told(tmp_path):
    (tmp_path / "latin").write_bytes(b"\xe9")
    with pytest.raises(RequestError, match="it is not UTF-8 text"):
        read_text(tmp_path / "latin")
    with pytest.raises(RequestError, match=r"half a character, '\\ud800', at place 1"):
        check_whole("a\ud800")


def test_a_link_to_nowhere_is_a_broken_file_and_not_a_missing_one(tmp_path):
    assert read_optional(tmp_path / "tokenizer_config.json") == {}
    (tmp_path / "tokenizer_config.json").symlink_to(tmp_path / "nowhere")
    with pytest.raises(ModelError, match=r"tokenizer_config\.json is missing"):
        read_optional(tmp_path / "tokenizer_config.json")
