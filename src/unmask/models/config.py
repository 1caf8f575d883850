"""Reads a config.json; errors name the key that is missing, unsupported or impossible."""

from __future__ import annotations

from typing import Any

from unmask.errors import ModelError, shown

LARGEST = 1 << 24  # of a size; a vocabulary has fewer tokens
LAYERS = 1 << 10
PLAIN = "default"  # the rope_type without scaling


class Config:
    """The values of a config.json; every error names the file and the key."""

    def __init__(self, values: dict[str, Any], file: str) -> None:
        self.values = values
        self.file = file

    @property
    def family(self) -> str:
        """The class name of the model, or its `model_type`, for messages."""
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
        return Config(defaults | given, self.file)

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

    @property
    def rope_parameters(self) -> dict[str, Any]:
        """The options of rotary positions, as transformers 5 groups them."""
        parameters = self.get("rope_parameters", {})
        if not isinstance(parameters, dict):
            raise self.wrong("rope_parameters", parameters, "an object")
        return parameters

    def rope_theta(self, default: float | None = None) -> float:
        """The rotary base; transformers 4 and 5 write it in different places."""
        scaling = self.get("rope_scaling")
        if not isinstance(scaling, dict) or scaling.get("rope_type", scaling.get("type")) != PLAIN:
            self.refuse(rope_scaling=None)
        theta = self.theta_of(self.rope_parameters)
        return self.number("rope_theta", default) if theta is None else theta

    def theta_of(self, parameters: dict[str, Any]) -> float | None:
        """The rotary base in options as transformers 5 writes them; None if they name none."""
        kind, theta = parameters.get("rope_type", PLAIN), parameters.get("rope_theta")
        if kind != PLAIN:
            raise ModelError(f"{self.file}: rope_type {kind!r} is not supported, only {PLAIN!r}")
        return None if theta is None else self.positive("rope_theta", theta)

    def rotary_dim(self, head_dim: int) -> int:
        """The number of features of a head that are rotated."""
        parameters = self.rope_parameters
        share = parameters.get("partial_rotary_factor") or self.get("partial_rotary_factor")
        if share is None:
            size = self.whole("rotary_dim", head_dim)
        else:
            size = int(head_dim * self.positive("partial_rotary_factor", share))
        if size > head_dim or size % 2:
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
