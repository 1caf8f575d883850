"""What one request may ask for, so that none can take the server from the others."""

from __future__ import annotations

from dataclasses import dataclass

from unmask.errors import RequestError


@dataclass(frozen=True)
class Limits:
    """Bounds that are checked before anything is decoded, but for `forwards`."""

    length: int = 1024  # tokens to write, or masks to fill, per choice
    prompt: int = 4096  # tokens that are given, per choice
    choices: int = 8  # rows of one request: prompts times n
    forwards: int = 4096  # of one row; a rule that takes back what it wrote could go on for ever
    body: int = 2**18  # bytes of a request
    seconds: float = 30.0  # until a request's body must be there

    def __post_init__(self) -> None:
        for name in ("length", "prompt"):
            if getattr(self, name) < 1:
                raise RequestError(f"--max-{name} must be >= 1, got {getattr(self, name)}")

    def check_size(self, given: int, masks: int) -> None:
        """Raise where a canvas is larger than is served here."""
        if masks > self.length:
            raise RequestError(f"{masks} tokens to write; this server writes at most {self.length}")
        if given > self.prompt:
            raise RequestError(f"the prompt has {given} tokens; here it has at most {self.prompt}")
