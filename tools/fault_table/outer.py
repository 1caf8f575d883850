"""Faults in the lab, the studies, the commands and what serves other programs."""

from __future__ import annotations

from tools.fault_table.fault import Fault

LAB = (
    Fault(
        "store-without-commit",
        "lab/sweep/store.py",
        'self._base.execute("COMMIT")',
        'self._base.execute("ROLLBACK")',
    ),
    Fault(
        "store-without-sync",
        "lab/sweep/store.py",
        "PRAGMA synchronous = NORMAL",
        "PRAGMA synchronous = OFF",
    ),
    Fault(
        "finished-example-again",
        "lab/sweep/store.py",
        "if answered or (worker != self._worker and self._lives(worker)):",
        "if worker != self._worker and self._lives(worker):",
    ),
    Fault(
        "seed-without-example",
        "lab/sweep/plan.py",
        "sha_of([self.trial.seed, ask.example])",
        "sha_of([self.trial.seed])",
    ),
    Fault(
        "thousands-cut-off",
        "lab/grading/numbers.py",
        'match["digits"].replace(",", "")',
        'match["digits"].split(",")[0]',
        ("tests/lab/benchmarks",),
    ),
    Fault(
        "grader-takes-18-for-180",
        "lab/grading/mathstrings.py",
        "return one == other",
        "return other.startswith(one)",
        ("tests/lab/benchmarks",),
    ),
    Fault(
        "sandbox-without-clock",
        "lab/sandbox/warden.py",
        'self.deadline = self.began + self.limits["wall"]',
        "self.deadline = self.began + START",
        first="tests/lab/sandbox/test_sandbox.py",
    ),
    Fault(
        "sandbox-without-output-limit",
        "lab/sandbox/warden.py",
        'data[: max(0, self.limits["output"] - len(self.log))]',
        "data",
        first="tests/lab/sandbox/test_sandbox.py",
    ),
    Fault(
        "mcnemar-one-sided",
        "lab/stats.py",
        "2 * total / (1 << discordant)",
        "total / (1 << discordant)",
    ),
    Fault(
        "bootstrap-unpaired",
        "lab/stats.py",
        "bootstrap_mean(differences, level, samples, seed)",
        "bootstrap_mean(_solved(second) - np.sort(_solved(first)), level, samples, seed)",
    ),
    Fault(
        "stars-uncorrected",
        "lab/report/pairs.py",
        "if self.holm >= LEVEL:",
        "if self.acc.p >= LEVEL:",
    ),
    Fault(
        "seconds-of-another-run",
        "lab/sweep/plan.py",
        "timing=timing,",
        'timing="",',
    ),
    Fault(
        "papers-figures-at-another-length",
        "lab/report/paper_columns.py",
        "(each.task, each.length) == (trial.task, trial.length)",
        "each.task == trial.task",
    ),
    Fault(
        "report-unescaped",
        "lab/report/page.py",
        "return escape(clean(text))",
        "return clean(text)",
        first="tests/lab/report/test_report.py",
    ),
    Fault(
        "front-keeps-the-dominated",
        "lab/equal_cost.py",
        "other <= nfe and right >= accuracy",
        "other < nfe and right >= accuracy",
    ),
    Fault(
        "mixture-the-wrong-way",
        "lab/equal_cost.py",
        "(1 - share) * self._solved[after - 1] + share * self._solved[after]",
        "share * self._solved[after - 1] + (1 - share) * self._solved[after]",
    ),
    Fault(
        "worst-of-equal-cost",
        "lab/equal_cost.py",
        '(each.mean("nfe"), -each.accuracy())',
        '(each.mean("nfe"), each.accuracy())',
    ),
    Fault(
        "stars-without-correction",
        "lab/rule_comparison.py",
        "corrected = holm([cost.p for cost in costs])",
        "corrected = [cost.p for cost in costs]",
        first="tests/lab/test_compare.py",
    ),
    Fault(
        "verdict-swaps-more-and-fewer",
        "lab/rule_comparison.py",
        'more = "more" if cost.difference > 0 else "fewer"',
        'more = "more" if cost.difference < 0 else "fewer"',
        first="tests/lab/test_compare.py",
    ),
)

