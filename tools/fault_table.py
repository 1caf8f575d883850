"""The faults that tools/faults.py plants: where, the text before and after, the nearest tests."""

from __future__ import annotations

from typing import NamedTuple


class Fault(NamedTuple):
    """One mistake in one file; `old` stands there exactly once."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


RULES = (
    Fault(
        "swd-sign",
        "src/unmask/rules/stability.py",
        "return scores - penalty",
        "return scores - -penalty",
        ("tests/rules",),
    ),
    Fault(
        "eb-modulated-entropy",
        "src/unmask/rules/select.py",
        "view.raw_entropy.gather(-1, order)",
        "view.entropy.gather(-1, order)",
        ("tests/rules",),
    ),
    Fault(
        "ties-to-the-highest",
        "src/unmask/rules/select.py",
        "-torch.inf).sort(descending=True, stable=True).indices",
        "-torch.inf).flip(-1).sort(descending=True, stable=True).indices.neg() + len(key[0]) - 1",
        ("tests/rules",),
    ),
    Fault(
        "klass-without-mask",
        "src/unmask/rules/select.py",
        "_passes(scores.value, self.conf, self.test) & view.masked",
        "_passes(scores.value, self.conf, self.test)",
        ("tests/rules", "tests/contracts"),
    ),
    Fault(
        "klass-one-kl-too-few",
        "src/unmask/rules/select.py",
        "view.trail[..., -self.n :]",
        "view.trail[..., 1 - self.n :]",
        ("tests/rules",),
    ),
    Fault(
        "credit-without-decay",
        "src/unmask/rules/credit.py",
        "amounts * self.beta",
        "amounts * 1.0",
        ("tests/rules",),
    ),
)

DECODING = (
    Fault(
        "window-one-too-wide",
        "src/unmask/decoding/windows.py",
        "& (place < state.stop[:, None])",
        "& (place <= state.stop[:, None])",
        ("tests/decoding",),
    ),
    Fault(
        "later-window-off-by-one",
        "src/unmask/decoding/windows.py",
        "(place >= state.stop[:, None])",
        "(place > state.stop[:, None])",
        ("tests/decoding",),
    ),
    Fault(
        "revoked-history-stays",
        "src/unmask/decoding/rows.py",
        "state.slot[cells] = -1",
        "state.slot[cells] += 0",
        ("tests/decoding", "tests/rules"),
    ),
    Fault(
        "one-seed-for-all-rows",
        "src/unmask/decoding/rows.py",
        "torch.Generator().manual_seed(request.seed)",
        "torch.Generator().manual_seed(0)",
        ("tests/decoding",),
    ),
    Fault(
        "lost-row",
        "src/unmask/decoding/loop.py",
        "first += len(keys)",
        "first += len(rows)",
        ("tests/decoding", "tests/contracts"),
    ),
    Fault(
        "top-p-one-too-early",
        "src/unmask/decoding/sampling.py",
        "p.cumsum(-1) - p > top_p",
        "p.cumsum(-1) > top_p",
        ("tests/decoding",),
    ),
    Fault(
        "eos-overwrites-end-token",
        "src/unmask/decoding/eos.py",
        "(ends.cumsum(-1) - ends.long() > 0)",
        "(ends.cumsum(-1) > 0)",
        ("tests/decoding",),
    ),
)

KERNELS = (
    Fault(
        "kl-direction-swapped",
        "src/unmask/kernels/reference.py",
        "(past.mean(past.p.mul_(gap)) + ratio)",
        "(-now.mean(now.p * gap) - ratio)",
        ("tests/kernels",),
    ),
    Fault(
        "uniform-start-ignored",
        "src/unmask/kernels/reduce.py",
        "torch.where(previous.slot == NO_HISTORY, UNIFORM, previous.slot)",
        "previous.slot",
        ("tests/kernels",),
    ),
    Fault(
        "compiled-margin-with-itself",
        "src/unmask/kernels/compiled.py",
        "torch.where(others, z, -torch.inf).amax(-1)",
        "torch.where(others, z, z).amax(-1)",
        ("tests/kernels",),
    ),
    Fault(
        "triton-zero-times-infinity",
        "src/unmask/kernels/cuda.py",
        "weight * tl.maximum(depth, -1e4)",
        "weight * depth",
        ("tests/kernels",),
    ),
)

MODELS = (
    Fault(
        "rotary-base",
        "src/unmask/models/layers.py",
        "1.0 / arch.rope_theta **",
        "1.0 / 10000.0 **",
        ("tests/models",),
    ),
    Fault(
        "attention-without-mask",
        "src/unmask/models/transformer.py",
        "attn_mask=mask",
        "attn_mask=None",
        ("tests/models",),
    ),
    Fault(
        "tied-weights-ignored",
        "src/unmask/models/families.py",
        'c.get("tie_word_embeddings", False)',
        "False",
        ("tests/models",),
    ),
    Fault(
        "cached-positions-shifted",
        "src/unmask/models/caches/cached.py",
        "ship(order, self.device), ship(mask, self.device)",
        "ship(torch.arange(queries).expand_as(order), self.device), ship(mask, self.device)",
        ("tests/models/caches",),
    ),
    Fault(
        "new-row-gets-old-cache",
        "src/unmask/models/caches/cached.py",
        "torch.tensor([key in at for key in canvas.keys])",
        "torch.tensor([True for key in canvas.keys])",
        ("tests/models/caches",),
    ),
    Fault(
        "stale-cells-are-fresh",
        "src/unmask/models/caches/cached.py",
        "fresh=asked",
        "fresh=real",
        ("tests/models/caches",),
    ),
    Fault(
        "guidance-scale",
        "src/unmask/models/wrappers/guided.py",
        "(self.scale + 1)",
        "self.scale",
        ("tests/models/wrappers",),
    ),
    Fault(
        "memory-serves-stale-rows",
        "src/unmask/models/wrappers/memoised.py",
        "row[:size].tobytes()",
        "row[: size - 1].tobytes()",
        ("tests/models/wrappers",),
    ),
    Fault(
        "no-generation-prompt",
        "src/unmask/models/tokenizer.py",
        '"add_generation_prompt": add_generation_prompt',
        '"add_generation_prompt": False',
        ("tests/models",),
    ),
)

TEXT = (
    Fault(
        "resume-duplicates",
        "src/unmask/text/jsonl.py",
        "if line.id not in self.answered:",
        "if line.place not in self.answered:",
        ("tests/text", "tests/cli"),
    ),
    Fault(
        "torn-line-stays",
        "src/unmask/text/jsonl.py",
        "stream.truncate(self._kept)",
        "stream.tell()",
        ("tests/text", "tests/cli"),
    ),
    Fault(
        "revocable-is-settled",
        "src/unmask/text/settled.py",
        "min(self.last, window) if self.revokes else self.last",
        "self.last",
        ("tests/text", "tests/server"),
    ),
    Fault(
        "replay-without-seed",
        "src/unmask/trace/recording/replay.py",
        'trace.header["seed"]',
        "0",
        ("tests/trace",),
    ),
    Fault(
        "trace-forgets-last-step",
        "src/unmask/trace/recording/tracer.py",
        "self._before = cells.last_step()",
        "self._before = None",
        ("tests/trace",),
    ),
    Fault(
        "story-swaps-more-and-less",
        "src/unmask/trace/story/step_story.py",
        'yield f"lam = 0 would also have committed {spans(there - here)}."',
        'yield f"lam = 0 would also have committed {spans(here - there)}."',
        ("tests/trace", "tests/cli"),
    ),
)

LAB = (
    Fault(
        "store-without-commit",
        "src/unmask/lab/sweep/store.py",
        'self._base.execute("COMMIT")',
        'self._base.execute("ROLLBACK")',
        ("tests/lab/sweep",),
    ),
    Fault(
        "store-without-sync",
        "src/unmask/lab/sweep/store.py",
        "PRAGMA synchronous = NORMAL",
        "PRAGMA synchronous = OFF",
        ("tests/lab/sweep",),
    ),
    Fault(
        "finished-example-again",
        "src/unmask/lab/sweep/store.py",
        "if answered or (worker != self._worker and self._lives(worker)):",
        "if worker != self._worker and self._lives(worker):",
        ("tests/lab/sweep",),
    ),
    Fault(
        "seed-without-example",
        "src/unmask/lab/sweep/plan.py",
        "sha_of([self.trial.seed, ask.example])",
        "sha_of([self.trial.seed])",
        ("tests/lab/sweep",),
    ),
    Fault(
        "thousands-cut-off",
        "src/unmask/lab/grading/numbers.py",
        'match["digits"].replace(",", "")',
        'match["digits"].split(",")[0]',
        ("tests/lab/grading", "tests/lab/benchmarks"),
    ),
    Fault(
        "grader-takes-18-for-180",
        "src/unmask/lab/grading/mathstrings.py",
        "return one == other",
        "return other.startswith(one)",
        ("tests/lab/grading", "tests/lab/benchmarks"),
    ),
    Fault(
        "sandbox-without-clock",
        "src/unmask/lab/sandbox/warden.py",
        'self.deadline = self.began + self.limits["wall"]',
        "self.deadline = self.began + START",
        ("tests/lab/sandbox",),
    ),
    Fault(
        "sandbox-without-output-limit",
        "src/unmask/lab/sandbox/warden.py",
        'data[: max(0, self.limits["output"] - len(self.log))]',
        "data",
        ("tests/lab/sandbox",),
    ),
    Fault(
        "mcnemar-one-sided",
        "src/unmask/lab/stats.py",
        "2 * total / (1 << discordant)",
        "total / (1 << discordant)",
        ("tests/lab/test_stats.py",),
    ),
    Fault(
        "bootstrap-unpaired",
        "src/unmask/lab/stats.py",
        "bootstrap_mean(differences, level, samples, seed)",
        "bootstrap_mean(_solved(second) - np.sort(_solved(first)), level, samples, seed)",
        ("tests/lab/test_stats.py",),
    ),
    Fault(
        "report-unescaped",
        "src/unmask/lab/report/page.py",
        "return escape(clean(text))",
        "return clean(text)",
        ("tests/lab/report",),
    ),
)

HOSTS = (
    Fault(
        "no-429",
        "src/unmask/server/engine.py",
        "if len(tasks) > self.room:",
        "if len(tasks) > self.room + 1000:",
        ("tests/server",),
    ),
    Fault(
        "queue-leaks-a-slot",
        "src/unmask/server/engine.py",
        "self._waiting.remove(task)",
        "task.apart = True",
        ("tests/server",),
    ),
    Fault(
        "any-key-will-do",
        "src/unmask/server/guard.py",
        'kind.lower() != "bearer" or not same',
        'kind.lower() != "bearer"',
        ("tests/server",),
    ),
    Fault(
        "stop-string-cut-late",
        "src/unmask/server/reader.py",
        "text[: cut[0]]",
        "text[: cut[0] + 1]",
        ("tests/server",),
    ),
    Fault(
        "page-unescaped",
        "src/unmask/page/build.py",
        "escape(trace.name, quote=True)",
        "trace.name",
        ("tests/page",),
    ),
    Fault(
        "block-of-another-request",
        "src/unmask/integrations/blocks.py",
        "if known is None or not torch.equal(known, canvases[place]):",
        "if known is None:",
        ("tests/integrations",),
    ),
    Fault(
        "streamer-repeats",
        "src/unmask/integrations/transformers/streamer.py",
        "torch.tensor([final[self.sent :]])",
        "torch.tensor([final])",
        ("tests/integrations/transformers",),
    ),
    Fault(
        "list-grader-takes-any-order",
        "src/unmask/embedded/tasks/lists.py",
        "answer: Items) -> bool:\n    return found == answer",
        "answer: Items) -> bool:\n    return sorted(found) == sorted(answer)",
        ("tests/embedded/tasks",),
    ),
    Fault(
        "sums-grader-takes-extra",
        "src/unmask/embedded/tasks/sums.py",
        "if part] == wanted",
        "if part][: len(wanted)] == wanted",
        ("tests/embedded/tasks",),
    ),
)

FAULTS = (*RULES, *DECODING, *KERNELS, *MODELS, *TEXT, *LAB, *HOSTS)
