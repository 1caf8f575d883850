"""Every benchmark's grading: references score, spoiled ones do not, and both rules are told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.lab.invented import Said
from unmask.errors import UnknownName, UnmaskError
from unmask.lab.benchmarks import BENCHMARKS, benchmark, embedded, synthetic
from unmask.lab.grading import Program, Response, Scorer, Tools, score, selftest
from unmask.lab.grading.scorer import Ruling, spread


@pytest.mark.long
@pytest.mark.parametrize("name", BENCHMARKS)
def test_references_are_right_and_spoiled_references_wrong(name, data, tools):
    each = BENCHMARKS[name]
    examples = each.load(data)
    chosen = examples if name in ("embedded", "synthetic") else spread(each, examples, 12)
    answers = [(example, Response(each.gold(example))) for example in chosen]
    answers += [(example, Response(each.wrong(example))) for example in chosen]
    grades = dict(each.grades(answers, tools))
    assert [grades[n].acc for n in range(len(answers))] == [True] * len(chosen) + [False] * len(
        chosen
    )


@pytest.mark.parametrize("name", BENCHMARKS)
def test_the_self_test_passes(name, data, tools):
    selftest(BENCHMARKS[name], BENCHMARKS[name].load(data), tools)


def test_a_grader_that_is_too_kind_or_too_strict_fails_its_self_test(data, tools):
    gsm8k = BENCHMARKS["gsm8k"]
    examples = gsm8k.load(data)
    for right, told in (
        (True, "spoiled reference of 0 is graded right"),
        (False, "reference of 0 is graded wrong"),
    ):
        scorer = Scorer("unmask", "", lambda *_, right=right: Ruling(right, {"rule": "none"}))
        broken = replace(gsm8k, scorers={"unmask": scorer})
        with pytest.raises(UnmaskError, match=rf"the grader of gsm8k .* the {told} \(rule: none\)"):
            selftest(broken, examples, tools)


def test_a_self_test_leaves_awkward_examples_out_and_sees_every_group(data):
    mbpp, suite = BENCHMARKS["mbpp"], BENCHMARKS["synthetic"]
    assert not {123, 367} & {example.id for example in spread(mbpp, mbpp.load(data), 500)}
    assert len({example.group for example in spread(suite, suite.load(), 3)}) == 12


@pytest.mark.parametrize(
    ("name", "text", "acc", "compat"),
    [
        ("gsm8k", "It is 1,005.<|eot_id|>No, 7.", True, False),
        ("gsm8k", "\\boxed{1005.0}", True, True),
        ("gsm8k", "\\boxed{1005}<|eot_id|>\\boxed{7}", True, False),
        ("gsm8k", "7<|endoftext|>\\boxed{1005}", False, True),
        ("math500", "\\boxed{\\text{Ida}}", True, True),
        ("math500", "\\boxed{\\text{Eva}}", False, False),
        ("humaneval", "    return x + 5", True, True),
        ("humaneval", "return x + 5", True, False),
        ("humaneval", "```python\ndef add_5(x):\n    return x + 5\n```", True, True),
        ("humaneval", "```python\ndef add_5(x):\n    return x + 6\n```", False, False),
        (
            "mbpp",
            "```python\ndef h(x): return 16 * x\ndef times_16(x): return h(x)\n```",
            True,
            False,
        ),
        ("mbpp", "```python\ndef times_16(x): return 16 * x", True, False),
        ("mbpp", "no code", False, False),
        ("copy", "", False, False),
    ],
)
def test_ours_and_the_compatible_rule_see_the_same_text(name, text, acc, compat, data, tools):
    each = BENCHMARKS[name]
    grade = each.grade(each.load(data)[5], Response(text), tools)
    assert (grade.acc, grade.acc_compat) == (acc, compat)


def test_the_string_verdict_stands_beside_the_verified_one(data, tools):
    math500 = BENCHMARKS["math500"]
    grade = math500.grade(math500.load(data)[0], Response("\\boxed{0.25 + 0.25}"), tools)
    assert (grade.acc, grade.acc_compat) == (True, False)
    assert grade.detail["unmask"] == {
        "answer": "0.25 + 0.25",
        "rule": "box",
        "reason": "equal",
        "string": False,
    }


def test_a_formula_without_a_box_is_found_in_the_text(data, tools):
    math500 = BENCHMARKS["math500"]
    grade = math500.grade(math500.load(data)[0], Response("so $x = \\frac{2}{4}$."), tools)
    assert grade.acc
    assert grade.detail["unmask"]["rule"] == "text"


def test_a_prefilled_answer_is_graded_with_its_prefill(data, tools):
    humaneval = BENCHMARKS["humaneval"]
    example = humaneval.load(data)[7]
    text = "    return x + 7\n```\nThis adds 7.\n```python\nadd_7(1)\n```<|im_end|>"
    assert humaneval.grade(example, humaneval.response(example, text, "lm-eval"), tools).acc
    assert not humaneval.grade(example, Response(text), tools).acc


def test_helpers_that_tests_call_are_the_judges_own(data, tools):
    humaneval = BENCHMARKS["humaneval"]
    text = "```python\ndef helper(x): return 0\ndef add_7(x): return 9\n```"
    programs = []

    def judge(given):
        programs.extend(given)
        return ((place, Said(False)) for place in range(len(given)))

    humaneval.grade(humaneval.load(data)[7], Response(text), Tools(judge))
    assert {program.names for program in programs} == {("add_7",)}
    assert all("def helper" in program.tests for program in programs)


def test_tests_that_draw_numbers_are_seeded(data):
    from unmask.lab.benchmarks.humaneval import program

    example = BENCHMARKS["humaneval"].load(data)[0]
    drawn = {**example.fields, "test": "from random import randint\n" + example.fields["test"]}
    tests = program(replace(example, fields=drawn), "").tests
    assert tests.startswith("import random\nrandom.seed(0)\n")
    assert "random" not in program(example, "").tests


def test_equal_programs_are_judged_once_and_answers_come_when_they_are_known(data):
    program = Program("f = 1", "f", ("f",))
    asked = []

    def judge(programs):
        asked.extend(programs)
        yield from ((n, Said(True, "passed", flagged=True)) for n in range(len(programs)))

    runs = Scorer("runs", "", lambda example, *_: Ruling(program if example.index else False))
    text = Scorer("text", "", lambda *_: Ruling(True))
    examples = BENCHMARKS["gsm8k"].load(data)[:3]
    answers = [(example, Response("")) for example in examples]
    scored = list(score(answers, [runs, text], Tools(judge)))
    assert asked == [program]
    assert [number for number, _ in scored] == [0, 1, 2]
    assert [list(marks) for _, marks in scored] == [["runs", "text"]] * 3
    assert scored[1][1]["runs"].detail == {"reason": "passed", "flagged": True}


def test_a_judge_that_forgets_a_program_is_found_out(data):
    humaneval = BENCHMARKS["humaneval"]
    answers = [(example, Response("")) for example in humaneval.load(data)[:2]]
    with pytest.raises(UnmaskError, match="no verdict on 2 of 2 answers"):
        list(humaneval.grades(answers, Tools(lambda programs: [])))


def test_code_without_a_judge_is_one_line(data):
    humaneval = BENCHMARKS["humaneval"]
    with pytest.raises(UnmaskError, match="needs a judge that runs programs"):
        humaneval.grade(humaneval.load(data)[0], Response(""), Tools())


def test_unknown_names_suggest_the_nearest():
    with pytest.raises(UnknownName, match="unknown task 'gms8k'; did you mean 'gsm8k'"):
        benchmark("gms8k")
    with pytest.raises(
        UnknownName, match="unknown scorer of gsm8k 'deadal'; did you mean 'daedal'"
    ):
        BENCHMARKS["gsm8k"].chosen(["deadal"])


def test_all_scorers_can_be_chosen_at_once():
    gsm8k = BENCHMARKS["gsm8k"]
    assert [scorer.name for scorer in gsm8k.chosen(["all"])] == list(gsm8k.scorers)
    assert [scorer.name for scorer in gsm8k.chosen(["d1", "d1"])] == ["d1"]


@pytest.mark.parametrize("name", ["gsm8k", "math500"])
def test_every_named_scorer_knows_a_boxed_reference(name, data, tools):
    each = BENCHMARKS[name]
    example = each.load(data)[1]
    gold, boxed = example.reference, example.reference.replace(",", "")
    phrase = f"Final Answer: The final answer is {gold}. I hope it is correct."
    text = f"#### {gold}\n{phrase}\n\\boxed{{{boxed}}}"
    [(_, marks)] = score([(example, Response(text))], each.chosen(["all"]), tools)
    assert all(mark.right for mark in marks.values()), marks


def test_suites_of_any_size_and_seed_can_be_made():
    few, other = (synthetic("few", ("shuffle",), 3, seed=seed) for seed in (0, 1))
    assert len(few.load()) == 3
    assert few.load() != other.load()
    assert len(embedded("some", ("copy", "sums"), 4).load()) == 8
