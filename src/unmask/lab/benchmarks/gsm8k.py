"""GSM8K: 1319 word problems from school, whose answers are whole numbers."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

from unmask.decoding.options import DecodingOptions
from unmask.lab.benchmarks import maths
from unmask.lab.benchmarks.base import Benchmark
from unmask.lab.benchmarks.data import DataFile
from unmask.lab.benchmarks.example import Example
from unmask.lab.benchmarks.preset import Preset, table
from unmask.lab.grading import harness, klass
from unmask.lab.grading.numbers import answer_number
from unmask.lab.grading.response import Response
from unmask.lab.grading.scorer import Ruling, Scorer
from unmask.lab.grading.tools import Tools

SOURCE = DataFile(
    file="gsm8k_test.jsonl",
    rows=1319,
    fields={"question": str, "answer": str},
    origin="github openai/grade-school-math: grade_school_math/data/test.jsonl",
    hub=("openai/gsm8k", "main"),
    fault=lambda record: _fault(record["answer"]),
)
SHOTS = (
    {
        "question": "A baker fills 6 trays with 12 rolls each and drops 5. How many are left?",
        "worked": "The baker fills 6 trays with 12 rolls each, which is 6 * 12 = 72 rolls.\n"
        "After dropping 5 there are 72 - 5 = 67 left.\nThe answer is 67",
    },
    {
        "question": "Nora reads 14 pages on Monday and twice as many on Tuesday. Her book has 90 "
        "pages. How many pages does she still have to read?",
        "worked": "On Tuesday she reads 2 * 14 = 28 pages.\nIn both days that is 14 + 28 = 42 "
        "pages.\nSo 90 - 42 = 48 pages are left.\nThe answer is 48",
    },
    {
        "question": "Three friends share the cost of a boat for 4 hours. The boat costs $15 an "
        "hour. How many dollars does each of them pay?",
        "worked": "Four hours cost 4 * 15 = 60 dollars.\nEach of the three friends pays "
        "60 / 3 = 20 dollars.\nThe answer is 20",
    },
    {
        "question": "A tank holds 240 litres. A quarter of it is used in the morning and 35 litres "
        "in the evening. How many litres remain?",
        "worked": "A quarter of 240 litres is 240 / 4 = 60 litres.\nThat leaves 240 - 60 = 180 "
        "litres.\nAfter the evening there are 180 - 35 = 145 litres.\nThe answer is 145",
    },
)
STOP = ("Q:", "</s>", "<|im_end|>")
ASK = ("user", "Question: {{question}}\nLet's think step by step\nAnswer:")
PRESETS = table(
    Preset(
        name="paper",
        source=f"{maths.DAEDAL}/gsm8k/utils.py",
        exact="letter",
        decoding=DecodingOptions(length=512, block=32),
        turns=(("user", maths.EXPERT + "\n\n{{question}}\n\n"),),
        prefill=maths.REASONING,
    ),
    Preset(
        name="official",
        source="LLaDA's EVAL.md with OpenCompass gsm8k_gen (4 shots); the shots are our own",
        exact="reconstructed",
        decoding=DecodingOptions(length=512, block="full", eos="last"),
        turns=(ASK,),
        shot=(ASK, ("assistant", "{{worked}}\n")),
        shots=4,
    ),
    Preset(
        name="official-dream",
        source="Dream's eval_instruct/eval.sh with lm-eval gsm8k_cot, no shots",
        exact="reconstructed",
        decoding=DecodingOptions(length=256, block="full", temperature=0.1, top_p=0.9),
        stop=STOP,
        turns=(("user", "Q: {{question}}\nA:"),),
    ),
    Preset(
        name="lm-eval",
        source="lm-eval gsm8k_cot_zeroshot, version 3",
        exact="letter",
        decoding=DecodingOptions(length=256, block=32),
        stop=STOP,
        turns=(("user", "Q: {{question}}\nA: Let's think step by step."),),
    ),
)


def read(data: Path | None) -> list[Example]:
    """All problems; the id is the line, from 0."""
    return [
        Example(
            id=index,
            index=index,
            slots={"question": record["question"]},
            reference=_gold(record["answer"]),
            fields=record,
            shots=SHOTS,
        )
        for index, record in enumerate(SOURCE.records(data))
    ]


def _gold(answer: str) -> str:
    return answer.rpartition("####")[2].strip()


def _fault(answer: str) -> str:
    whole = re.fullmatch(r"-?[\d,]*\d", _gold(answer))
    return "" if "####" in answer and whole else "the answer ends in no whole number behind '####'"


def value(example: Example) -> int:
    """The gold number."""
    return int(example.reference.replace(",", ""))


def _number(example: Example, response: Response, _: Tools) -> Ruling:
    match = answer_number(response.cut)
    answer = None if match.value is None else str(match.value)
    return Ruling(match.value == Fraction(value(example)), {"answer": answer, "rule": match.rule})


def _klass(example: Example, response: Response, letter: bool = False) -> bool:
    gold = klass.gold_number(example.fields["answer"])
    return klass.number_answer(response.plain, letter) == gold


SCORERS = (
    Scorer("unmask", 'last boxed number, else after "answer is", else the last number', _number),
    maths.DAEDAL_RULE,
    maths.by_text(
        "d1", "first box with a number (d1)", lambda e, r: harness.d1_number(r.whole) == value(e)
    ),
    maths.by_text("klass", "number in or after the answer (KLASS), as a number", _klass),
    maths.by_text(
        "klass-letter", "the same as a string: 33.00 is not 33", lambda e, r: _klass(e, r, True)
    ),
    maths.by_text(
        "lm-eval",
        "last number (lm-eval flexible-extract); 33.00 is 33",
        lambda e, r: harness.flexible_equal(r.cut, e.fields["answer"]),
    ),
    maths.by_text(
        "lm-eval-letter",
        "the same in versions where 33.00 is not 33",
        lambda e, r: harness.flexible_equal(r.cut, e.fields["answer"], letter=True),
    ),
    maths.by_text(
        "opencompass",
        "last number, thousands commas unknown (OpenCompass)",
        lambda e, r: harness.opencompass_equal(r.plain, e.reference),
    ),
    maths.WHOLE_TEXT,
    maths.by_text(
        "strict",
        "the number behind #### (lm-eval strict-match)",
        lambda e, r: harness.strict_equal(r.cut, e.fields["answer"]),
    ),
)

GSM8K = Benchmark(
    name="gsm8k",
    about="GSM8K, test split: 1319 word problems with whole numbers as answers",
    presets=PRESETS,
    read=read,
    scorers={scorer.name: scorer for scorer in SCORERS},
    gold=lambda example: f"So it is {maths.in_box(example.reference)}.<|eot_id|>",
    wrong=lambda example: f"So it is {maths.in_box(str(value(example) + 1))}.<|eot_id|>",
)
