"""Structured output: building time and memory, overhead per step, and how many answers are valid.

    python -m bench.structured build      # a schema of ten fields, a vocabulary of 126,464 tokens
    python -m bench.structured overhead   # a step in blocks of 32, with the schema and without
    python -m bench.structured valid --answers 1000
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


def measure_overhead(rounds: int = 25) -> None:
    """Print the time of a forward, and of a step's decision with a language and without.

    Steps of both take turns, so that a busy machine slows them alike.
    """
    model = llada_shaped(Shape(layers=6, hidden=640))
    inner = sum(p.numel() for name, p in model.module.named_parameters() if "layers" in name)
    words = vocabulary(LLADA_VOCABULARY)
    language = build(f"schema:{json.dumps(TEN_FIELDS)}", words)
    rule = Rule.parse("confidence | swd(1) | top(1)")
    timed, forwards, decisions = Timed(model), [], {"plain": [], "schema": []}
    batches = {}
    for name, own in (("plain", None), ("schema", language)):
        batches[name] = batch = Batch(timed)
        settings = Settings(rule, block=32, language=own)
        batch.admit(prompt_request(model.spec, list(range(64)), 256, settings))
    for _ in range(rounds):
        for name, batch in batches.items():
            begin, before = time.perf_counter(), timed.seconds
            batch.step()
            forwards.append(timed.seconds - before)
            decisions[name].append(time.perf_counter() - begin - forwards[-1])
    forward, plain, schema = (1e3 * median(x[2:]) for x in (forwards, *decisions.values()))
    print(f"{inner / 1e6:.1f}M parameters in the layers, {torch.get_num_threads()} threads")
    print(f"forward {forward:.0f} ms, decision {plain:.1f} ms, with the schema {schema:.1f} ms")
    print(f"the schema adds {(schema - plain) / forward:.1%} of a forward")


def selections() -> list[str]:
    """Every selection with its defaults."""
    return [f"confidence | {notation(kind.make())}" for kind in kinds("select")]


def valid(answers: int, size: int, rules: list[str]) -> None:
    """Count the valid answers of every schema; the rules, blocks and temperatures take turns."""
    words = vocabulary(size)
    model = llada_shaped(Shape(layers=1, hidden=64, vocabulary=size))
    for name, schema in SCHEMAS.items():
        language, begin = build(f"schema:{json.dumps(schema)}", words), time.process_time()
        texts = [
            text
            for number, rule in enumerate(rules)
            for text in random_answers(
                model, words, language, rule, number, len(range(number, answers, len(rules)))
            )
        ]
        bad, seconds = [t for t in texts if not fits(t, schema)], time.process_time() - begin
        counts = f"{len(texts) - len(bad)} of {len(texts)} valid, {len({*texts})} different"
        print(f"{name}: {counts}, {seconds:.0f} s", *bad[:3], sep="\n  ", flush=True)


def random_answers(
    model: Pretrained,
    words: list[bytes | None],
    language: TokenAutomaton,
    rule: str,
    number: int,
    count: int,
) -> list[str]:
    """So many answers by one rule; its number chooses the block and the temperature."""
    eos = model.spec.stop_ids
    shortest = language.ending(eos).shortest()
    assert shortest is not None
    results = decode_many(
        model, [[number + 1, place % 250 + 1, place // 250] for place in range(count)], rule,
        length=shortest + 24, block=(4, 8, 12)[number % 3], steps=24, eos="stop", batch_size=16,
        language=language, sampling=Sampling(float(number % 2)), seed=1000 * number,
    )  # fmt: skip
    kept = ([token for token in result.ids if token not in eos] for result in results)
    return [b"".join(words[token] or b"" for token in ids).decode() for ids in kept]


def fits(text: str, schema: dict[str, object]) -> bool:
    """Whether a text is JSON that is valid under a schema, formats too."""
    try:
        jsonschema.validate(json.loads(text), schema, format_checker=FORMATS)
    except (ValueError, jsonschema.ValidationError):
        return False
    return True


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
    parser.add_argument("--vocabulary", type=int, default=LLADA_VOCABULARY)
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
