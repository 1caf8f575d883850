"""HumanEval: 164 Python functions to complete, checked by running tests."""

from __future__ import annotations

import ast
from pathlib import Path

from unmask.decoding.options import DecodingOptions
from unmask.lab.benchmarks.base import Benchmark
from unmask.lab.benchmarks.data import DataFile
from unmask.lab.benchmarks.example import Example
from unmask.lab.benchmarks.maths import DAEDAL, REASONING
from unmask.lab.benchmarks.preset import Preset, table
from unmask.lab.grading.code import completion, defined, free_names
from unmask.lab.grading.daedal_code import humaneval_code
from unmask.lab.grading.response import Response
from unmask.lab.grading.scorer import Ruling, Scorer
from unmask.lab.grading.tools import Tools
from unmask.lab.sandbox import Program

SOURCE = DataFile(
    file="humaneval.jsonl",
    rows=164,
    fields={
        "task_id": str,
        "prompt": str,
        "entry_point": str,
        "canonical_solution": str,
        "test": str,
    },
    origin="github openai/human-eval: data/HumanEval.jsonl.gz",
    hub=("openai/openai_humaneval", "openai_humaneval"),
    key="task_id",
    fault=lambda record: _fault(record["prompt"], record["entry_point"]),
)
ASK = "Write a solution to the following problem and make sure that it passes the tests:\n"
THINK = (  # DAEDAL's for both code tasks
    "First, reason about the solution step-by-step. Then, write the code.\n"
    "Respond in the following format:\n<reasoning>\nYour reasoning here\n</reasoning>\n<answer>\n"
    "```python\n"
)
OPENED = "Here is the completed function:\n```python\n{{prompt}}\n"
STOP = ("\nclass", "\ndef", "\n#", "\nif", "\nprint")
PRESETS = table(
    Preset(
        name="paper",
        source=f"{DAEDAL}/humaneval/humaneval.yaml",
        exact="letter",
        decoding=DecodingOptions(length=256, block=32),
        turns=(
            (
                "user",
                ASK + "{{prompt}}\n\n" + THINK + "The complete implementation  of the "
                "{{entry_point}} function\n```\n</answer>",
            ),
        ),
        prefill=REASONING,
    ),
    Preset(
        name="official",
        source="LLaDA's EVAL.md with OpenCompass humaneval_gen_8e312c",
        exact="letter",
        decoding=DecodingOptions(length=512, block="full", eos="suppress"),
        turns=(("user", "Complete the following python code:\n{{prompt}}"),),
    ),
    Preset(
        name="official-dream",
        source="Dream's eval_instruct: lm-eval humaneval_instruct, version 2",
        exact="letter",
        decoding=DecodingOptions(length=768, block="full", temperature=0.1, top_p=0.9),
        stop=STOP,
        turns=(("user", ASK + "```{{prompt}}"),),
        prefill=OPENED,
    ),
    Preset(
        name="lm-eval",
        source="lm-eval humaneval_instruct, version 4",
        exact="letter",
        decoding=DecodingOptions(length=512, block=32),
        stop=STOP,
        turns=(("user", ASK + "```python\n{{prompt}}\n```\n"),),
        prefill=OPENED,
    ),
)
AWKWARD: dict[int | str, str] = {
    "HumanEval/47": "an example in the prompt contradicts the tests",
    "HumanEval/116": "the examples in the prompt contradict the tests",
}


def read(data: Path | None) -> list[Example]:
    """All problems; the id is `task_id`."""
    return [
        Example(
            id=record["task_id"],
            index=index,
            slots={"prompt": record["prompt"], "entry_point": record["entry_point"]},
            reference=record["prompt"] + record["canonical_solution"],
            fields=record,
        )
        for index, record in enumerate(SOURCE.records(data))
    ]


def _fault(prompt: str, entry: str) -> str:
    return "" if entry in defined(prompt) else f"the prompt does not define {entry!r}"


def program(example: Example, code: str) -> Program:
    """Code with the example's tests and the helpers of the prompt that the tests call."""
    entry = example.fields["entry_point"]
    tests = f"{example.fields['test']}\ncheck({entry})\n"
    return Program(
        code, _seeded(_helpers(example.fields["prompt"], tests, entry) + tests), (entry,)
    )


def _seeded(tests: str) -> str:
    """Seed the random numbers of tests, so that they are the same in every run."""
    return f"import random\nrandom.seed(0)\n{tests}" if "random" in tests else tests


def _helpers(prompt: str, tests: str, entry: str) -> str:
    """The definitions of the prompt besides the function, if the tests call one of them.

    The judge's own copy is called, so that no answer can change what its tests do.
    """
    called = set(free_names(tests)) - {entry}
    nodes = [node for node in ast.parse(prompt).body if getattr(node, "name", None) != entry]
    if not called & {getattr(node, "name", "") for node in nodes}:
        return ""
    return "\n".join(ast.unparse(node) for node in nodes) + "\n"


def _completed(example: Example, response: Response, _: Tools) -> Ruling:
    prompt, entry = example.fields["prompt"], example.fields["entry_point"]
    return Ruling(program(example, completion(response.cut, prompt, entry)))


def _daedal(example: Example, response: Response, _: Tools) -> Ruling:
    prompt, entry = example.fields["prompt"], example.fields["entry_point"]
    return Ruling(program(example, humaneval_code(response.whole, prompt, entry)))


SCORERS = (
    Scorer("unmask", "first fence, or from the first definition, or as the body", _completed),
    Scorer("daedal", "first Python fence behind the prompt, sanitized (DAEDAL)", _daedal),
)


def redefined(example: Example, name: str) -> str:
    """The reference, and behind it a wrong definition of the same name."""
    return f"```python\n{example.reference}\n\ndef {name}(*_):\n    return 'wrong'\n```"


HUMANEVAL = Benchmark(
    name="humaneval",
    about="HumanEval: 164 Python functions to complete, pass@1",
    presets=PRESETS,
    read=read,
    scorers={scorer.name: scorer for scorer in SCORERS},
    gold=lambda example: f"```python\n{example.reference}\n```<|eot_id|>",
    wrong=lambda example: redefined(example, example.fields["entry_point"]),
    awkward=AWKWARD,
    runs_code=True,
)
