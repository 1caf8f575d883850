"""The rule, settings and cache of every golden generation of the original samplers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from unmask.conformance.cases import dream_rule
from unmask.conformance.forwards import real_prompts
from unmask.conformance.plan import CaseConfig, KnownDifference, NotOffered, block_of
from unmask.decoding.options import Eos
from unmask.decoding.sampling import Sampling
from unmask.errors import UnmaskError
from unmask.models.load import Loaded

_REMASKING = ("low_confidence", "low_confidence_static")  # two names of one order


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
    from_prompt_end: bool = False  # blocks of attention count from there
    full: bool = False  # attention to everything, though the folder's name says blocks
    early: bool = False  # upstream may end inside the last block
    stop_id: int | None = None  # the only token that ends an answer upstream
    infill: bool = False  # the prompt holds the masks
    unread: tuple[str, ...] = ()  # parameters that might matter
    idle: bool = False  # upstream has more steps than masks; its idle forwards do not count


def plan_of_generation(loaded: Loaded, case: dict[str, Any]) -> GenerationPlan:
    """The plan of a case; raises `Skipped` if it cannot be compared."""
    params = CaseConfig(case["params"])
    try:
        plan = _plan(loaded, case, params)
    except UnmaskError as error:
        raise NotOffered(f"its params make no rule: {error}") from None
    return replace(plan, unread=params.unread())


def _plan(loaded: Loaded, case: dict[str, Any], params: CaseConfig) -> GenerationPlan:
    source = case["source"]
    if case.get("rng") and (params.get("alg") != "origin" or params.get("temperature")):
        raise KnownDifference("depends on the order in which upstream draws random numbers")
    if params.get("remasking", "low_confidence") not in _REMASKING:
        raise NotOffered(f"remasking {params['remasking']!r} is not one of {', '.join(_REMASKING)}")
    if "dllm/core/samplers" in source or "bd3lm_sample" in source:
        return _dllm_plan(params, source, case)
    if "hub card of dllm-hub" in source:
        return _card_plan(params, case)
    if loaded.family.name == "open-dcoder":
        return _open_dcoder_plan(params, case)
    if loaded.family.name == "fast-dllm-v2":
        return _fast_dllm_v2_plan(params, case)
    if loaded.family.name == "sdar":
        return _sdar_plan(params)
    if loaded.family.name == "llada2":
        return _llada2_plan(params, case)
    if loaded.family.name == "dream":
        return _dream_plan(params, case)
    if "Fast-dLLM" in source or "LLaDA" in source:
        return _llada_plan(params, f"{source} {case['case']}")
    raise NotOffered(f"the sampler of {source} is not known")


def _llada_plan(p: CaseConfig, name: str) -> GenerationPlan:
    rule = f"confidence | static({p['steps']})"
    if p.get("threshold") is not None:
        rule = f"confidence | threshold({p['threshold']}, test=ge)"
    cache = next((kind for kind in ("prefix", "dual") if f"{kind}_cache" in name), None)
    block = block_of(p["block_length"], p["gen_length"])
    plan = GenerationPlan(rule, p["gen_length"], block, cache=cache)
    return replace(plan, guidance=p.get("cfg_scale") or 0.0, idle=p["steps"] > p["gen_length"])


def _dream_plan(p: CaseConfig, case: dict[str, Any]) -> GenerationPlan:
    sampling = Sampling(0.0, p.get("top_p") or 1.0, p.get("top_k") or 0, tempered=True)
    length, steps = p["max_new_tokens"], p["steps"]
    p.ignore("eps")  # but for Dream's own timetable
    if "block_length" in p:
        cache, block = "dual" if p.get("dual_cache") else "prefix", p["block_length"] or length
        return GenerationPlan(
            _cached_dream_rule(p, block), length, block, cache=cache, sampling=sampling
        )
    if p["alg"] == "confidence_threshold":
        rule = f"confidence | threshold({p['threshold']}, test=ge) | cap(1, steps={steps})"
    elif p["alg"] == "p2":  # Open-dCoder's
        rule = f"confidence | p2({steps}, rank=newest) | p2_back({steps}, rank=newest)"
    else:
        rule = dream_rule(p)
    return GenerationPlan(rule, length, sampling=sampling, seed=case.get("torch_manual_seed", 0))


def _cached_dream_rule(p: CaseConfig, block: int) -> str:
    """The rule of Fast-dLLM's caches on Dream: the first token of a block goes first, alone."""
    if p["alg"] == "confidence_threshold":
        return f"confidence | threshold({p['threshold']}, test=ge) | lead"
    if p["steps"] * block < 2 * p["max_new_tokens"]:
        raise KnownDifference("with one step per block upstream leaves all but its first mask")
    # Upstream ranks by the entropy whatever `alg` says.
    return f"entropy | timesteps({p['steps']}, eps={p['eps']}) | lead"


