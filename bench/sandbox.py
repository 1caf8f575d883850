"""The sandbox against benchmarks: references pass, mutants fail exactly where plain Python fails.

    python -m bench.sandbox --data DIR [--mutants 500] [--workers N] [--backend auto] [--json]

DIR holds humaneval.jsonl and mbpp.jsonl (with a `split` of each row). Every mutant is one change to
a reference solution, judged twice: by the sandbox, and by plain Python in a process of its own.
"""

from __future__ import annotations

import argparse
import ast
import json
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from unmask.lab.sandbox import Program, ProgramLimits, Sandbox, Verdict, used_names
from unmask.lab.sandbox.backends import ENVIRONMENT, FLAGS, interpreter

PATIENT = ProgramLimits(wall=180, cpu=60)
SLOW = {"mbpp/123"}  # its reference needs more CPU time than any sensible limit
PLAIN = """
import json, random, resource, sys
code, tests, limits = json.load(sys.stdin)
resource.setrlimit(resource.RLIMIT_CPU, (limits["cpu"], limits["cpu"]))
resource.setrlimit(resource.RLIMIT_AS, (limits["memory"], limits["memory"]))
random.seed(0)
scope = {"__name__": "plain"}
exec(code, scope)
exec(tests, scope)
"""


@dataclass(frozen=True)
class Problem:
    """A reference solution and its tests."""

    name: str
    program: Program


def problems(data: Path) -> Iterator[Problem]:
    """HumanEval, and the test split of MBPP."""
    for row in _rows(data / "humaneval.jsonl"):
        code = row["prompt"] + row["canonical_solution"]
        tests = f"{row['test']}\ncheck({row['entry_point']})\n"
        yield Problem(row["task_id"].lower(), Program(code, tests, used_names(tests, code)))
    for row in _rows(data / "mbpp.jsonl"):
        if row["split"] == "test":
            code = row["code"].replace("\r\n", "\n")
            tests = "\n".join([row["test_setup_code"].replace("\r\n", "\n"), *row["test_list"]])
            yield Problem(f"mbpp/{row['task_id']}", Program(code, tests, used_names(tests, code)))


def references(sandbox: Sandbox, all_problems: list[Problem], workers: int) -> dict[str, object]:
    """Every reference must pass; the slow one under a longer limit."""
    begin = time.perf_counter()
    usual = [problem for problem in all_problems if problem.name not in SLOW]
    verdicts = dict(_judged(sandbox, usual, workers))
    seconds = time.perf_counter() - begin
    patient = Sandbox(sandbox.backend, PATIENT, allow_unsandboxed=True)
    slow = [problem for problem in all_problems if problem.name in SLOW]
    for name, verdict in _judged(patient, slow, 1):
        verdicts[name] = verdict
    failed = {name: f"{v.reason}: {v.detail}" for name, v in verdicts.items() if not v.passed}
    return {
        "references": len(verdicts),
        "passed": len(verdicts) - len(failed),
        "failed": failed,
        "flagged": [name for name, verdict in verdicts.items() if verdict.flagged],
        "seconds per sample and worker": round(seconds * workers / len(usual), 3),
    }


def mutants(
    sandbox: Sandbox, all_problems: list[Problem], count: int, workers: int
) -> dict[str, object]:
    """Verdicts on mutated references, and where plain Python disagrees."""
    chosen = list(_mutated(all_problems, count))
    with ThreadPoolExecutor(workers) as pool:
        plain = list(
            pool.map(lambda mutant: passes_plainly(mutant.program, sandbox.limits), chosen)
        )
    verdicts = dict(_judged(sandbox, chosen, workers))
    differing = {
        mutant.name: f"plain {'passes' if passed else 'fails'}, here {verdicts[mutant.name].reason}"
        for mutant, passed in zip(chosen, plain, strict=True)
        if passed != verdicts[mutant.name].passed
    }
    return {
        "mutants": len(chosen),
        "pass": sum(plain),
        "reasons": dict(Counter(verdict.reason for verdict in verdicts.values()).most_common()),
        "disagreements": differing,
    }


