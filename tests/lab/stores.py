"""Stores with invented answers, small ones by hand and a rich one from a seed."""

from __future__ import annotations

import random
from dataclasses import replace

from tests.lab.makers import answer, asks, trial
from unmask.lab.paper import LENGTHS
from unmask.lab.report.findings import Findings
from unmask.lab.report.gather import Machine, Results
from unmask.lab.report.rule_parts import parts_of
from unmask.lab.summary import Summary
from unmask.lab.sweep.grid import spelled_out
from unmask.lab.sweep.store import Store, StoredExample

HERE = {
    "unmask": "0.1.0",
    "commit": "0123456789ab",
    "python": "3.11.7",
    "torch": "2.5.0",
    "system": "Linux",
    "device": "Invented CPU",
    "threads": 2,
    "batch_size": 8,
}
GAMMAS = "confidence | swd({0,1,5}) | eb({0.005,0.05,0.5,1,2})"
GRID = (
    "{confidence,margin,entropy} | swd({0,1,5}) | {eb(0.1),top(1)}",
    "{confidence,margin} | swd({0,1,5}) | threshold(0.9)",
    "confidence | swd({0,1,5}) | klass(0.9)",
    "credit(0.65) | confidence | swd({0,5}) | threshold(0.9)",
)
PAPER = (
    "{confidence,margin,entropy} | swd({0,1,1.5,5}) | eb(0.1)",
    "{confidence,margin} | threshold(0.9)",
    "{confidence,margin} | swd({1,5}) | threshold(0.8)",
    "{confidence,margin,entropy} | swd({0,5}) | top(1)",
    "confidence | swd({0,5}) | klass(0.9)",
    "credit(0.65) | confidence | swd({0,5}) | threshold(0.9)",
)


def fill(file, trials, environment=HERE, grader="words 1"):
    """A store of trials, each with a list of (solved, answer) or (solved, compat, answer)."""
    with Store(file) as store:
        store.sign_in(environment)
        for each, outcomes in trials.items():
            store.add(each)
            for ask, outcome in zip(asks(len(outcomes)), outcomes, strict=True):
                solved, *compat, counters = outcome
                assert store.claim(each, ask)
                store.finish(each, ask, answer(**counters))
                if solved is not None:
                    grade = {"acc": solved, "acc_compat": compat[0] if compat else solved}
                    store.grade(each, ask, grade, grader)
    return file


def solved(pattern, **counters):
    """Outcomes from a text of 1, 0 and ?, the last for an answer without a verdict."""
    return [({"1": True, "0": False, "?": None}[sign], counters) for sign in pattern]


def rows_of(outcomes, grader="words 1", worker=1, asked=None):
    """The same as rows, without a store."""
    rows = []
    for ask, (right, *compat, counters) in zip(asked or asks(len(outcomes)), outcomes, strict=True):
        grade = {"acc": right, "acc_compat": compat[0] if compat else right}
        rows.append(StoredExample(ask, answer(**counters), grade, grader, worker))
    return rows


def summary(pattern, grader="words 1", asked=None, counters=None, **changes):
    """A trial with these outcomes."""
    return Summary.of(
        trial(**changes), rows_of(solved(pattern, **(counters or {})), grader, 1, asked)
    )


def findings_of(summaries, baseline=None):
    """Findings without a store."""
    count = sum(each.count for each in summaries)
    machines = (Machine("A", HERE, (1,), count),)
    return Findings.of(Results("some.sqlite", tuple(summaries), (), machines), baseline)


def rich(count=40, seed=0, paper=False):
    """Three scores, lams, selections, windows, EOS policies and gammas on several tasks."""
    rng = random.Random(seed)
    trials = {}
    for each in rich_trials(paper):
        hardness = [random.Random(f"{each.task} {n}").random() for n in range(count)]
        trials[each] = [outcome(each, hard, rng) for hard in hardness]
    return trials


def rich_trials(paper):
    """The settings of the rich store."""
    if paper:
        usual = {"model": "GSAI-ML/LLaDA-8B-Instruct", "dtype": "bfloat16", "preset": "paper"}
        for task, length in LENGTHS.items():
            base = trial(**usual, task=task, length=length)
            yield from with_rules(base, PAPER)
            yield from with_rules(
                replace(base, block=32), ["confidence | swd({0,1,1.5}) | eb(0.1)"]
            )
        return
    for task in ("words", "code", "sudoku"):
        base = trial(task=task)
        yield from with_rules(base, [*GRID, GAMMAS])
        yield from with_rules(replace(base, block=16), GRID[:2])
        yield from with_rules(
            replace(base, eos="suppress"), ["confidence | swd({0,1,5}) | eb(0.1)"]
        )


def with_rules(base, texts):
    """A trial for each rule of each text."""
    for text in texts:
        for rule in spelled_out(text):
            yield replace(base, rule=rule)


def outcome(each, hard, rng):
    """Plausible: fast is worse, blocks help, SWD helps over the full window and not in blocks."""
    parts = parts_of(each.rule)
    speed = {"top": 1.0, "eb": 4.0, "threshold": 4.5, "klass": 3.0}[parts.kind]
    if parts.kind == "eb":
        speed *= (10 * float(parts.knob)) ** 0.25
    skill = 0.8 - 0.035 * speed + 0.05 * (parts.score == "confidence")
    skill += 0.15 * (each.block is not None) + 0.1 * (each.eos == "suppress")
    skill += parts.lam * (0.02 if each.block is None and each.task == "words" else -0.02)
    right = hard + rng.gauss(0, 0.12) < skill
    compat = right and rng.random() < 0.97
    nfe = max(1, round(each.length / speed * rng.uniform(0.85, 1.15)))
    tokens = round(each.length * rng.uniform(0.3, 0.8))
    forward = 0.004 if each.length < 100 else 0.07
    seconds = nfe * forward * rng.uniform(0.95, 1.05)
    decision = seconds * (0.04 + 0.03 * bool(parts.lam))
    counters = {
        "tokens": tokens,
        "written": each.length,
        "nfe": nfe,
        "nfe_eos": max(1, round(nfe * rng.uniform(0.6, 1.0))),
        "eos_share": 1 - tokens / each.length,
        "cut_off": rng.random() < 0.03,
        "seconds_model": seconds,
        "seconds_decision": decision,
        "seconds_total": seconds + decision,
        "memory_mean": 620_000_000 + rng.randrange(9_000_000),
        "memory_peak": 650_000_000 + rng.randrange(9_000_000),
    }
    return right, compat, counters
