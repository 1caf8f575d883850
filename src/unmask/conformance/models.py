"""Golden checkpoints: logits, hidden states, generations, tokens and chats of the originals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from unmask.conformance.cases import dream_rule
from unmask.conformance.forwards import real_prompts, useful_forwards, wanted_answer
from unmask.conformance.plan import KnownDifference, NotOffered, Skipped
from unmask.conformance.report import Report, read_golden
from unmask.conformance.ties import Steps, tied
from unmask.decoding.loop import decode_steps
from unmask.decoding.options import Eos
from unmask.decoding.request import Request, Settings, prompt_request
from unmask.decoding.results import Step
from unmask.decoding.sampling import Sampling
from unmask.errors import UnmaskError
from unmask.models.caches import Cached
from unmask.models.denoiser import Denoiser
from unmask.models.load import Loaded, load
from unmask.models.pretrained import Pretrained
from unmask.models.transformer import block_causal
from unmask.models.wrappers.guided import Guided
from unmask.rules.rule import Rule

TOLERANCE = 2e-4  # of float32 logits


def is_model_folder(folder: Path) -> bool:
    """Whether a folder holds a checkpoint with golden outputs."""
    return (folder / "config.json").is_file() and any(folder.glob("golden_*"))


@torch.no_grad()
def run_model(folder: Path, report: Report) -> None:
    """Run all golden cases of one checkpoint folder, in float32."""
    name = folder.name
    meta = read_golden(folder / "golden_meta.json") or {}
    try:
        loaded = load(folder, device="cpu", dtype="float32")
    except UnmaskError as error:
        report.add(f"{name}/load", "failed", str(error))
        return
    report.check(f"{name}/load", _spec_differences(loaded, meta))
    if (folder / "golden_forward.npz").is_file():
        _forward(loaded, meta, report, name)
    for case in read_golden(folder / "golden_generate.json") or []:
        _generation(loaded, case, report, f"{name}/generate/{case['case']}")
    texts = read_golden(folder / "golden_text.json") or {}
    for number, case in enumerate(texts.get("tokenize", [])):
        report.check(f"{name}/tokenize/{number}", _token_differences(loaded, case))
    for number, case in enumerate(texts.get("chat", [])):
        report.check(f"{name}/chat/{number}", _chat_differences(loaded, case))


def _spec_differences(loaded: Loaded, meta: dict[str, Any]) -> Iterator[str]:
    spec = loaded.model.spec
    if "mask_id" in meta and spec.mask_id != meta["mask_id"]:
        yield f"mask id: expected {meta['mask_id']}, got {spec.mask_id}"
    if "eos_id" in meta and spec.eos_id != meta["eos_id"]:
        yield f"EOS id: expected {meta['eos_id']}, got {spec.eos_id}"


def _forward(loaded: Loaded, meta: dict[str, Any], report: Report, name: str) -> None:
    """Compare the logits of every case, and the hidden states of the first case."""
    notes = {case["case"]: case for case in meta.get("forward_cases", [])}
    with np.load(loaded.folder / "golden_forward.npz") as stored:
        arrays = {key: torch.from_numpy(stored[key]) for key in stored.files}
    cases = sorted({key.split("_")[0] for key in arrays})
    hidden_file = loaded.folder / "golden_hidden.npz"
    for case in cases:
        ids, wanted = arrays[f"{case}_input_ids"], arrays[f"{case}_logits"]
        real = arrays.get(f"{case}_attention_mask", torch.ones_like(ids)).bool()
        positions = arrays.get(f"{case}_position_ids")
        mask = _mask(real, notes.get(case, {}).get("block_length"))
        states: list[Tensor] = []
        hooks = _watch(loaded.model.module, states)
        hidden = loaded.model.module(ids, positions, mask)
        for hook in hooks:
            hook.remove()
        compared = real if positions is not None else torch.ones_like(real)
        logits = loaded.model.module.logits(hidden)
        report.check(f"{name}/forward/{case}", _far(logits[compared], wanted[compared], "logits"))
        if case == "c0" and hidden_file.is_file():
            report.check(f"{name}/hidden", _hidden(hidden_file, [*states, hidden]))


def _mask(real: Tensor, block: int | None) -> Tensor | None:
    mask = None if bool(real.all()) else real[:, None, None]
    if block is not None:
        place = torch.arange(real.shape[-1])[None]
        blocks = block_causal(place, place, block)[:, None]
        mask = blocks if mask is None else mask & blocks
    return mask


def _watch(module: nn.Module, states: list[Tensor]) -> list[Any]:
    """Collect the input of every layer."""
    layers = module.get_submodule("layers")
    assert isinstance(layers, nn.ModuleList)
    return [
        layer.register_forward_pre_hook(lambda _, inputs: states.append(inputs[0]))
        for layer in layers
    ]


def _hidden(file: Path, states: list[Tensor]) -> Iterator[str]:
    with np.load(file) as stored:
        wanted = [torch.from_numpy(stored[key]) for key in sorted(stored.files)]
    if len(wanted) != len(states):
        yield f"expected {len(wanted)} hidden states, got {len(states)}"
        return
    for number, (state, golden) in enumerate(zip(states, wanted, strict=True)):
        yield from _far(state, golden, f"h{number}")


def _far(value: Tensor, wanted: Tensor, what: str) -> Iterator[str]:
    if value.shape != wanted.shape:
        yield f"{what}: expected shape {tuple(wanted.shape)}, got {tuple(value.shape)}"
        return
    distance = float((value - wanted).abs().max())
    if not distance <= TOLERANCE:
        yield f"{what} differ by {distance:.1e}, more than {TOLERANCE:.0e}"


@dataclass(frozen=True)
class GenerationPlan:
    """The rule, settings and cache of a golden generation."""

    rule: str
    length: int
    block: int | None = None
    eos: Eos = "keep"
    cache: str | None = None
    guidance: float = 0.0
    sampling: Sampling = field(default_factory=Sampling)
    seed: int = 0
    attention_block: int | None = None  # for block-causal models
    early: bool = False  # upstream may end inside the last block


def _generation(loaded: Loaded, case: dict[str, Any], report: Report, name: str) -> None:
    try:
        plan = _plan(loaded, case)
        differences = _generation_differences(loaded.model, case, plan)
        report.check(name, differences, partial(_tie, loaded, case, plan))
    except Skipped as reason:
        report.add(name, reason.status, str(reason))
    except UnmaskError as error:
        report.add(name, "failed", f"{type(error).__name__}: {error}")


def _tie(loaded: Loaded, case: dict[str, Any], plan: GenerationPlan) -> str:
    """The proof that the case differs by exact ties alone, "" if it does not."""
    written = useful_forwards(case, loaded.model.spec)
    if written is None:
        return ""

    def compare(dtype: torch.dtype, steps: Steps) -> Iterator[str]:
        exact = dtype != loaded.model.dtype
        model = load(loaded.folder, device="cpu", dtype=dtype).model if exact else loaded.model
        return _generation_differences(model, case, plan, steps)

    return tied(written, compare, loaded.model.dtype)


def _plan(loaded: Loaded, case: dict[str, Any]) -> GenerationPlan:
    params, source = case["params"], case["source"]
    if case.get("rng") and (params.get("alg") != "origin" or params.get("temperature")):
        raise KnownDifference("depends on the order in which upstream draws random numbers")
    if loaded.family.name == "sdar":
        return _sdar_plan(params)
    if loaded.family.name == "llada2":
        return _llada2_plan(params)
    if loaded.family.name == "dream":
        return _dream_plan(params, case)
    if "Fast-dLLM" in source or "LLaDA" in source:
        return _llada_plan(params, case["case"])
    raise NotOffered(f"the sampler of {source} is not known")


def _llada_plan(p: dict[str, Any], name: str) -> GenerationPlan:
    rule = f"confidence | static({p['steps']})"
    if p.get("threshold") is not None:
        rule = f"confidence | threshold({p['threshold']}, test=ge)"
    cache = next((kind for kind in ("prefix", "dual") if f"{kind}_cache" in name), None)
    block = p["block_length"] if p["block_length"] < p["gen_length"] else None
    guidance = p.get("cfg_scale") or 0.0
    return GenerationPlan(rule, p["gen_length"], block, cache=cache, guidance=guidance)


def _dream_plan(p: dict[str, Any], case: dict[str, Any]) -> GenerationPlan:
    sampling = Sampling(0.0, p.get("top_p") or 1.0, p.get("top_k") or 0, tempered=True)
    length, steps = p["max_new_tokens"], p["steps"]
    if "block_length" in p:
        cache, block = "dual" if p.get("dual_cache") else "prefix", p["block_length"] or length
        return GenerationPlan(
            _cached_dream_rule(p, block), length, block, cache=cache, sampling=sampling
        )
    if p["alg"] == "confidence_threshold":
        rule = f"confidence | threshold({p['threshold']}, test=ge) | cap(1, steps={steps})"
    else:
        rule = dream_rule(p)
    return GenerationPlan(rule, length, sampling=sampling, seed=case.get("torch_manual_seed", 0))


def _cached_dream_rule(p: dict[str, Any], block: int) -> str:
    """The rule of Fast-dLLM's caches on Dream: the first token of a block goes first, alone."""
    if p["alg"] == "confidence_threshold":
        return f"confidence | threshold({p['threshold']}, test=ge) | lead"
    if p["steps"] * block < 2 * p["max_new_tokens"]:
        raise KnownDifference("with one step per block upstream leaves all but its first mask")
    # Upstream ranks by the entropy whatever `alg` says.
    return f"entropy | timesteps({p['steps']}, eps={p['eps']}) | lead"


