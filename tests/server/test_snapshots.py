"""Snapshots: the whole canvas as text and as cells."""

import torch

from tests.checkpoints import make_llada
from unmask import Rule, Settings, prompt_request
from unmask.models.describe import describe
from unmask.server.snapshots import Snapshots
from unmask.text.settled import RowCanvas, TextReader


def test_a_snapshot_shows_every_position(tmp_path):
    shape = describe(make_llada(tmp_path / "tiny"))
    mask, end = shape.spec.mask_id, shape.spec.eos_id
    request = prompt_request(shape.spec, [5], 6, Settings(Rule.parse("confidence | top(1)")))
    shots = Snapshots(TextReader(shape.tokenizer, shape.spec, request), request.canvas.tolist())
    first, second = shape.tokenizer.encode("ü")
    (a,) = shape.tokenizer.encode("a")
    canvas = RowCanvas([5, a, first, second, mask, end, mask], 1, 3)
    assert shots.text(canvas) == "aü·"
    assert shots.progress(canvas) == round(4 / 6, 4)
    cells = shots.cells(canvas)
    assert [cell["text"] for cell in cells] == ["a", "ü", "", "", "", ""]
    states = ["new", "new", "new", "masked", "end", "masked"]
    assert [cell["state"] for cell in cells] == states
    later = shots.cells(RowCanvas([5, a, first, mask, a, end, mask], 1, 4))
    assert [cell["state"] for cell in later][:4] == ["committed", "committed", "masked", "new"]
    assert later[1]["text"] == "\ufffd"
    assert torch.equal(request.canvas, torch.tensor([5] + [mask] * 6))
