"""Arguments of a chat template, such as `enable_thinking`: plain JSON values of a bounded size."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from math import isfinite
from typing import Any

from unmask.errors import RequestError

MOST_ARGUMENTS = 64
MOST_VALUES = 10_000  # in all arguments together
MOST_CHARACTERS = 1 << 20
DEEPEST = 16
ALLOWED = "a JSON object, or key=value,key=value"
SWITCH_WORDS = {
    **dict.fromkeys(("true", "yes", "on"), True),
    **dict.fromkeys(("false", "no", "off"), False),
}
OURS = ("messages", "add_generation_prompt")  # what the renderer itself sets


def check_template_args(name: str, given: Any) -> dict[str, Any]:
    """A copy of the arguments; raises unless they are names with JSON values, not too many."""
    if not isinstance(given, Mapping):
        raise RequestError(f"{name} must be {ALLOWED}, got {given!r:.100}")
    if len(given) > MOST_ARGUMENTS:
        raise RequestError(f"{name} must hold at most {MOST_ARGUMENTS} names, got {len(given)}")
    for key in given:
        if not isinstance(key, str) or not key.isidentifier():
            raise RequestError(f"{name}: {key!r:.100} is not a name that a template can use")
        if key in OURS:
            raise RequestError(f"{name}: {key!r} is set by the chat itself; leave it out")
    left = [MOST_VALUES, MOST_CHARACTERS]
    return {key: _copied(f"{name}: {key}", value, left, DEEPEST) for key, value in given.items()}


def _copied(name: str, value: Any, left: list[int], depth: int) -> Any:
    """A copy of a JSON value; `left` counts down the values and characters that may come."""
    left[0] -= 1
    left[1] -= len(value) if isinstance(value, str) else 0
    if min(*left, depth) < 0:
        raise RequestError(
            f"{name} is too large; all values may be {MOST_VALUES}, with {MOST_CHARACTERS} "
            f"characters, {DEEPEST} deep"
        )
    if isinstance(value, list | tuple):
        return [_copied(name, each, left, depth - 1) for each in value]
    if isinstance(value, Mapping):
        pairs = [(key, _copied(name, each, left, depth - 1)) for key, each in value.items()]
        if all(isinstance(key, str) for key, _ in pairs):
            left[1] -= sum(len(key) for key, _ in pairs)
            return dict(pairs)
    elif _is_plain(value):
        return value
    raise RequestError(f"{name} must be a JSON value, got {value!r:.100}")


def _is_plain(value: Any) -> bool:
    """Whether a value is null, true, false, a text or a number that JSON can write."""
    if isinstance(value, float):
        return isfinite(value)
    if isinstance(value, int):
        return abs(value) < 1 << 63
    return value is None or isinstance(value, str)


def parse_template_args(name: str, text: str) -> dict[str, Any]:
    """Arguments from a text: a JSON object, or `key=value,key=value` with JSON values or words.

    Outside JSON the words of `SWITCH_WORDS` are booleans.
    """
    if text.lstrip().startswith("{"):
        return check_template_args(name, _json(name, text))
    pairs = []
    for part in text.split(","):
        key, equals, value = part.partition("=")
        if not equals:
            raise RequestError(f"{name} must be {ALLOWED}, got {text!r:.100}")
        pairs.append((key.strip(), _value(value.strip())))
    return check_template_args(name, _unrepeated(name, pairs))


def spelled_template_args(name: str, given: Any) -> str:
    """Arguments, or a text of them, as JSON in a fixed order: equal arguments, equal texts."""
    words = parse_template_args(name, given) if isinstance(given, str) else given
    return json.dumps(check_template_args(name, words), sort_keys=True, ensure_ascii=False)


def _json(name: str, text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=partial(_unrepeated, name))
    except RequestError:
        raise
    except (ValueError, RecursionError) as error:
        raise RequestError(f"{name} is not JSON: {error}") from None


def _unrepeated(name: str, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The pairs by their keys; raises if a key is given twice."""
    words: dict[str, Any] = {}
    for key, value in pairs:
        if key in words:
            raise RequestError(
                f"{name}: {key!r:.100} is given more than once; give it one value, and in a sweep "
                "each value in an option of its own"
            )
        words[key] = value
    return words


def _value(text: str) -> Any:
    """The boolean that a word stands for, or a JSON value, else the text itself."""
    if text.lower() in SWITCH_WORDS:
        return SWITCH_WORDS[text.lower()]
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
