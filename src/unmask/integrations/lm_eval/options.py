"""What the harness says, as settings: `model_args`, and the `gen_kwargs` of a request."""

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
class Options:
    """The model arguments: those of `unmask run`, and what likelihoods take.

    Args:
        pretrained: a folder, a hub id, or `embedded`.
        rule: a rule or a recipe.
        length: tokens to write where a task says nothing.
        block, eos, steps, history: as in `unmask run`; None leaves them to recipe and model.
        dtype, mask_id, cache, guidance, device: the model, as in `unmask run`.
        seed: of every random choice, those of the estimator too.
        mc_num: canvases per likelihood.
        check_greedy: whether likelihoods also say if the rule would have written the target.
        max_length: of prompt and answer together; None is what the model was made for.
        batch_size: rows at once.
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
    def of(cls, given: Mapping[str, Any]) -> Options:
        """From what lm_eval parsed; unknown names and wrong kinds are refused."""
        known = [field.name for field in fields(cls)]
        for name in given:
            if name in _KNOWN:
                raise RequestError(
                    f"{name} belongs to a task's generation: give it in --gen_kwargs"
                )
            if name not in known:
                raise UnknownName("model argument", name, known)
        said = {name: value for name, value in given.items() if value is not None}
        return cls(**{name: _checked(name, value) for name, value in said.items()})

    def job(self) -> Job:
        """Checked, the checkpoint's folder read, nothing loaded yet."""
        named = {name: value for name, value in vars(self).items() if name != "pretrained"}
        greedy = {**vars(Sampling()), "chat": None, "system": None, "infill": False}
        return Job.of(Namespace(model=self.pretrained, **named, **greedy))


def _checked(name: str, value: Any) -> Any:
    """A value as its option wants it; lm_eval makes numbers of all that look like one."""
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
        hint = "; a batch is kept full, and none is tried out" if name == "batch_size" else ""
        raise RequestError(f"{name} must be a whole number >= {least}, got {value!r}{hint}")
    return int(text)


@dataclass(frozen=True)
class Wanted:
    """What a request asks for."""

    decoding: Decoding
    until: tuple[str, ...]

    @classmethod
    def of(cls, job: Job, given: Mapping[str, Any]) -> Wanted:
        """The settings of the model arguments, with what the task says about its generation."""
        for name, value in given.items():
            if name == "num_beams" and value == 1:
                continue
            if name not in _KNOWN:
                raise RequestError(
                    f"the task asks for {name}={value!r} in its generation, which unmask does not "
                    f"do; known: {', '.join(_KNOWN)}"
                )
        lengths = [given[name] for name in _LENGTHS if given.get(name) is not None]
        asked = replace(job.asked, sampling=_sampling(given))
        if lengths:
            asked = replace(asked, length=_whole("max_gen_toks", lengths[0]))
        until = given.get("until") or ()
        stops = (until,) if isinstance(until, str) else tuple(until)
        if not all(isinstance(stop, str) and stop for stop in stops):
            raise RequestError(f"until must be texts with something in them, got {until!r}")
        return cls(asked.decoding(job.shape), stops)


def _sampling(given: Mapping[str, Any]) -> Sampling:
    """Greedy unless a request samples; `do_sample=False` overrules a temperature, as it does for
    the other models of the harness."""
    temperature = given.get("temperature") or 0.0
    if not given.get("do_sample", bool(temperature)):
        return Sampling()
    try:
        return Sampling(**{name: given[name] for name in _SAMPLING if given.get(name) is not None})
    except (TypeError, UnmaskError) as error:
        raise RequestError(f"generation: {error}") from None
