"""Reads lm_eval's `model_args` and the `gen_kwargs` of its requests."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from unmask import embedded
from unmask.cli.run import CACHES
from unmask.decoding.asked import Decoding
from unmask.decoding.sampling import Sampling
from unmask.errors import RequestError, UnknownName, UnmaskError
from unmask.text.job import Job

_SAMPLING = ("temperature", "top_p", "top_k", "tempered")
_LENGTHS = ("max_gen_toks", "max_new_tokens", "max_tokens", "max_completion_tokens")
_WHOLE = ("length", "steps", "history", "mask_id", "seed", "mc_num", "max_length", "batch_size")
_KNOWN = ("until", *_LENGTHS, "do_sample", *_SAMPLING)


@dataclass(frozen=True)
class ModelArguments:
    """The model arguments: options of `unmask run`, and those of likelihoods.

    Args:
        pretrained: a folder, a hub id, or `embedded`.
        rule: a rule or a recipe.
        length: tokens to write if the task names no number.
        block, eos, steps, history: as in `unmask run`; None takes the recipe's or the model's.
        dtype, mask_id, cache, guidance, device: as in `unmask run`.
        seed: seed of all random choices, also of the likelihood estimator.
        mc_num: canvases per likelihood.
        check_greedy: whether to decode the target of a likelihood to see if the rule writes it.
        max_length: most tokens of prompt and answer together; None is the model's context.
        batch_size: rows decoded at once.
    """

    pretrained: str = embedded.NAME
    rule: str = "swd"
    length: int | None = None
    block: int | str | None = None
    eos: str | None = None
    steps: int | None = None
    history: int | None = None
    dtype: str | None = None
    mask_id: int | None = None
    cache: str = "none"
    guidance: float | None = None
    device: str | None = None
    seed: int = 0
    mc_num: int = 128
    check_greedy: bool = True
    max_length: int | None = None
    batch_size: int = 8

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> ModelArguments:
        """Check the arguments that lm_eval parsed; unknown names and wrong types raise."""
        known = [field.name for field in fields(cls)]
        for name in arguments:
            if name in _KNOWN:
                raise RequestError(
                    f"{name} is an argument of a task's generation; give it in --gen_kwargs"
                )
            if name not in known:
                raise UnknownName("model argument", name, known)
        values = {name: value for name, value in arguments.items() if value is not None}
        return cls(**{name: _checked(name, value) for name, value in values.items()})

    def job(self) -> Job:
        """The job, with the checkpoint's folder read and no weights loaded."""
        named = {name: value for name, value in vars(self).items() if name != "pretrained"}
        greedy = {**vars(Sampling()), "chat": None, "system": None, "infill": False}
        return Job.of(Namespace(model=self.pretrained, **named, **greedy))


def _checked(name: str, value: Any) -> Any:
    """A value of the right type; lm_eval turns everything that looks like a number into one."""
    if name in _WHOLE:
        return _whole(name, value)
    if name == "check_greedy":
        if not isinstance(value, bool):
            raise RequestError(f"check_greedy must be true or false, got {value!r}")
        return value
    if name == "guidance":
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise RequestError(f"guidance must be a number >= 0, got {value!r}")
        return float(value)
    if name == "cache" and value not in CACHES:
        raise UnknownName("cache", str(value), CACHES)
    return str(value)


def _whole(name: str, value: Any) -> int:
    least = 0 if name in ("seed", "mask_id") else 1
    text = str(value)
    if not text.isdecimal() or int(text) < least:
        hint = "; there is no automatic batch size" if name == "batch_size" else ""
        raise RequestError(f"{name} must be a whole number >= {least}, got {value!r}{hint}")
    return int(text)


@dataclass(frozen=True)
class GenerationArguments:
    """How to decode one request, and the strings that end its text."""

    decoding: Decoding
    until: tuple[str, ...]

    @classmethod
    def of(cls, job: Job, arguments: Mapping[str, Any]) -> GenerationArguments:
        """The settings of the model arguments, changed by those of the task's generation."""
        for name, value in arguments.items():
            if name == "num_beams" and value == 1:
                continue
            if name not in _KNOWN:
                raise RequestError(
                    f"the task's generation has {name}={value!r}, which unmask does not support; "
                    f"known: {', '.join(_KNOWN)}"
                )
        lengths = [arguments[name] for name in _LENGTHS if arguments.get(name) is not None]
        asked = replace(job.asked, sampling=_sampling(arguments))
        if lengths:
            asked = replace(asked, length=_whole("max_gen_toks", lengths[0]))
        until = arguments.get("until") or ()
        stops = (until,) if isinstance(until, str) else tuple(until)
        if not all(isinstance(stop, str) and stop for stop in stops):
            raise RequestError(f"until must be texts that are not empty, got {until!r}")
        return cls(asked.decoding(job.shape), stops)


def _sampling(arguments: Mapping[str, Any]) -> Sampling:
    """Greedy unless a request samples; `do_sample=False` turns a temperature off, as in lm_eval."""
    temperature = arguments.get("temperature") or 0.0
    if not arguments.get("do_sample", bool(temperature)):
        return Sampling()
    given = {name: arguments.get(name) for name in _SAMPLING}
    try:
        return Sampling(**{name: value for name, value in given.items() if value is not None})
    except (TypeError, UnmaskError) as error:
        raise RequestError(f"generation: {error}") from None