STUDIES = (
    Fault(
        "gain-with-a-wrong-sign",
        "studies/theory.py",
        "gain=entropy + _entropy(outcome) - _entropy(after)",
        "gain=entropy + _entropy(outcome) + _entropy(after)",
    ),
    Fault(
        "one-outcome-for-the-mean",
        "studies/theory.py",
        "forward=_mean(forward, outcome, (1, 2))",
        "forward=forward.max((1, 2))",
    ),
    Fault(
        "likelihood-without-weights",
        "studies/likelihood.py",
        "totals[row.number] += row.weight * value",
        "totals[row.number] += value",
    ),
    Fault(
        "likelihood-blocks-from-the-target",
        "studies/likelihood.py",
        "min(stop, (start // block + 1) * block)",
        "min(stop, start + block)",
    ),
)

HOSTS = (
    Fault(
        "tie-without-proof",
        "conformance/ties.py",
        "if not torch.equal(nudged(view).chosen, theirs):",
        "if False:",
    ),
    Fault(
        "no-429",
        "server/engine.py",
        "if len(tasks) > self.room:",
        "if len(tasks) > self.room + 1000:",
    ),
    Fault(
        "queue-leaks-a-slot",
        "server/engine.py",
        "self._waiting.remove(task)",
        "task.apart = True",
    ),
    Fault(
        "any-key-will-do",
        "server/guard.py",
        'kind.lower() != "bearer" or not same',
        'kind.lower() != "bearer"',
        first="tests/server/test_refusals.py",
    ),
    Fault(
        "stop-string-cut-late",
        "text/settled.py",
        "text[: cut[0]]",
        "text[: cut[0] + 1]",
    ),
    Fault(
        "page-unescaped",
        "page/build.py",
        "escape(trace.name, quote=True)",
        "trace.name",
    ),
    Fault(
        "block-of-another-request",
        "integrations/blocks.py",
        "if known is None or not torch.equal(known, canvases[place]):",
        "if known is None:",
    ),
    Fault(
        "streamer-repeats",
        "integrations/transformers/streamer.py",
        "torch.tensor([final[self.sent :]])",
        "torch.tensor([final])",
        first="tests/integrations/transformers/test_custom_generate.py",
    ),
    Fault(
        "list-grader-takes-any-order",
        "embedded/tasks/lists.py",
        "    return answer == wanted\n",
        "    return sorted(answer) == sorted(wanted)\n",
    ),
    Fault(
        "sums-grader-takes-extra",
        "embedded/tasks/sums.py",
        "if part] == wanted",
        "if part][: len(wanted)] == wanted",
    ),
)

COMMANDS = (
    Fault(
        "ends-before-the-language",
        "languages/canvas.py",
        "self.automaton.can_end_in(count - place)\n        while",
        "np.zeros(self.automaton.num_states)\n        while",
        first="tests/languages/test_canvas.py",
    ),
    Fault(
        "a-wrong-kernel-is-fine",
        "doctor/kernels.py",
        'if serving in WITHOUT else ""\n        yield Finding("kernel", "fault", says',
        'if serving in WITHOUT else ""\n        yield Finding("kernel", "ok", says',
        first="tests/doctor/test_doctor.py",
    ),
    Fault(
        "answer-to-another-line",
        "cli/run.py",
        "line = lines[missing[key]]",
        "line = lines[key]",
        first="tests/cli/test_run_files.py",
    ),
    Fault(
        "token-at-its-last-position",
        "cli/explain.py",
        "first, *others = positions_of(",
        "*others, first = positions_of(",
    ),
    Fault(
        "replay-never-fails",
        "cli/replay.py",
        "return int(decided and arguments.rule is None)",
        "return 0",
        first="tests/trace/recording/test_replay.py",
    ),
)
