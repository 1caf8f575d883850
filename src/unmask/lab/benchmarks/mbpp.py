"""MBPP: Python functions from a sentence and three asserts; the test split, full or sanitized."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from unmask.decoding.options import DecodingOptions
from unmask.errors import UnmaskError
from unmask.lab.benchmarks.base import Benchmark
from unmask.lab.benchmarks.data import DataFile, Record
from unmask.lab.benchmarks.example import Example, Slots
from unmask.lab.benchmarks.humaneval import THINK, redefined
from unmask.lab.benchmarks.maths import DAEDAL, REASONING
from unmask.lab.benchmarks.preset import Preset, table
from unmask.lab.grading.code import defined, free_names, imports_for, loaded_names, solution
from unmask.lab.grading.daedal_code import mbpp_code
from unmask.lab.grading.response import Response
from unmask.lab.grading.scorer import Ruling, Scorer
from unmask.lab.grading.tools import Tools
from unmask.lab.sandbox import Program

SOURCE = DataFile(
    file="mbpp.jsonl",
    rows=974,
    fields={"task_id": int, "text": str, "code": str, "test_list": list, "test_setup_code": str},
    origin="github google-research/google-research: mbpp/mbpp.jsonl",
    hub=("google-research-datasets/mbpp", "full"),
    splits=("prompt", "test", "validation", "train"),
    key="task_id",
    fault=lambda record: _fault(record["code"], record["test_list"]),
)
SANITIZED_IDS = replace(
    SOURCE,
    rows=257,
    fields={"task_id": int},
    hub=(SOURCE.hub[0], "sanitized"),
    splits=("test",),
    fault=lambda _: "",
)
TEST = range(11, 511)
SHOT_IDS = (2, 3, 4)  # of the prompt split, as in other evaluations

EXPERT = "You are an expert Python programmer, and here is your task:"
OPENED = ("user", EXPERT + "\n{{text}}\nYour code should pass these tests:\n{{tests}}")
BRACKETS = ("user", EXPERT + " {{text}} Your code should pass these tests:\n\n {{tests}}  \n")
PRESETS = table(
    Preset(
        name="paper",
        source=f"{DAEDAL}/mbpp/mbpp.yaml",
        exact="letter",
        decoding=DecodingOptions(length=256, block=32),
        turns=(
            (
                "user",
                "\n{{text}} Your code should pass these tests:\n\n{{tests}} \n\n" + THINK + "The "
                "complete implementation of the function\n```\n</answer>",
            ),
        ),
        prefill=REASONING,
    ),
    Preset(
        name="official",
        source="LLaDA's EVAL.md with OpenCompass mbpp_gen (3 shots), but for spaces in the shots",
        exact="reconstructed",
        decoding=DecodingOptions(length=256, block="full", eos="last"),
        turns=(BRACKETS,),
        shot=(BRACKETS, ("assistant", "[BEGIN]\n '{{code}}' \n[DONE] \n\n ")),
        shots=3,
    ),
    Preset(
        name="official-dream",
        source="Dream's eval_instruct/eval.sh with lm-eval mbpp_instruct, no shots",
        exact="reconstructed",
        decoding=DecodingOptions(length=1024, block="full", temperature=0.1, top_p=0.9),
        stop=("\n```",),
        turns=(OPENED,),
        prefill="\n```python\n",
    ),
    Preset(
        name="lm-eval",
        source="lm-eval mbpp_instruct, version 1, its 3 shots as turns",
        exact="reconstructed",
        decoding=DecodingOptions(length=256, block=32),
        turns=(OPENED,),
        prefill="\n```python\n",
        shot=(OPENED, ("assistant", "\n```python\n{{code}}\n```")),
        shots=3,
    ),
)
AWKWARD: dict[int | str, str] = {
    123: "the reference takes 11 s, beyond the limit of time",
    367: "its tests build objects of a class that the answer must define",
}


def read_test(data: Path | None) -> list[Example]:
    """The test split, ids 11 to 510."""
    records = SOURCE.records(data)
    shots = tuple(_slots(record) for record in records if record["task_id"] in SHOT_IDS)
    chosen = [record for record in records if record["task_id"] in TEST]
    return [_example(record, index, shots) for index, record in enumerate(chosen)]


def read_sanitized(data: Path | None) -> list[Example]:
    """The 257 examples of the test split whose ids are in the sanitized set.

    Their texts and tests are those of the full set.
    """
    examples = read_test(data)
    if data is None:
        ids = {record["task_id"] for record in SANITIZED_IDS.records(None)}
    elif all("sanitized" in example.fields for example in examples):
        ids = {example.id for example in examples if example.fields["sanitized"]}
    else:
        raise UnmaskError(
            f"{data / SOURCE.file} does not say which records are sanitized; add the field "
            "'sanitized', true for the ids of google-research's sanitized-mbpp.json"
        )
    kept = [example for example in examples if example.id in ids]
    if len(kept) != SANITIZED_IDS.rows:
        raise UnmaskError(
            f"{len(kept)} records of the test split are sanitized, and {SANITIZED_IDS.rows} "
            f"should be; get them again from {SOURCE.origin}"
        )
    return [replace(example, index=index) for index, example in enumerate(kept)]


def _fault(code: str, tests: list[Any]) -> str:
    if not tests or not all(isinstance(test, str) for test in tests):
        return "'test_list' must hold asserts"
    return "" if entries(code, "\n".join(tests)) else "the asserts call nothing that can be written"


def _slots(record: Record) -> Slots:
    return {
        "text": record["text"],
        "tests": "\n".join(record["test_list"]),
        "code": record["code"].replace("\r\n", "\n").strip(),
    }


def _example(record: Record, index: int, shots: tuple[Slots, ...]) -> Example:
    slots = _slots(record)
    return Example(record["task_id"], index, slots, slots["code"], fields=record, shots=shots)


def entries(reference: str, tests: str) -> tuple[str, ...]:
    """Names that the asserts use and the reference defines."""
    bound = defined(reference.replace("\r\n", "\n"))
    known = tuple(name for name in loaded_names(tests) if name in bound)
    return known or tuple(free_names(tests))


def program(example: Example, code: str) -> Program:
    """Code with the example's asserts."""
    fields = example.fields
    tests = "\n".join([fields["test_setup_code"].replace("\r\n", "\n"), *fields["test_list"]])
    tests = f"{tests.strip()}\n"
    names = entries(fields["code"], tests)
    return Program(code, imports_for(tests, names) + tests, names)


