"""Reads a config.json; errors name the key that is missing, unsupported or impossible."""

from __future__ import annotations

from typing import Any

from unmask.errors import ModelError, shown

LARGEST = 1 << 24  # of a size; a vocabulary has fewer tokens
LAYERS = 1 << 10
PLAIN = "default"  # the rope_type without scaling


class Config:
    """The values of a config.json; every error names the file and the key."""

    def __init__(self, values: dict[str, Any], file: str, asked: str | None = None) -> None:
        self.values = values
        self.file = file
        self.asked = asked  # the family that the caller gave; None: the config tells it

    @property
    def family(self) -> str:
        """The family that was given, else the class name or `model_type`, for messages."""
        return self.asked or self.declared

    @property
    def declared(self) -> str:
        """The class name of the model, or its `model_type`."""
        return self.names[0] if self.names else str(self.values.get("model_type"))

    @property
    def names(self) -> list[str]:
        """The class names under `architectures`."""
        names = self.values.get("architectures") or []
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise self.wrong("architectures", names, "a list of names")
        return names

    def wrong(self, key: str, value: Any, allowed: str) -> ModelError:
        """The error for a value that is not allowed."""
        return ModelError(f"{self.file}: {key} must be {allowed}, got {shown(value, 100)}")

    def get(self, key: str, default: Any = None) -> Any:
        """A value; the default if it is missing or null."""
        value = self.values.get(key)
        return default if value is None else value

    def with_defaults(self, **defaults: Any) -> Config:
        """The same with values for keys that are missing or null."""
        given = {key: value for key, value in self.values.items() if value is not None}
        return Config(defaults | given, self.file, self.asked)

    def need(self, key: str) -> Any:
        """A value; raises if it is missing or null."""
        if self.values.get(key) is None:
            raise ModelError(f"{self.file}: the key {key!r} is missing; {self.family} needs it")
        return self.values[key]

    def whole(
        self, key: str, default: int | None = None, least: int = 1, most: int = LARGEST
    ) -> int:
        """A whole number; without a default it is required."""
        value = self.need(key) if default is None else self.get(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise self.wrong(key, value, f"a whole number >= {least}")
        if value > most:
            raise self.wrong(key, value, f"at most {most}")
        return value

    def layers(self, key: str, default: int | None = None, least: int = 1) -> int:
        """A number of layers, which is limited more than other numbers."""
        return self.whole(key, default, least, LAYERS)

    def flag(self, key: str, default: bool) -> bool:
        """True or false."""
        value = self.get(key, default)
        if not isinstance(value, bool):
            raise self.wrong(key, value, "true or false")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        """A number > 0; without a default it is required."""
        value = self.need(key) if default is None else self.get(key, default)
        return self.positive(key, value)

    def positive(self, key: str, value: Any) -> float:
        """The value as a float; raises unless it is a number > 0 that float32 can hold."""
        right = isinstance(value, int | float) and not isinstance(value, bool)
        if not right or not 1e-30 <= value <= 1e30:
            raise self.wrong(key, value, "a number > 0 and finite")
        return float(value)

    def refuse(self, **unsupported: Any) -> None:
        """Raise if a key has another value than the one that is implemented."""
        for key, expected in unsupported.items():
            value = self.get(key, expected)
            if value != expected:
                raise ModelError(
                    f"{self.file}: {key} is {shown(value, 100)}; only {expected!r} is "
                    f"supported for {self.family}"
                )

    def entry(self, key: str) -> dict[str, Any]:
        """An object; empty if the key is missing or null."""
        value = self.get(key, {})
        if not isinstance(value, dict):
            raise self.wrong(key, value, "an object")
        return value

    @property
    def rope(self) -> dict[str, Any]:
        """The options of rotary positions: `rope_scaling`, or `rope_parameters` of transformers 5.

        If a config has both they must be equal: transformers 4 reads the one, 5 the other.
        """
        old, new = self.entry("rope_scaling"), self.entry("rope_parameters")
        if old and new and old != new:
            raise ModelError(
                f"{self.file}: rope_scaling is {shown(old, 100)} and rope_parameters "
                f"{shown(new, 100)}; remove the one that the model was not trained with"
            )
        return old or new

    def rope_theta(self, default: float | None = None) -> float:
        """The rotary base; transformers 4 and 5 write it in different places."""
        kinds = [key for key, value in self.rope.items() if isinstance(value, dict)]
        if kinds:
            raise ModelError(
                f"{self.file}: {self.family} has one rotary base for all layers, and the config "
                f"gives one for {kinds[0]!r}; write it as rope_theta instead"
            )
        theta = self.theta_of(self.rope, self._rope_key)
        if theta is None:
            return self.number("rope_theta", default)
        if self._rope_key == "rope_scaling":
            self.refuse_another_theta("rope_theta", theta)
        return theta

    def refuse_another_theta(self, key: str, theta: float) -> None:
        """Raise if a key gives another base than `rope_scaling`: transformers 4 and 5 differ."""
        if self.get(key, theta) != theta:
            raise ModelError(
                f"{self.file}: rope_scaling gives the rotary base {theta:g} and {key} "
                f"{shown(self.values[key], 100)}; keep the one that the model was trained with"
            )

    @property
    def _rope_key(self) -> str:
        return "rope_scaling" if self.entry("rope_scaling") else "rope_parameters"

    def theta_of(self, options: dict[str, Any], key: str) -> float | None:
        """The rotary base in the options under a key; None if they name none.

        Raises if they scale the angles. transformers 4 wrote `type` for `rope_type`.
        """
        unnamed = "a factor without a type" if "factor" in options else PLAIN
        kind = options.get("rope_type") or options.get("type") or unnamed
        if kind != PLAIN:
            raise ModelError(
                f"{self.file}: {key} is {shown(options, 100)}; only the rope_type {PLAIN!r} is "
                f"supported for {self.family}"
            )
        theta = options.get("rope_theta")
        return None if theta is None else self.positive(f"rope_theta of {key}", theta)

    def rotary_dim(self, head_dim: int) -> int:
        """The number of features of a head that are rotated."""
        share = self.rope.get("partial_rotary_factor") or self.get("partial_rotary_factor")
        if share is None:
            size = self.whole("rotary_dim", head_dim)
        else:
            size = int(head_dim * self.positive("partial_rotary_factor", share))
        if size > head_dim or (size % 2 and size != head_dim):
            key = "rotary_dim" if share is None else "partial_rotary_factor"
            allowed = f"such that an even number of {head_dim} features is rotated"
            raise self.wrong(key, share or size, allowed)
        return size

    def token_ids(self, key: str) -> list[int]:
        """One token id or several, as a list; empty if the key is missing."""
        value = self.get(key, [])
        ids = value if isinstance(value, list) else [value]
        if not all(isinstance(i, int) and not isinstance(i, bool) for i in ids):
            raise self.wrong(key, value, "a token id or a list of them")
        return ids
