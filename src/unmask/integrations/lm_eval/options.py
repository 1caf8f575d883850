"""Reads lm_eval's `model_args` and the `gen_kwargs` of its requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from unmask import embedded
from unmask.decoding.options import OPTIONS, SAMPLING, DecodingOptions, Option
from unmask.decoding.resolve import Resolved
from unmask.errors import RequestError, UnknownName, UnmaskError
from unmask.text.session import Session

_LENGTHS = ("max_gen_toks", "max_new_tokens", "max_tokens", "max_completion_tokens")
_KNOWN = ("until", *_LENGTHS, "do_sample", *SAMPLING)
_DECODING = [name for name in OPTIONS if name not in SAMPLING]
_COUNT = Option("whole", "", "", least=1)
_OWN = {
    "mc_num": _COUNT,
    "max_length": _COUNT,
    "batch_size": _COUNT,
    "check_greedy": Option("switch", "", ""),
}


@dataclass(frozen=True)
class ModelArguments:
    """The model arguments: decoding options by their names, and those of likelihoods."""

    pretrained: str = embedded.NAME  # a folder, a hub id, or `embedded`
    device: str | None = None  # as in `unmask run`
    mc_num: int = 128  # canvases per likelihood
    check_greedy: bool = True  # decode the target of a likelihood to see if the rule writes it
    max_length: int | None = None  # most tokens of prompt and answer; None: the model's context
    batch_size: int = 8  # rows decoded at once
    decoding: DecodingOptions = field(default_factory=DecodingOptions)  # without the sampling

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> ModelArguments:
        """Check the arguments that lm_eval parsed; unknown names and wrong types raise."""
        own = [each.name for each in fields(cls) if each.name != "decoding"]
        values: dict[str, Any] = {}
        options: dict[str, Any] = {}
        for name, value in arguments.items():
            if name in _KNOWN:
                raise RequestError(
                    f"{name} is an argument of a task's generation; give it in --gen_kwargs"
                )
            if value is None:
                continue
            if name in _DECODING:  # lm_eval turns everything that looks like a number into one
                options[name] = OPTIONS[name].parse(name, str(value))
            elif name in own:
                values[name] = _OWN[name].parse(name, str(value)) if name in _OWN else str(value)
            else:
                raise UnknownName("model argument", name, [*own, *_DECODING])
        return cls(**values, decoding=DecodingOptions.read(options))


def read_generation(
    session: Session, arguments: Mapping[str, Any]
) -> tuple[Resolved, tuple[str, ...]]:
    """How to decode one request of a task, and the strings that end its text."""
    for name, value in arguments.items():
        if name not in _KNOWN and (name, value) != ("num_beams", 1):
            raise RequestError(
                f"the task's generation has {name}={value!r}, which unmask does not support; "
                f"known: {', '.join(_KNOWN)}"
            )
    changes = _sampling(arguments)
    lengths = [name for name in _LENGTHS if arguments.get(name) is not None]
    if lengths:
        grows = session.options.length == "auto"  # then the task's length is a limit
        count = _COUNT.parse("max_gen_toks", str(arguments[lengths[0]]))
        changes["longest" if grows else "length"] = count
    until = arguments.get("until") or ()
    stops = (until,) if isinstance(until, str) else tuple(until)
    if not all(isinstance(stop, str) and stop for stop in stops):
        raise RequestError(f"until must be texts that are not empty, got {until!r}")
    try:
        return session.resolve(session.changed(changes)), stops
    except UnmaskError as error:
        raise RequestError(f"generation: {error}") from None


def _sampling(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Greedy unless a request samples; `do_sample=False` turns a temperature off, as in lm_eval."""
    temperature = arguments.get("temperature") or 0.0
    if not arguments.get("do_sample", bool(temperature)):
        return {}
    return {name: arguments.get(name) for name in SAMPLING}
