"""Golden checkpoints: logits, hidden states, generations, tokens and chats of the originals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from unmask.conformance.forwards import real_prompts, useful_forwards, wanted_answer
from unmask.conformance.generation_plans import GenerationPlan, plan_of_generation
from unmask.conformance.plan import reported
from unmask.conformance.report import Report, read_golden
from unmask.conformance.ties import Steps, tied
from unmask.decoding.loop import decode_steps
from unmask.decoding.request import Request, Settings, infill_request, prompt_request
from unmask.decoding.results import Step
from unmask.errors import UnmaskError
from unmask.models.caches import Cached
from unmask.models.denoiser import Denoiser
from unmask.models.load import Loaded, load
from unmask.models.pretrained import Pretrained
from unmask.models.transformer import block_causal
from unmask.models.wrappers.guided import Guided
from unmask.rules.rule import Rule

TOLERANCE = 2e-4  # of float32 logits
_SAMPLERS = {  # of a chat's output
    None: "LLaDA",
    "mdlm": "dllm/core/samplers/MDLMSampler",
    "bd3lm": "dllm/core/samplers/BD3LMSampler",
    "opdlm": "bd3lm_sample",
}


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
        with reported(report, f"{name}/tokenize/{number}"):
            report.check(f"{name}/tokenize/{number}", _token_differences(loaded, case))
    for kind in ("chat", "chat_kwargs"):
        for number, case in enumerate(texts.get(kind, [])):
            with reported(report, f"{name}/{kind}/{number}"):
                report.check(f"{name}/{kind}/{number}", _chat_differences(loaded, case))


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


def _generation(loaded: Loaded, case: dict[str, Any], report: Report, name: str) -> None:
    with reported(report, name):
        plan = plan_of_generation(loaded, case)
        differences = _generation_differences(loaded.model, case, plan)
        report.check(name, differences, partial(_tie, loaded, case, plan), plan.unread)


def _tie(loaded: Loaded, case: dict[str, Any], plan: GenerationPlan) -> str:
    """The proof that the case differs by exact ties alone, "" if it does not."""
    written = useful_forwards(case, _attending(loaded.model, plan).spec)
    if written is None:
        return ""

    def compare(dtype: torch.dtype, steps: Steps) -> Iterator[str]:
        exact = dtype != loaded.model.dtype
        model = load(loaded.folder, device="cpu", dtype=dtype).model if exact else loaded.model
        return _generation_differences(model, case, plan, steps)

    return tied(written, compare, loaded.model.dtype)


def _attending(model: Pretrained, plan: GenerationPlan) -> Pretrained:
    """The model with the attention of a plan, which need not be that of the folder's name."""
    if plan.attention_block is not None:
        return model.with_block(plan.attention_block, plan.from_prompt_end)
    return model.without_blocks() if plan.full else model


def _together(model: Denoiser, requests: Sequence[Request]) -> Iterator[Step]:
    return decode_steps(model, requests, len(requests))


def _generation_differences(
    plain: Pretrained, case: dict[str, Any], plan: GenerationPlan, steps: Steps = _together
) -> Iterator[str]:
    """Differences in tokens and forwards; if the cache is exact, also without the cache."""
    plain = _attending(plain, plan)
    if plan.stop_id is not None:
        plain = replace(plain, spec=replace(plain.spec, stop_ids=(plan.stop_id,)))
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
        infill_request(model.spec, prompt, settings, plan.seed)
        if plan.infill
        else prompt_request(model.spec, prompt, plan.length, settings, plan.seed)
        for prompt in prompts
    ]
    results = {}
    for step in steps(model, requests):
        results.update({result.key: result for result in step.finished})
    written = useful_forwards(case, model.spec)
    for row, prompt in enumerate(prompts):
        first = 0 if plan.infill else len(prompt)
        answer = results[row].canvas.tolist()[first:]
        whole = wanted_answer(case, row)
        wanted = _own_part(whole, plan)
        if answer[: len(wanted)] != wanted:
            pairs = enumerate(zip(answer, wanted, strict=False))
            place = next((i for i, (token, golden) in pairs if token != golden), len(answer))
            yield f"row {row}, answer position {place}: expected {wanted}, got {answer}"
        counts = [results[row].nfe, *([results[row].nfe_eos] if plan.early else [])]
        if written is not None:
            later = range(first + len(wanted), first + len(whole))  # written for other rows
            own = [cells for cells in written[row] if not cells or min(cells) not in later]
            forwards = sum(bool(cells) or not plan.idle for cells in own)
            if forwards not in counts:
                yield f"row {row}: expected {forwards} forwards, got {counts[-1]}"


def _own_part(answer: list[int], plan: GenerationPlan) -> list[int]:
    """The answer up to the block with its end; a batch of upstream's goes on for other rows."""
    block = plan.attention_block
    if plan.eos != "block" or block is None or plan.stop_id not in answer:
        return answer
    return answer[: (answer.index(plan.stop_id) // block + 1) * block]


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
    arguments = case.get("template_kwargs")
    rendered = loaded.tokenizer.render(case["messages"], arguments)
    if rendered != case["rendered"]:
        yield f"rendered: expected {case['rendered']!r}, got {rendered!r}"
    ids = loaded.tokenizer.encode_chat(case["messages"], arguments)
    if ids != case["ids"]:
        yield f"ids: expected {case['ids']}, got {ids}"
    if "output_ids" in case and case.get("robust", True):
        sampler, eos = case.get("sampler"), loaded.model.spec.eos_id
        source = _SAMPLERS.get(sampler, sampler)
        golden = {"prompt_ids": [case["ids"]], "params": case["params"], "source": source}
        golden |= {"output_ids": [case["ids"] + case["output_ids"]], "mask_id": -1, "case": ""}
        golden |= {"eos_id": eos, "stop_token": eos}
        plan = plan_of_generation(loaded, golden)
        yield from _generation_differences(loaded.model, golden, plan)
        text = loaded.tokenizer.decode(case["output_ids"], skip_special=True)
        if text != case.get("output_text_skip_special", text):
            yield f"output text: expected {case['output_text_skip_special']!r}, got {text!r}"


def folders(root: Path) -> Sequence[Path]:
    """The model folders of a golden folder: the folder itself, or its subfolders."""
    inside = sorted(folder for folder in root.iterdir() if is_model_folder(folder))
    return [root] if is_model_folder(root) else inside
