"""Structured output: building time and memory, overhead per step, and how many answers are valid.

    python -m bench.structured build      # a schema of ten fields, a vocabulary of 126,464 tokens
    python -m bench.structured overhead   # a step in blocks of 32, with the schema and without
    python -m bench.structured valid --answers 1000 --vocabulary 1500
    python -m bench.structured words --answers 200

The model has random weights. The vocabulary is that of the sources of the installed packages: all
bytes, then the shortest words and runs of signs.
"""

from __future__ import annotations

import argparse
import json
import re
import sysconfig
import time
from pathlib import Path
from statistics import median

import jsonschema
import torch

from bench.common import LLADA_VOCABULARY, PeakMemory, Shape, llada_shaped
from bench.schemas import SCHEMAS, TEN_FIELDS
from unmask import Session, decode_many
from unmask.decoding.loop import Batch
from unmask.decoding.request import Settings, prompt_request
from unmask.decoding.sampling import Sampling
from unmask.embedded.tasks import TASKS
from unmask.lab.stats import paired
from unmask.languages.automaton import TokenAutomaton
from unmask.languages.build import build
from unmask.models.pretrained import Pretrained
from unmask.models.wrappers.timed import Timed
from unmask.rules.registry import kinds, notation
from unmask.rules.rule import Rule

FORMATS = jsonschema.Draft202012Validator.FORMAT_CHECKER
ENDED = r"regex:(?:.|\n)*#### [0-9]+"


def vocabulary(size: int) -> list[bytes | None]:
    """All bytes, then short pieces of source code; the last two tokens are EOS and mask."""
    pieces: set[str] = set()
    sources = sorted(Path(sysconfig.get_paths()["purelib"]).rglob("*.py"))
    for file in sources:
        text = file.read_text(errors="ignore")
        pieces.update(re.findall(r" ?\w{2,12}| ?[^\s\w]{2,3}|\s{2,8}", text))
        if len(pieces) > 1.2 * size:
            break
    words = [text.encode() for text in sorted(pieces, key=lambda each: (len(each), each))]
    words = [*(bytes([byte]) for byte in range(256)), *words][: size - 2]
    return [*words, *[None] * (size - len(words))]


def measure_build() -> None:
    """Print how long the automaton takes to build, and its memory."""
    words, notation_ = vocabulary(LLADA_VOCABULARY), f"schema:{json.dumps(TEN_FIELDS)}"
    with PeakMemory() as peak:
        begin = time.perf_counter()
        language = build(notation_, words)
        seconds = time.perf_counter() - begin
        begin = time.perf_counter()
        arcs = language.ending((5,)).arcs
        more = time.perf_counter() - begin
    print(f"built in {seconds:.2f} s, arcs in {more:.2f} s, peak {peak.extra / 2**20:.0f} MiB more")
    print(f"{language.num_states} states, {language.num_classes} classes, {len(arcs.source)} arcs")


def measure_overhead(rounds: int = 9) -> None:
    """Print the seconds of a forward, and of a step's decision with a language and without."""
    model = llada_shaped(Shape(layers=6, hidden=640))
    inner = sum(p.numel() for name, p in model.module.named_parameters() if "layers" in name)
    words = vocabulary(LLADA_VOCABULARY)
    language = build(f"schema:{json.dumps(TEN_FIELDS)}", words)
    rule = Rule.parse("confidence | swd(1) | top(1)")
    print(f"{inner / 1e6:.1f}M parameters in the layers")
    timed = Timed(model)
    for name, own in (("plain", None), ("schema", language)):
        settings = Settings(rule, block=32, language=own)
        batch = Batch(timed)
        batch.admit(prompt_request(model.spec, list(range(64)), 256, settings))
        forwards, decisions = [], []
        for _ in range(rounds):
            begin, before = time.perf_counter(), timed.seconds
            batch.step()
            forwards.append(timed.seconds - before)
            decisions.append(time.perf_counter() - begin - forwards[-1])
        times = [1e3 * median(each[1:]) for each in (forwards, decisions)]
        print(f"{name}: forward {times[0]:.0f} ms, decision {times[1]:.0f} ms")


def selections() -> list[str]:
    """Every selection with its defaults."""
    return [f"confidence | {notation(kind.make())}" for kind in kinds("select")]


def valid(answers: int, size: int, rules: list[str]) -> None:
    """Count the valid answers of every schema; the rules take turns."""
    words = vocabulary(size)
    model = llada_shaped(Shape(layers=1, hidden=64, vocabulary=size))
    for name, schema in SCHEMAS.items():
        language, good, begin = build(f"schema:{json.dumps(schema)}", words), 0, time.perf_counter()
        for number, rule in enumerate(rules):
            share = len(range(number, answers, len(rules)))
            good += count_valid(model, words, language, (rule, schema, share, number))
        print(f"{name}: {good} of {answers} valid, {time.perf_counter() - begin:.0f} s", flush=True)


def count_valid(
    model: Pretrained,
    words: list[bytes | None],
    language: TokenAutomaton,
    trial: tuple[str, dict[str, object], int, int],
) -> int:
    """How many of some random answers are valid under their schema."""
    rule, schema, count, seed = trial
    eos = model.spec.eos_id
    results = decode_many(
        model, [[seed + 1, place % 250 + 1] for place in range(count)], rule, length=128, block=32,
        language=language, sampling=Sampling(1.0), seed=1000 * seed, batch_size=8,
    )  # fmt: skip
    good = 0
    for result in results:
        text = b"".join(words[token] or b"" for token in result.ids if token != eos).decode()
        jsonschema.validate(json.loads(text), schema, format_checker=FORMATS)
        good += 1
    return good


def measure_words(count: int) -> None:
    """Word problems on the embedded model: right answers in the language and without it."""
    session, task = Session(), TASKS["words"]
    problems = task.sample("test", count)
    prompts = [problem.prompt for problem in problems]
    solved = {}
    for name, language in (("free", None), ("language", ENDED)):
        answers = session.generate(prompts, language=language, batch_size=16)
        pairs = zip(problems, answers, strict=True)
        solved[name] = [task.solved(problem, answer.text) for problem, answer in pairs]
        print(f"{name}: {sum(solved[name])} of {count} right", flush=True)
    print(paired(solved["free"], solved["language"]))


def main() -> None:
    """Read the arguments."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("build", "overhead", "valid", "words"))
    parser.add_argument("--answers", type=int, default=1000)
    parser.add_argument("--vocabulary", type=int, default=1500)
    parser.add_argument("--rule", action="append", help="default: every selection in turn")
    arguments = parser.parse_args()
    torch.set_grad_enabled(False)
    if arguments.what == "build":
        measure_build()
    elif arguments.what == "overhead":
        measure_overhead()
    elif arguments.what == "words":
        measure_words(arguments.answers)
    else:
        valid(arguments.answers, arguments.vocabulary, arguments.rule or selections())


if __name__ == "__main__":
    main()
