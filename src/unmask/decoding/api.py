"""Token ids in, token ids out: decode, infill and decode_many over any denoiser."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from torch import Tensor

from unmask.decoding.loop import decode_steps
from unmask.decoding.options import DecodingOptions, Eos
from unmask.decoding.request import Request, infill_request, longest_first, prompt_request
from unmask.decoding.resolve import Resolved, resolve
from unmask.decoding.results import Result
from unmask.decoding.sampling import Sampling
from unmask.errors import RequestError, shown
from unmask.languages.automaton import TokenAutomaton
from unmask.models.denoiser import Denoiser, check_denoiser
from unmask.rules.recipes import DEFAULT_RULE
from unmask.rules.rule import Rule

Ids = Sequence[int] | Tensor


def decode(
    model: Denoiser,
    prompt: Ids,
    rule: Rule | str = DEFAULT_RULE,
    *,
    length: int | Literal["auto"] = 256,
    block: int | None = None,
    eos: Eos | None = None,
    sampling: Sampling | None = None,
    steps: int | None = None,
    history: int | None = None,
    seed: int = 0,
    longest: int | None = None,
    language: TokenAutomaton | None = None,
) -> Result:
    """Continue one prompt (token ids) by `length` tokens.

    Args:
        model: the denoiser; see `unmask.models`.
        prompt: token ids without masks; `infill` takes a canvas with masks anywhere.
        rule: a Rule, its notation, or the name of a recipe (default: the rule that is recommended
            for the model, with its block and EOS policy).
        length: number of tokens to write; "auto" lets the canvas grow until its end is sure.
        block: positions per block, decoded left to right. None takes the model's own block, else
            the recipe's, else the full window.
        eos: what the end token does: keep, suppress, last, stop, block or fill; see `Settings`
            (default: keep, or what belongs to the recommended rule).
        sampling: temperature, top-p and top-k; greedy by default.
        steps: finish within this many forward passes.
        history: keep this many tokens of the last forward's distributions instead of all.
        seed: seed of every random choice.
        longest: the most tokens to write if the length is "auto".
        language: what the answer must be in; see `unmask.languages`.
    """
    options = DecodingOptions(rule, length, block, eos, steps, history, seed=seed, longest=longest)
    resolved = _resolve(model, options, sampling, language)
    request = prompt_request(model.spec, prompt, resolved.length, resolved.settings, seed)
    return _run(model, [request], 1)[0]


def infill(
    model: Denoiser,
    canvas: Ids,
    rule: Rule | str = DEFAULT_RULE,
    *,
    block: int | None = None,
    eos: Eos | None = None,
    sampling: Sampling | None = None,
    steps: int | None = None,
    history: int | None = None,
    seed: int = 0,
    language: TokenAutomaton | None = None,
) -> Result:
    """Fill the masks of a canvas, wherever they stand; the options are those of `decode`."""
    options = DecodingOptions(rule, None, block, eos, steps, history, seed=seed)
    resolved = _resolve(model, options, sampling, language, infill=True)
    return _run(model, [infill_request(model.spec, canvas, resolved.settings, seed)], 1)[0]


def decode_many(
    model: Denoiser,
    prompts: Sequence[Ids],
    rule: Rule | str = DEFAULT_RULE,
    *,
    length: int | Literal["auto"] = 256,
    block: int | None = None,
    eos: Eos | None = None,
    sampling: Sampling | None = None,
    steps: int | None = None,
    history: int | None = None,
    seed: int = 0,
    longest: int | None = None,
    language: TokenAutomaton | None = None,
    batch_size: int = 8,
) -> list[Result]:
    """Continue many prompts of any lengths, up to `batch_size` at once; results in their order.

    Every row gets the tokens and the NFE that it would get alone. A finished row leaves the batch
    and the next prompt takes its place. The longest prompts go first, so that rows of similar
    length share a batch and little is padded. Prompt i uses the seed `seed + i`.
    """
    options = DecodingOptions(rule, length, block, eos, steps, history, seed=seed, longest=longest)
    resolved = _resolve(model, options, sampling, language)
    requests = [
        prompt_request(model.spec, prompt, resolved.length, resolved.settings, resolved.seed + i)
        for i, prompt in enumerate(prompts)
    ]
    return _run(model, requests, batch_size)


def _resolve(
    model: Denoiser,
    options: DecodingOptions,
    sampling: Sampling | None,
    language: TokenAutomaton | None,
    infill: bool = False,
) -> Resolved:
    check_denoiser(model)
    if sampling is not None:
        if not isinstance(sampling, Sampling):
            given = shown(sampling)
            raise RequestError(f"sampling must be a Sampling(temperature, ...), got {given}")
        options = replace(options, **vars(sampling))
    return resolve(options, model.spec, infill=infill, loaded=True, language=language)


def _run(model: Denoiser, requests: list[Request], batch_size: int) -> list[Result]:
    order = longest_first([len(request.canvas) for request in requests])
    finished = {
        order[result.key]: result
        for step in decode_steps(model, [requests[number] for number in order], batch_size)
        for result in step.finished
    }
    return [replace(finished[number], key=number) for number in range(len(requests))]