def _llada2_plan(p: CaseConfig, case: dict[str, Any]) -> GenerationPlan:
    steps = min(p["steps"], p["gen_length"] // p.get("minimal_topk", 1))
    least = _share(p["block_length"], steps)
    rule = f"confidence | threshold({p['threshold']}) | floor({least})"
    # Upstream stops after the block with EOS; with early stop, once all before EOS is filled.
    plan = GenerationPlan(rule, p["gen_length"], eos="block", cache="block")
    early = bool(p.get("eos_early_stop"))
    plan = replace(plan, attention_block=p["block_length"], early=early)
    return replace(plan, stop_id=case.get("eos_id"))


def _share(block: int, steps: int) -> int:
    """How many of a block's positions each of these steps commits."""
    if steps < block and block % steps:
        raise NotOffered(f"an uneven share of a block, {block} in {steps} steps, is not offered")
    return max(1, block // steps)


def _sdar_plan(p: CaseConfig) -> GenerationPlan:
    if p["top_k"] != 1:
        raise KnownDifference("depends on the order in which upstream draws random numbers")
    count = _share(p["block_length"], p["denoising_steps"])
    rules = {
        "sequential": f"ar(2, k={count})",  # no probability reaches 2: the leftmost k are taken
        "low_confidence_static": f"top({count})",
        "low_confidence_dynamic": f"threshold({p.get('confidence_threshold', 0.85)}) "
        f"| floor({count})",
    }
    rule = p.word("remasking_strategy", rules)
    plan = GenerationPlan(f"confidence | {rule}", p["gen_length"], cache="block")
    p.ignore("temperature", "top_p", "confidence_threshold")  # one token is left to draw from
    greedy = Sampling(0.0, top_k=1, tempered=True)  # every token then has the probability 1
    return replace(plan, sampling=greedy, attention_block=p["block_length"])


def _dllm_plan(p: CaseConfig, source: str, case: dict[str, Any]) -> GenerationPlan:
    """dllm's samplers: mdlm on one canvas, bd3lm and OPDLM in blocks from the prompt's end."""
    if "MDLMSampler.infill" in source:
        return _dllm_infill_plan(p, case)
    length, block = p["max_new_tokens"], p["block_size"]
    if "MDLMSampler" not in source and _has_padding(case, block):
        raise KnownDifference("upstream hides every <|endoftext|> as padding")
    blocks = -(-length // block)
    steps = (p.get("steps_per_block") or 0) * blocks or p["steps"]
    p.ignore("steps")  # steps_per_block comes first
    sizes = [min(block, length - first) for first in range(0, length, block)]
    plan = GenerationPlan(_dllm_rule(steps, sizes), length, guidance=p.get("cfg_scale") or 0.0)
    if "MDLMSampler" in source:
        return replace(plan, block=block_of(block, length), full=True)
    cache = None if plan.guidance else "block"
    plan = replace(plan, eos="block", cache=cache, stop_id=case["eos_id"])
    return replace(plan, attention_block=block, from_prompt_end=True)


def _has_padding(case: dict[str, Any], block: int) -> bool:
    """Whether upstream's padding token is in a prompt, or in an answer's block before its last."""
    pad, end = case.get("pad_id"), case["eos_id"]
    if any(pad in prompt for prompt in real_prompts(case)):
        return True
    for answer in case.get("generated_ids", ()):
        size = answer.index(end) + 1 if end in answer else len(answer)
        if pad in answer[: (size - 1) // block * block]:
            return True
    return False


def _dllm_infill_plan(p: CaseConfig, case: dict[str, Any]) -> GenerationPlan:
    if p["block_size"] is not None:
        raise NotOffered("blocks of an infill count from its first mask here, upstream's from 0")
    masks = case["prompt_ids"][0].count(case["mask_id"])
    return GenerationPlan(_dllm_rule(p["steps"], [masks]), 0, infill=True, full=True)


def _dllm_rule(steps: int, blocks: list[int]) -> str:
    """The rule of dllm for blocks with so many masks: LLaDA's timetable where both agree."""
    each = -(-steps // len(blocks))
    if not any(masks % each for masks in blocks):
        return f"confidence | static({each * len(blocks)})"
    return f"confidence | even({steps})"


def _card_plan(p: CaseConfig, case: dict[str, Any]) -> GenerationPlan:
    """The sampler that is printed on dllm-hub's cards, which is not that of their repository."""
    prompt, length, block = len(case["prompt_ids"][0]), p["max_new_tokens"], p["block_size"]
    if prompt % block:
        raise KnownDifference("the card's first block does not see the prompt's last tokens anew")
    if any(case["mask_id"] in answer for answer in case["generated_ids"]):
        raise KnownDifference("the card stops in the step that writes EOS, and leaves masks")
    plan = GenerationPlan(f"confidence | static({p['steps']})", length, cache="block")
    plan = replace(plan, eos="block", stop_id=case["eos_id"])
    return replace(plan, attention_block=block, from_prompt_end=True)


def _open_dcoder_plan(p: CaseConfig, case: dict[str, Any]) -> GenerationPlan:
    return replace(_dream_plan(p, case), infill=p["max_new_tokens"] == 0)


def _fast_dllm_v2_plan(p: CaseConfig, case: dict[str, Any]) -> GenerationPlan:
    """Blocks from position 0, inner windows, and the first token of a block from the one before."""
    if p.get("use_block_cache"):
        raise NotOffered("use_block_cache keeps old keys and values inside a block")
    if p.get("temperature"):
        raise KnownDifference("depends on the order in which upstream draws random numbers")
    p.ignore("top_p")  # the likeliest token stays
    block, inner = p["block_size"], p["small_block_size"]
    length = block * (p["max_new_tokens"] // block) - len(case["prompt_ids"][0]) % block + 1
    plan = GenerationPlan(f"confidence | threshold({p['threshold']})", length, cache="block")
    # `stop` would not fill what is behind EOS; upstream does, until nothing before it is masked.
    plan = replace(plan, block=inner if inner < block else None, eos="block", early=True)
    stop_id = case.get("stop_token", p.get("stop_token"))
    return replace(plan, attention_block=block, stop_id=stop_id)
