"""The page is one file that loads nothing, and nothing in a trace can become a part of it."""

from __future__ import annotations

import base64
import gzip
import re
import subprocess
import sys
from hashlib import sha256
from importlib.resources import files

import pytest

from unmask.cli import main
from unmask.page.build import GENERATOR, TraceFile, page, script
from unmask.trace.recording.codec import FORMAT

MODULES = sorted(p.name for p in files("unmask.page").iterdir() if p.name.endswith(".js"))


@pytest.fixture(scope="module")
def html(traces):
    return page([TraceFile.read(traces("swd"))])


def call(capsys, *arguments):
    code = main(["page", *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_the_page_loads_nothing(html):
    assert re.findall(r"https?://[^\s\"']+", html) == ["http://www.w3.org/2000/svg"]  # a name
    assert not re.search(r"\b(fetch|XMLHttpRequest|WebSocket|EventSource|importScripts)\b", html)
    assert not re.search(
        r"@import|url\(|^import |\bimport\(|<link(?! rel=\"icon\" href=\"data:,\")", html, re.M
    )
    assert not re.search(r"<(script|img|iframe)[^>]* src=", html)


def test_nothing_is_put_in_as_markup(html):
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", html)


def test_the_policy_allows_the_inline_script_and_style_and_nothing_else(html):
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)[1]
    code = re.search(r'<script type="module">(.*?)</script>', html, re.S)[1]
    style = re.search(r"<style>(.*?)</style>", html, re.S)[1]

    def hashed(text):
        return f"'sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}'"

    assert policy.split("; ") == [
        "default-src 'none'",
        f"script-src {hashed(code)}",
        f"style-src {hashed(style)}",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    ]


def test_a_trace_is_embedded_byte_for_byte(html, traces):
    data = re.search(r'class="trace" data-name="swd.trace">([^<]*)</script>', html)[1]
    assert base64.b64decode(data, validate=True) == traces("swd").read_bytes()


def test_a_hostile_name_stays_an_attribute(traces):
    data = traces("swd").read_bytes()
    html = page([TraceFile('"><script>alert(1)</script>', data)])
    assert "<script>alert" not in html
    assert html.count("<script") == html.count("</script>") == 2


def test_the_page_reads_the_format_that_traces_have():
    assert (
        f"export const FORMAT = {FORMAT};" in files("unmask.page").joinpath("trace.js").read_text()
    )


@pytest.mark.parametrize("name", MODULES)
def test_a_module_is_short_and_joins_into_one_without_imports(name):
    text = files("unmask.page").joinpath(name).read_text()
    assert len(text.splitlines()) <= 400
    assert not re.search(r"^\s*(import|export)\b", script(name), re.M)


def test_every_exported_name_is_exported_once():
    exports = re.findall(r"^const \{ (.*?) \} = \(\(\) =>", script("app.js"), re.M)
    names = [name for line in exports for name in line.split(", ") if name]
    assert len(names) == len(set(names))


def test_the_command_writes_beside_the_trace(traces, capsys, tmp_path):
    trace = tmp_path / "a.trace"
    trace.write_bytes(traces("swd").read_bytes())
    capsys.readouterr()  # of the run that wrote it
    assert call(capsys, trace) == (0, f"written: {tmp_path / 'a.html'}\n", "")
    assert GENERATOR in (tmp_path / "a.html").read_text()


def test_the_command_builds_without_torch(traces, tmp_path):
    code = (
        "import sys; from unmask.cli import main; "
        f"main(['page', {str(traces('swd'))!r}, '-o', {str(tmp_path / 'a.html')!r}]); "
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


def test_without_a_trace_the_page_asks_for_files(capsys, tmp_path):
    code, _, err = call(capsys, "-o", tmp_path / "empty.html")
    assert (code, err) == (0, "")
    assert 'class="trace"' not in (tmp_path / "empty.html").read_text()


def test_a_page_is_written_again_but_nothing_else_is_replaced(traces, capsys, tmp_path):
    output = tmp_path / "a.html"
    assert call(capsys, traces("swd"), "-o", output)[0] == 0
    assert call(capsys, traces("eb"), "-o", output)[0] == 0
    output.write_text("<p>my thesis</p>")
    code, _, err = call(capsys, traces("eb"), "-o", output)
    assert code == 2
    assert err == f"unmask page: {output} exists and is not a page of unmask; give another -o\n"
    assert output.read_text() == "<p>my thesis</p>"


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (None, "is not a trace; make one with 'unmask run ... --trace FILE'"),
        ('{"a": 1}\n', "is not a trace; make one with"),
        ("[1]\n", "is not a trace; make one with"),
        ('{"trace": 1', "is not a trace; make one with"),
        ('{"trace": 1}\n{\n', "is damaged: a line is not JSON"),
        ('{"trace": 9}\n', "is a trace of format 9; the page reads format 1"),
    ],
)
def test_what_is_no_trace_is_refused_in_one_line(lines, message, capsys, tmp_path):
    file = tmp_path / "x.trace"
    file.write_bytes(b"hello" if lines is None else gzip.compress(lines.encode()))
    code, out, err = call(capsys, file)
    assert (code, out) == (2, "")
    assert err.startswith(f"unmask page: x.trace {message}")
    assert err.count("\n") == 1


def test_files_that_cannot_be_used_are_named(capsys, tmp_path, traces):
    assert call(capsys, tmp_path / "none.trace")[2].endswith(
        "cannot be read: No such file or directory\n"
    )
    missing = tmp_path / "no" / "a.html"
    assert "cannot be written: No such file" in call(capsys, traces("swd"), "-o", missing)[2]
    three = [traces("swd")] * 3
    assert call(capsys, *three)[2] == "unmask page: a page shows one or two traces, got 3\n"