def _solution(example: Example, response: Response, _: Tools) -> Ruling:
    names = program(example, "").names
    return Ruling(program(example, solution(response.cut, names)), {"entry": ", ".join(names)})


def _daedal(example: Example, response: Response, _: Tools) -> Ruling:
    code = mbpp_code(response.whole)
    return Ruling(program(example, code)) if code else Ruling(False, {"reason": "no code"})


SCORERS = (
    Scorer("unmask", "first fence or from the first definition; entry from the asserts", _solution),
    Scorer("daedal", "first closed Python fence; entry is its first function (DAEDAL)", _daedal),
)


MBPP = Benchmark(
    name="mbpp",
    about="MBPP, test split: 500 Python functions from a sentence and three asserts, pass@1",
    presets=PRESETS,
    read=read_test,
    scorers={scorer.name: scorer for scorer in SCORERS},
    gold=lambda example: f"```python\n{example.reference}\n```<|eot_id|>",
    wrong=lambda example: redefined(example, program(example, "").names[-1]),
    awkward=AWKWARD,
    runs_code=True,
)
MBPP_SANITIZED = replace(
    MBPP,
    name="mbpp-sanitized",
    about="MBPP, test split: the 257 examples whose ids are in the sanitized set, pass@1",
    read=read_sanitized,
)
