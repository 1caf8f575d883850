"""The faults that tools/faults.py plants: where, the text before and after, the nearest tests."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class Fault(NamedTuple):
    """One mistake in one file of src/unmask; `old` stands there exactly once."""

    name: str
    file: str
    old: str
    new: str
    also: tuple[str, ...] = ()  # folders of tests that are as near as the file's own

    @property
    def tests(self) -> tuple[str, ...]:
        """The nearest tests, as the tests mirror the source tree: the module's, its folder's."""
        path = Path("tests", self.file)
        return (str(path.with_name(f"test_{path.name}")), str(path.parent), *self.also)


RULES = (
    Fault(
        "swd-sign",
        "rules/stability.py",
        "return scores - penalty",
        "return scores - -penalty",
    ),
    Fault(
        "eb-modulated-entropy",
        "rules/prefixes.py",
        "view.raw_entropy.gather(-1, order)",
        "view.entropy.gather(-1, order)",
    ),
    Fault(
        "ties-to-the-highest",
        "rules/select.py",
        "-torch.inf).sort(descending=True, stable=True).indices",
        "-torch.inf).flip(-1).sort(descending=True, stable=True).indices.neg() + len(key[0]) - 1",
    ),
    Fault("budget-twice-delta", "rules/budget.py", "(spent <= delta, w", "(spent <= 2 * delta, w"),
    Fault(
        "klass-without-mask",
        "rules/select.py",
        "_passes(scores.value, self.conf, self.test) & view.masked",
        "_passes(scores.value, self.conf, self.test)",
        ("tests/contracts",),
    ),
    Fault(
        "klass-one-kl-too-few",
        "rules/select.py",
        "[..., -self.n :] < self.kl",
        "[..., 1 - self.n :] < self.kl",
    ),
    Fault(
        "credit-without-decay",
        "rules/credit.py",
        "amounts * self.beta",
        "amounts * 1.0",
    ),
)

DECODING = (
    Fault(
        "window-one-too-wide",
        "decoding/windows.py",
        "& (place < state.stop[:, None])",
        "& (place <= state.stop[:, None])",
    ),
    Fault(
        "later-window-off-by-one",
        "decoding/windows.py",
        "(place >= state.stop[:, None])",
        "(place > state.stop[:, None])",
    ),
    Fault(
        "revoked-history-stays",
        "decoding/state.py",
        '"commit_step", "slot", "anchor", "trail"',
        '"commit_step", "anchor", "trail"',
        ("tests/rules",),
    ),
    Fault(
        "one-seed-for-all-rows",
        "decoding/rows.py",
        "torch.Generator().manual_seed(request.seed)",
        "torch.Generator().manual_seed(0)",
    ),
    Fault(
        "lost-row",
        "decoding/loop.py",
        "first += len(keys)",
        "first += len(rows)",
        ("tests/contracts",),
    ),
    Fault(
        "top-p-one-too-early",
        "decoding/sampling.py",
        "p.cumsum(-1) - p > top_p",
        "p.cumsum(-1) > top_p",
    ),
    Fault(
        "eos-overwrites-end-token",
        "decoding/eos.py",
        "(ends.cumsum(-1) - ends.long() > 0)",
        "(ends.cumsum(-1) > 0)",
    ),
)

KERNELS = (
    Fault(
        "kl-direction-swapped",
        "kernels/reference.py",
        "(past.mean(past.p.mul_(gap)) + ratio)",
        "(-now.mean(now.p * gap) - ratio)",
    ),
    Fault(
        "uniform-start-ignored",
        "kernels/reduce.py",
        "torch.where(slot == NO_HISTORY, UNIFORM, slot)",
        "slot",
    ),
    Fault(
        "compiled-margin-with-itself",
        "kernels/compiled.py",
        "torch.where(others, z, -torch.inf).amax(-1)",
        "torch.where(others, z, z).amax(-1)",
    ),
    Fault(
        "triton-zero-times-infinity",
        "kernels/cuda.py",
        "weight * tl.maximum(depth, -1e4)",
        "weight * depth",
    ),
)

MODELS = (
    Fault(
        "rotary-base",
        "models/layers.py",
        "1.0 / arch.rope_theta **",
        "1.0 / 10000.0 **",
    ),
    Fault(
        "attention-without-mask",
        "models/transformer.py",
        "attn_mask=mask",
        "attn_mask=None",
    ),
    Fault(
        "tied-weights-ignored",
        "models/families.py",
        'c.flag("tie_word_embeddings", False)',
        "False",
    ),
    Fault(
        "cached-positions-shifted",
        "models/caches/cached.py",
        "ship(order, self.device), ship(mask, self.device)",
        "ship(torch.arange(queries).expand_as(order), self.device), ship(mask, self.device)",
    ),
    Fault(
        "new-row-gets-old-cache",
        "models/caches/cached.py",
        "torch.tensor([key in at for key in canvas.keys])",
        "torch.tensor([True for key in canvas.keys])",
    ),
    Fault(
        "stale-cells-are-fresh",
        "models/caches/cached.py",
        "fresh=asked",
        "fresh=real",
    ),
    Fault(
        "guidance-scale",
        "models/wrappers/guided.py",
        "(self.scale + 1)",
        "self.scale",
    ),
    Fault(
        "memory-serves-stale-rows",
        "models/wrappers/memoised.py",
        "row[:size].tobytes()",
        "row[: size - 1].tobytes()",
    ),
    Fault(
        "no-generation-prompt",
        "models/tokenizer.py",
        '"add_generation_prompt": add_generation_prompt',
        '"add_generation_prompt": False',
    ),
)

TEXT = (
    Fault(
        "resume-duplicates",
        "text/jsonl.py",
        "if line.id not in self.answered:",
        "if line.place not in self.answered:",
        ("tests/cli",),
    ),
    Fault(
        "torn-line-stays",
        "text/jsonl.py",
        "stream.truncate(self._kept)",
        "stream.tell()",
        ("tests/cli",),
    ),
    Fault(
        "revocable-is-settled",
        "text/settled.py",
        "min(self.last, window) if self.revokes else self.last",
        "self.last",
        ("tests/server",),
    ),
    Fault(
        "replay-without-seed",
        "trace/recording/replay.py",
        'trace.header["seed"]',
        "0",
    ),
    Fault(
        "trace-forgets-last-step",
        "trace/recording/tracer.py",
        "self._before = cells.last_step()",
        "self._before = None",
    ),
    Fault(
        "story-swaps-more-and-less",
        "trace/story/step_story.py",
        'yield f"lam = 0 would also have committed {spans(there - here)}."',
        'yield f"lam = 0 would also have committed {spans(here - there)}."',
        ("tests/cli",),
    ),
)

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
    ),
    Fault(
        "sandbox-without-output-limit",
        "lab/sandbox/warden.py",
        'data[: max(0, self.limits["output"] - len(self.log))]',
        "data",
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
        'timing=timing if setting.timed else "",',
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

FAULTS = (*RULES, *DECODING, *KERNELS, *MODELS, *TEXT, *LAB, *HOSTS)
