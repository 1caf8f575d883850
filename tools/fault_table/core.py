"""Faults in rules, decoding, kernels, models and texts."""

from __future__ import annotations

from tools.fault_table.fault import Fault

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
        "decoding/state.py",
        "behind & (place < stop[:, None])",
        "behind & (place <= stop[:, None])",
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
        first="tests/kernels/test_reduce.py",
    ),
    Fault(
        "uniform-start-ignored",
        "kernels/reduce.py",
        "slot.masked_fill(slot == NO_HISTORY, UNIFORM)",
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
        "models/transformer.py",
        "if not self.arch.tied:",
        "if self.arch.tied:",
    ),
    Fault(
        "cached-positions-shifted",
        "models/caches/cached.py",
        "for given in (tokens, order, mask))",
        "for given in (tokens, torch.arange(queries).expand_as(order), mask))",
    ),
    Fault(
        "unequal-rows-share-a-forward",
        "models/caches/cached.py",
        "if not self.model.exact:",
        "if True:",
    ),
    Fault(
        "a-few-cells-rounded-otherwise",
        "models/pretrained.py",
        "several_rows(chosen)",
        "chosen",
    ),
    Fault(
        "packed-whatever-the-bits",
        "models/packed.py",
        "and _same_bits(dtype)",
        "",
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
        first="tests/cli/test_run_files.py",
    ),
    Fault(
        "torn-line-stays",
        "text/jsonl.py",
        "stream.truncate(self._kept)",
        "stream.tell()",
        ("tests/cli",),
        first="tests/cli/test_run_files.py",
    ),
    Fault(
        "revocable-is-settled",
        "text/settled.py",
        "min(whole, window) if self.revokes else whole",
        "whole",
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
        first="tests/cli/test_explain.py",
    ),
)
