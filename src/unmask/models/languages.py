"""Languages over the tokens of one model."""

from __future__ import annotations

from functools import cached_property

from unmask.languages.automaton import TokenAutomaton
from unmask.languages.build import build, cache_folder
from unmask.models.spellings import spellings
from unmask.models.tokenizer import Tokenizer

MOST = 64  # automata in memory


class Languages:
    """Builds languages from their notation, such as `regex:[0-9]+`; the last ones are kept."""

    def __init__(self, tokenizer: Tokenizer, size: int) -> None:
        self.tokenizer, self.size = tokenizer, size
        self._built: dict[str, TokenAutomaton] = {}

    def __call__(self, notation: str) -> TokenAutomaton:
        """The automaton of a language."""
        automaton = self._built.pop(notation, None)
        if automaton is None:
            automaton = build(notation, self._spellings, cache_folder())
        self._built[notation] = automaton
        while len(self._built) > MOST:
            self._built.pop(next(iter(self._built)), None)
        return automaton

    @cached_property
    def _spellings(self) -> list[bytes | None]:
        return spellings(self.tokenizer, self.size)
