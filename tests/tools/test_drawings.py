"""The pictures of README and docs/concepts.md show what the embedded model does."""

import pytest

import unmask
from tools.drawings import FOLDER, PENS, RULE, canvas, eos
from tools.moving_picture import PICTURE, RULES, Panel, picture
from unmask.trace import Trace


@pytest.mark.long
def test_the_pictures_of_the_concepts_show_what_the_model_does_now():
    session = unmask.Session()
    answer = session.generate(PENS, rule=RULE, length=16, block="full", trace=True)
    assert canvas(Trace.of(answer.trace), 16) == (FOLDER / "concept-canvas.svg").read_text()
    assert eos(session, 24) == (FOLDER / "concept-eos.svg").read_text()


@pytest.mark.long
def test_the_moving_picture_of_the_readme_is_of_two_runs_that_the_model_makes_now():
    session = unmask.Session()
    panels = [Panel.of(session, rule) for rule in RULES]
    assert "\n".join(picture(panels)) + "\n" == PICTURE.read_text()
    assert [(panel.right, panel.forwards) for panel in panels] == [(False, 20), (True, 13)]
