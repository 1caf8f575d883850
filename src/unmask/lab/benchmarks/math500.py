"""MATH-500: competition problems whose answers are formulas."""

from __future__ import annotations

import re
from pathlib import Path

from unmask.decoding.options import DecodingOptions
from unmask.lab.benchmarks import maths
from unmask.lab.benchmarks.base import Benchmark
from unmask.lab.benchmarks.data import DataFile
from unmask.lab.benchmarks.example import Example
from unmask.lab.benchmarks.preset import Preset, table
from unmask.lab.grading import harness, klass, mathstrings
from unmask.lab.grading.boxed import last_box
from unmask.lab.grading.response import Response
from unmask.lab.grading.scorer import Ruling, Scorer
from unmask.lab.grading.tools import Tools

SOURCE = DataFile(
    file="math500.jsonl",
    rows=500,
    fields={"problem": str, "solution": str, "answer": str, "unique_id": str},
    origin="github openai/prm800k: prm800k/math_splits/test.jsonl",
    hub=("HuggingFaceH4/MATH-500", "default"),
    key="unique_id",
)
PRESETS = table(
    Preset(
        name="paper",
        source=f"{maths.DAEDAL}/math500/utils.py",
        exact="letter",
        decoding=DecodingOptions(length=512, block=32),
        turns=(("user", maths.EXPERT + "\n\n{{problem}}\n\n"),),
        prefill=maths.REASONING,
    ),
    Preset(
        name="official",
        source="LLaDA's EVAL.md with OpenCompass math_0shot_gen",
        exact="letter",
        decoding=DecodingOptions(length=512, block="full", eos="last"),
        turns=(
            (
                "user",
                "{{problem}}\nPlease reason step by step, and put your final answer within "
                "\\boxed{}.",
            ),
        ),
    ),
    Preset(
        name="official-dream",
        source="Dream's eval_instruct/eval.sh with lm-eval minerva_math, no shots",
        exact="reconstructed",
        decoding=DecodingOptions(length=512, block="full", temperature=0.1, top_p=0.9),
        stop=("Problem:",),
        turns=(("user", "Problem:\n{{problem}}\n\nSolution:"),),
    ),
    Preset(
        name="lm-eval",
        source="lm-eval minerva_math500 without its four shots",
        exact="letter",
        decoding=DecodingOptions(length=512, block=32),
        stop=("Problem:",),
        turns=(("user", "Problem:\n{{problem}}\n\nSolution:"),),
    ),
)


def read(data: Path | None) -> list[Example]:
    """All problems; the id is `unique_id`."""
    return [
        Example(
            id=record["unique_id"],
            index=index,
            slots={"problem": record["problem"]},
            reference=record["answer"],
            fields=record,
        )
        for index, record in enumerate(SOURCE.records(data))
    ]


def _verified(example: Example, response: Response, tools: Tools) -> Ruling:
    """The last box that math-verify can parse, or else the text."""
    box = last_box(response.cut)
    texts = [maths.in_box(box), response.cut] if box is not None else [response.cut]
    verified = tools.verifier.equal(maths.in_box(example.reference), *texts)
    by_box = box is not None and verified.used == 0
    detail = {"answer": box, "rule": "box" if by_box else "text", "reason": verified.reason}
    return Ruling(verified.right, {**detail, "string": _string(example, response)})


def _string(example: Example, response: Response) -> bool:
    return mathstrings.daedal_equal(last_box(response.cut), example.reference)


def _last_box(example: Example, response: Response, tools: Tools) -> Ruling:
    box = last_box(response.cut)
    if box is None:
        return Ruling(False, {"reason": "no box"})
    verified = tools.verifier.equal(maths.in_box(example.reference), maths.in_box(box))
    return Ruling(verified.right, {"reason": verified.reason})


def _bare_gold(example: Example, response: Response, tools: Tools) -> Ruling:
    verified = tools.verifier.equal(example.reference, response.cut)
    return Ruling(verified.right, {"reason": verified.reason})


def _d1(example: Example, response: Response) -> bool:
    return mathstrings.d1_equal(mathstrings.d1_extract(response.whole), example.reference)


def _klass(example: Example, response: Response) -> bool:
    fields = example.fields
    return klass.math_equal(fields["problem"], fields["solution"], response.plain)


def _strict(example: Example, response: Response) -> bool:
    phrase = harness.strict_phrase(response.cut)
    return mathstrings.daedal_equal(phrase, example.reference)


SCORERS = (
    Scorer("unmask", "math-verify: the last box, else the text up to its end", _verified),
    maths.DAEDAL_RULE,
    maths.by_text("string", "last box up to the end, as a string", _string),
    maths.by_text("d1", "last box of all the text, as a string (d1)", _d1),
    maths.by_text("klass", "any box against any box of the solution, as strings (KLASS)", _klass),
    maths.WHOLE_TEXT,
    Scorer("math-verify-box", "math-verify on the last box only", _last_box),
    Scorer("math-verify-bare", "math-verify with the gold answer not in a box", _bare_gold),
    maths.by_text("strict", "the sentence that lm-eval's minerva_math looks for", _strict),
)


def spoiled(answer: str) -> str:
    """An answer with its first digit raised, or a letter added."""
    digit = re.search(r"\d", answer)
    if digit is None:
        return re.sub(r"(\w)(\W*)$", r"\1q\2", answer)
    return answer[: digit.start()] + str((int(digit[0]) + 1) % 10) + answer[digit.end() :]


MATH500 = Benchmark(
    name="math500",
    about="MATH-500: 500 competition problems with formulas as answers",
    presets=PRESETS,
    read=read,
    scorers={scorer.name: scorer for scorer in SCORERS},
    gold=lambda example: f"So it is ${maths.in_box(example.reference)}$.<|eot_id|>",
    wrong=lambda example: f"So it is ${maths.in_box(spoiled(example.reference))}$.<|eot_id|>",
)
