"""Files and pipes that cannot take what is written: nothing is lost without a word."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import forked
from unmask.cli import main
from unmask.errors import RequestError
from unmask.text.jsonl import AnswerFile
from unmask.trace.recording.files import writable

FULL = Path("/dev/full")
pytest.importorskip("fcntl")


def unmask(*arguments: str, **streams) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "unmask", *arguments]
    return subprocess.run(command, stderr=subprocess.PIPE, **streams)


def test_the_second_writer_of_one_answer_file_is_refused(tmp_path):
    file = tmp_path / "out.jsonl"
    first, second = AnswerFile(file, {}), AnswerFile(file, {})
    with first.open() as stream:
        stream.write(b'{"id": 1')
        with pytest.raises(RequestError, match=r"another run is writing .*; wait for it, or give"):
            second.open()
        stream.write(b"}\n")
    with pytest.raises(RequestError, match="another run has just written"):
        second.open()
    assert file.read_bytes() == b'{"id": 1}\n'


def test_the_second_writer_of_one_trace_is_refused_and_the_first_keeps_its_bytes(tmp_path):
    file = tmp_path / "a.trace"
    with writable(file) as stream:
        stream.write(b"\x1f\x8b the first run")
        stream.flush()
        with pytest.raises(RequestError, match=r"another run is writing .*give another --trace"):
            writable(file)
    assert file.read_bytes() == b"\x1f\x8b the first run"
    writable(file).close()
    assert file.read_bytes() == b""


@pytest.mark.skipif(not FULL.exists(), reason="the system has no /dev/full")
def test_a_full_disk_is_a_line_and_an_exit_code(tmp_path, capsys):
    code = f"import sys; sys.stdout = open({str(FULL)!r}, 'w'); from unmask.cli import main"
    done = forked.run("-c", f"{code}; sys.exit(main(['rules']))")
    assert done.returncode == 1
    assert done.stderr == "unmask rules: [Errno 28] No space left on device\n"
    (tmp_path / "in.jsonl").write_text(json.dumps({"prompt": "Ann has 3 pens."}))
    options = ["--input", str(tmp_path / "in.jsonl"), "--length", "8"]
    assert main(["run", *options, "--output", str(FULL)]) == 2
    assert "/dev/full is a device or a pipe; give a file" in capsys.readouterr().err
    assert main(["run", "Ann has 3 pens.", "--length", "8", "--trace", str(FULL)]) == 1
    assert "No space left on device" in capsys.readouterr().err


@pytest.mark.skipif(os.name != "posix", reason="closes a descriptor of POSIX")
def test_a_closed_stdout_is_an_error_before_anything_is_computed():
    done = unmask("run", "Ann has 3 pens.", preexec_fn=lambda: os.close(1))
    assert done.returncode == 1
    assert done.stderr == b"unmask run: stdout is closed; redirect it\n"
