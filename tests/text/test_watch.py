"""The live canvas: what is new is marked, and each frame covers the last."""

import io
import time

import pytest
import torch

from tests.checkpoints import make_llada
from unmask.text.session import Session
from unmask.text.watch import HOLE, NEW, OLD, Watch, around_news, wrapped


class Terminal(io.StringIO):
    """A screen that obeys line breaks, cursor-up and erase-below."""

    def isatty(self):
        return True

    def screen(self):
        rows, text = [""], self.getvalue()
        while text:
            if text.startswith("\x1b["):
                end = next(i for i, c in enumerate(text) if c.isalpha())
                code, text = text[2 : end + 1], text[end + 1 :]
                if code.endswith("F"):
                    rows = [*rows[: len(rows) - 1 - int(code[:-1])], ""]
                continue
            if text[0] == "\n":
                rows.append("")
            else:
                rows[-1] += text[0]
            text = text[1:]
        return rows


def test_each_frame_covers_the_last_and_the_final_canvas_stays(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    monkeypatch.setenv("LINES", "5")
    session = Session(make_llada(tmp_path), rule="confidence | top(7)", length=60)
    request = session.request(session.format(chat=False).of_text("Hello"))
    screen = Terminal()
    watch = Watch(session, request, screen, colour=True)
    masks = []

    def look(step):
        watch(step)
        shown = screen.screen()
        assert len(shown) <= 4
        assert all(len(row) <= 30 for row in shown)
        masks.append("".join(shown).count("·"))
        assert shown[0].split()[:2] == [str(len(masks)), f"+{7 if len(masks) < 9 else 4}"]

    list(session.decode([request], on_step=look))
    assert len(masks) == 9
    assert masks[0] > 0
    assert masks[-1] == 0
    assert "\x1b[1;32m" in screen.getvalue()
    assert "\x1b[2m·" in screen.getvalue()
    assert len("".join(screen.screen())) > 30


def test_a_terminal_gets_a_frame_per_step_at_a_readable_speed(tmp_path, monkeypatch):
    session = Session(make_llada(tmp_path), rule="confidence | top(4)", length=16)
    request = session.request(session.format(chat=False).of_text("Hello"))
    clock, waits = [0.0], []

    def sleep(seconds):
        waits.append(seconds)
        clock[0] += seconds

    monkeypatch.setattr(time, "sleep", sleep)
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    for screen, speed, expected in (
        (Terminal(), 8, [0, 0.125, 0.125, 0.125]),
        (Terminal(), 0, [0, 0, 0, 0]),
        (io.StringIO(), 8, []),
    ):
        clock[0], waits[:] = 100.0, []
        watch = Watch(session, request, screen, False, speed)
        list(session.decode([request], on_step=watch))
        assert waits == pytest.approx(expected)


def test_rows_break_at_the_width_and_wide_characters_take_two_columns():
    rows = wrapped([("abc", OLD), ("你好", NEW), ("x\ny", HOLE)], 4)
    assert rows == [[("abc", OLD)], [("你好", NEW)], [("x", HOLE)], [("y", HOLE)]]


def test_a_canvas_too_tall_shows_the_rows_that_changed_last():
    rows = [[(str(number), NEW if number == 6 else OLD)] for number in range(9)]
    assert [row[0][0] for row in around_news(rows, 3)] == ["4", "5", "6"]
    assert around_news(rows, 20) == rows


def test_end_tokens_and_control_characters_are_shown_as_signs(tmp_path):
    session = Session(make_llada(tmp_path), rule="confidence | top(1)")
    request = session.request(session.format(infill=True).of_text("[MASK*3]"))
    watch = Watch(session, request, io.StringIO(), colour=False)
    escape, spec = session.tokenizer.encode("\x1b"), session.spec
    runs = list(watch._runs(torch.tensor([*escape, spec.eos_id, spec.mask_id])))
    assert runs == [(" ", NEW), ("∎", HOLE), ("·", HOLE)]