def passes_plainly(program: Program, limits: ProgramLimits) -> bool:
    """Whether code and tests run to their end in one plain process."""
    job = json.dumps([program.code, program.tests, {"cpu": limits.cpu, "memory": limits.memory}])
    try:
        return not subprocess.run(
            [str(interpreter()), *FLAGS, "-c", PLAIN],
            input=job.encode(),
            env=ENVIRONMENT,
            capture_output=True,
            timeout=limits.wall,
            cwd="/",
        ).returncode
    except subprocess.TimeoutExpired:
        return False


class Mutator(ast.NodeTransformer):
    """Changes the n-th place that can be changed: an operator, a comparison or a constant."""

    SWAPS = {  # noqa: RUF012
        ast.Add: ast.Sub,
        ast.Sub: ast.Add,
        ast.Mult: ast.Add,
        ast.Div: ast.Mult,
        ast.FloorDiv: ast.Div,
        ast.Mod: ast.FloorDiv,
        ast.Lt: ast.LtE,
        ast.LtE: ast.Lt,
        ast.Gt: ast.GtE,
        ast.GtE: ast.Gt,
        ast.Eq: ast.NotEq,
        ast.NotEq: ast.Eq,
        ast.And: ast.Or,
        ast.Or: ast.And,
    }

    def __init__(self, place: int) -> None:
        self.place = place
        self.seen = 0

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        if type(node) in self.SWAPS and self._here():
            return self.SWAPS[type(node)]()
        if isinstance(node, ast.Constant) and type(node.value) in (int, bool, str) and self._here():
            changed = {int: lambda v: v + 1, bool: lambda v: not v, str: lambda v: v + "x"}
            return ast.copy_location(ast.Constant(changed[type(node.value)](node.value)), node)
        if isinstance(node, ast.Return) and node.value and self._here():
            return ast.copy_location(ast.Return(ast.List([node.value], ast.Load())), node)
        return node

    def _here(self) -> bool:
        self.seen += 1
        return self.seen - 1 == self.place


def _mutated(all_problems: list[Problem], count: int) -> Iterator[Problem]:
    """One change each to references drawn at random, the same for the same count."""
    drawn = random.Random(0)
    for number in range(count):
        problem = drawn.choice([p for p in all_problems if p.name not in SLOW])
        tree = ast.parse(problem.program.code)
        counter = Mutator(-1)
        counter.visit(tree)
        tree = Mutator(drawn.randrange(max(counter.seen, 1))).visit(tree)
        code = ast.unparse(ast.fix_missing_locations(tree))
        yield Problem(f"{problem.name}#{number}", replace(problem.program, code=code))


def _judged(sandbox: Sandbox, some: list[Problem], workers: int) -> Iterable[tuple[str, Verdict]]:
    for done, (number, verdict) in enumerate(
        sandbox.judge_many((problem.program for problem in some), workers), 1
    ):
        print(f"\r{done} of {len(some)}", end="", file=sys.stderr)
        yield some[number].name, verdict
    print(file=sys.stderr)


def _rows(path: Path) -> Iterator[dict[str, str]]:
    with path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of the benchmarks")
    parser.add_argument("--mutants", type=int, default=500, help="how many to draw")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--backend", default="auto", choices=("auto", "bwrap", "rlimit"))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    sandbox = Sandbox(options.backend, allow_unsandboxed=True)
    examples = list(problems(options.data))
    table = {"backend": sandbox.backend, "workers": options.workers}
    table |= references(sandbox, examples, options.workers)
    table |= mutants(sandbox, examples, options.mutants, options.workers)
    if options.json:
        print(json.dumps(table))
        return
    for name, value in table.items():
        print(f"{name:30} {value}")


if __name__ == "__main__":
    main()