def _llada2_plan(p: dict[str, Any]) -> GenerationPlan:
    steps = min(p["steps"], p["gen_length"] // p.get("minimal_topk", 1))
    least = _share(p["block_length"], steps)
    rule = f"confidence | threshold({p['threshold']}) | floor({least})"
    # Upstream stops after the block with EOS; with early stop, once all before EOS is filled.
    plan = GenerationPlan(rule, p["gen_length"], eos="block", cache="block")
    early = bool(p.get("eos_early_stop"))
    return replace(plan, attention_block=p["block_length"], early=early)


def _share(block: int, steps: int) -> int:
    """How many of a block's positions each of these steps commits."""
    if steps < block and block % steps:
        raise NotOffered(f"an uneven share of a block, {block} in {steps} steps, is not offered")
    return max(1, block // steps)


def _sdar_plan(p: dict[str, Any]) -> GenerationPlan:
    if p["top_k"] != 1:
        raise KnownDifference("depends on the order in which upstream draws random numbers")
    count = _share(p["block_length"], p["denoising_steps"])
    rule = {
        "sequential": f"ar(2, k={count})",  # no probability reaches 2: the leftmost k are taken
        "low_confidence_static": f"top({count})",
        "low_confidence_dynamic": f"threshold({p.get('confidence_threshold', 0.85)}) "
        f"| floor({count})",
    }[p["remasking_strategy"]]
    plan = GenerationPlan(f"confidence | {rule}", p["gen_length"], cache="block")
    greedy = Sampling(0.0, top_k=1, tempered=True)  # every token then has the probability 1
    return replace(plan, sampling=greedy, attention_block=p["block_length"])


def _together(model: Denoiser, requests: Sequence[Request]) -> Iterator[Step]:
    return decode_steps(model, requests, len(requests))


def _generation_differences(
    plain: Pretrained, case: dict[str, Any], plan: GenerationPlan, steps: Steps = _together
) -> Iterator[str]:
    """Differences in tokens and forwards; if the cache is exact, also without the cache."""
    if plan.attention_block is not None:
        plain = plain.with_block(plan.attention_block)
    model: Denoiser = plain if plan.cache is None else Cached(plain, plan.cache)
    if plan.guidance:
        model = Guided(model, plan.guidance)
    yield from _compare(model, case, plan, steps)
    if plan.cache == "block":
        yield from (f"without cache: {what}" for what in _compare(plain, case, plan, steps))


def _compare(
    model: Denoiser, case: dict[str, Any], plan: GenerationPlan, steps: Steps = _together
) -> Iterator[str]:
    # Upstream leaves the mask token in the softmax, so the comparison does too.
    settings = Settings(Rule.parse(plan.rule), plan.block, plan.eos, plan.sampling, allow_mask=True)
    prompts = real_prompts(case)
    requests = [
        prompt_request(model.spec, prompt, plan.length, settings, plan.seed) for prompt in prompts
    ]
    results = {}
    for step in steps(model, requests):
        results.update({result.key: result for result in step.finished})
    written = useful_forwards(case, model.spec)
    for row, prompt in enumerate(prompts):
        answer, wanted = results[row].canvas.tolist()[len(prompt) :], wanted_answer(case, row)
        if answer[: len(wanted)] != wanted:
            pairs = enumerate(zip(answer, wanted, strict=False))
            place = next(i for i, (token, golden) in pairs if token != golden)
            yield f"row {row}, answer position {place}: expected {wanted}, got {answer}"
        counts = [results[row].nfe, *([results[row].nfe_eos] if plan.early else [])]
        if written is not None and len(written[row]) not in counts:
            yield f"row {row}: expected {len(written[row])} forwards, got {counts[-1]}"


def _token_differences(loaded: Loaded, case: dict[str, Any]) -> Iterator[str]:
    tokenizer = loaded.tokenizer
    values = {
        "ids": tokenizer.encode(case["text"]),
        "decoded": tokenizer.decode(case["ids"]),
        "decoded_skip_special": tokenizer.decode(case["ids"], skip_special=True),
    }
    for key, value in values.items():
        if key in case and case[key] != value:
            yield f"{key}: expected {case[key]!r}, got {value!r}"


def _chat_differences(loaded: Loaded, case: dict[str, Any]) -> Iterator[str]:
    rendered = loaded.tokenizer.render(case["messages"])
    if rendered != case["rendered"]:
        yield f"rendered: expected {case['rendered']!r}, got {rendered!r}"
    ids = loaded.tokenizer.encode_chat(case["messages"])
    if ids != case["ids"]:
        yield f"ids: expected {case['ids']}, got {ids}"
    if "output_ids" in case and case.get("robust", True):
        golden = {"prompt_ids": [case["ids"]], "params": case["params"], "source": "", "case": ""}
        golden |= {"output_ids": [case["ids"] + case["output_ids"]], "mask_id": -1}
        family = loaded.family.name
        plan = _dream_plan(case["params"], golden) if family == "dream" else None
        yield from _compare(loaded.model, golden, plan or _llada_plan(case["params"], ""))
        text = loaded.tokenizer.decode(case["output_ids"], skip_special=True)
        if text != case.get("output_text_skip_special", text):
            yield f"output text: expected {case['output_text_skip_special']!r}, got {text!r}"


def folders(root: Path) -> Sequence[Path]:
    """The model folders of a golden folder: the folder itself, or its subfolders."""
    inside = sorted(folder for folder in root.iterdir() if is_model_folder(folder))
    return [root] if is_model_folder(root) else inside
