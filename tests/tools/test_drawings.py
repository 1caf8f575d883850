"""The pictures of docs/concepts.md show what the embedded model does."""

import pytest

import unmask
from tools.drawings import FOLDER, PENS, RULE, canvas, eos
from unmask.trace import Trace


@pytest.mark.long
def test_the_pictures_of_the_concepts_show_what_the_model_does_now():
    session = unmask.Session()
    answer = session.generate(PENS, rule=RULE, length=16, block="full", trace=True)
    assert canvas(Trace.of(answer.trace), 16) == (FOLDER / "concept-canvas.svg").read_text()
    assert eos(session, 24) == (FOLDER / "concept-eos.svg").read_text()
