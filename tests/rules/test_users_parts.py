"""Parts of a user that fail: one line says which part, where, and what to write instead."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch

import unmask
from unmask.cli import main
from unmask.errors import RuleError
from unmask.rules.memory import PartMemory
from unmask.rules.registry import register
from unmask.studies.dog_or_car import DogOrCar


def refused(rule: str) -> str:
    world = DogOrCar()
    with pytest.raises(RuleError) as caught:
        unmask.infill(world.oracle, world.canvas, rule)
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_an_error_in_a_part_names_its_file_and_line():
    @unmask.score
    def fails(view):
        raise KeyError("two\nlines")

    @unmask.selection
    def divides(view, scores):
        return 1 / 0

    assert "test_users_parts.py, line" in refused("fails | top(1)")
    assert "in fails: KeyError" in refused("fails | top(1)")
    assert "in divides: ZeroDivisionError" in refused("confidence | divides")


def test_a_check_of_a_knob_is_told_in_one_line():
    @unmask.score
    @dataclass(frozen=True)
    class Low:
        """A score with a knob."""

        most: float = 1.0

        def __post_init__(self):
            if self.most > 2:
                raise ValueError("most must be at most 2")

        def __call__(self, view):
            return unmask.Scores.probability(view.confidence)

    assert refused("Low(3) | top(1)").endswith("ValueError: most must be at most 2")


def test_the_command_line_names_a_part_that_fails_outside_decoding(capsys):
    @unmask.score
    @dataclass(frozen=True)
    class Speechless:
        """A score that cannot describe itself."""

        def describe(self):
            return 1 / 0

        def __call__(self, view):
            return unmask.Scores.probability(view.confidence)

    assert main(["rules", "Speechless | top(1)"]) == 2
    assert "in describe: ZeroDivisionError" in capsys.readouterr().err


def test_a_score_says_what_is_wrong_with_its_numbers():
    @unmask.score
    def negative(view):
        return unmask.Scores.probability(view.confidence - 2)

    @unmask.score
    def nothing(view):
        return None

    assert "as a probability, which is in [0, 1]" in refused("negative | top(1)")
    assert "must return unmask.Scores.probability(...)" in refused("nothing | top(1)")


def test_a_score_of_any_number_type_ranks_in_float64_also_with_ends_last():
    numbers = torch.tensor([[0.5, 0.25, 1.0]])
    for scores in (unmask.Scores.probability(numbers), unmask.Scores.log_utility(numbers.half())):
        last = scores.putting_last(torch.tensor([[True, False, True]])).key
        assert last[0].argsort(descending=True).tolist() == [1, 2, 0]
    assert unmask.Scores.log_utility(torch.arange(3)).key.dtype is torch.float64


def test_a_limit_is_checked_as_a_selection_is():
    @register("limit", "weak")
    def weak(view, scores, chosen):
        return chosen.float()

    @register("limit", "empty")
    def empty(view, scores, chosen):
        return torch.zeros_like(chosen)

    assert "weak must return a bool tensor" in refused("confidence | top(1) | weak")
    assert "top(1) | empty chose nothing" in refused("confidence | top(1) | empty")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (lambda view: {"mised": view.confidence}, "unknown memory of Mixed 'mised'; did you mean"),
        (lambda view: {"mixed": view.confidence[:, :1]}, "mixed must be a tensor of shape"),
        (lambda view: None, "remember must return new values by name, got NoneType"),
    ],
)
def test_what_a_part_remembers_has_the_declared_names_and_shapes(values, said):
    @unmask.score
    @dataclass(frozen=True)
    class Mixed:
        """A score with memory."""

        memory = (PartMemory("mixed", 0.0),)

        def __call__(self, view):
            return unmask.Scores.probability(view.confidence)

        def remember(self, view, decision):
            return values(view)

    assert said in refused("Mixed | top(1)")


def test_a_part_takes_what_its_stage_hands_to_it():
    with pytest.raises(RuleError, match=r"a selection takes \(view, scores\), by these names"):
        unmask.selection(lambda v, s: v.masked)
    with pytest.raises(RuleError, match="unknown stage 'scor'; did you mean 'score'"):
        register("scor", "lost")

    @dataclass(frozen=True)
    class Short:
        """Its call takes too little."""

        def __call__(self, view):
            return view.masked

    with pytest.raises(RuleError, match=r"has a method __call__\(self, view, scores\)"):
        unmask.selection(Short)


def test_a_wrong_property_is_refused_when_the_rule_is_made():
    @unmask.score
    @dataclass(frozen=True)
    class Greedy:
        """A score whose needs are no needs."""

        @property
        def needs(self):
            return 3

        def __call__(self, view):
            return unmask.Scores.probability(view.confidence)

    assert "Greedy: needs must be Needs, got 3" in refused("Greedy | top(1)")
    with pytest.raises(RuleError, match="must start with a number or a bool, got None"):
        PartMemory("none", None)
