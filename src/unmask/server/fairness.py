"""Which waiting rows enter the batch next, and what one request may spend."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass
from math import inf
from time import perf_counter
from typing import Protocol, TypeVar

from unmask.server.limits import OverLimit


@dataclass(eq=False)
class Account:
    """What one request has spent; its rows share it.

    Args:
        client: who sent the request; None if unknown: then it shares with no other request.
        most_cost: forwards times positions that its rows may take together.
        most_seconds: time that it may decode, from its first row's start.
        size_field: the field of the request that sets how much it writes; errors name it.
    """

    client: str | None = None
    most_cost: float = inf
    most_seconds: float = inf
    size_field: str = "length"
    cost: int = 0
    began: float | None = None

    @property
    def owner(self) -> object:
        """Rows of equal owners are rows of one client."""
        return self if self.client is None else self.client

    def begin(self) -> None:
        """A row of the request enters the batch."""
        self.began = perf_counter() if self.began is None else self.began

    def spend(self, positions: int) -> None:
        """Pay for a forward of one row; raises once the request has spent too much."""
        self.cost += positions
        advice = "write fewer tokens, ask for fewer choices, or take a rule with fewer forwards"
        if self.cost > self.most_cost:
            raise OverLimit(
                self.size_field,
                f"the request took more than {self.most_cost:g} positions times forwards, the most "
                f"that this server gives one request (--max-cost); {advice}",
            )
        if self.began is not None and perf_counter() - self.began > self.most_seconds:
            raise OverLimit(
                self.size_field,
                f"the request decoded for more than {self.most_seconds:g} s, the most that this "
                f"server gives one request (--max-seconds); {advice}",
            )


class Accounted(Protocol):
    """A row whose request has an account."""

    @property
    def account(self) -> Account:
        """Of the row's request."""


Row = TypeVar("Row", bound=Accounted)


def next_rows(waiting: deque[Row], running: Iterable[Accounted], batch_size: int) -> list[Row]:
    """Take the rows that enter a batch from those that wait.

    The next row is one of the client with the fewest rows in the batch, then of the request with
    the fewest, then the one that has waited longest. One request takes at most half of the batch
    and one client at most three quarters, so that others always find a place soon.
    """
    inside = [row.account for row in running]
    owners, accounts = Counter(each.owner for each in inside), Counter(inside)
    most_each, kept_free = max(1, batch_size // 2), max(1, batch_size // 4)
    most_client = max(1, batch_size - kept_free)
    taken: list[Row] = []
    while len(inside) + len(taken) < batch_size:
        able = [
            row
            for row in waiting
            if accounts[row.account] < most_each and owners[row.account.owner] < most_client
        ]
        if not able:
            break
        row = min(able, key=lambda each: (owners[each.account.owner], accounts[each.account]))
        waiting.remove(row)
        taken.append(row)
        owners[row.account.owner] += 1
        accounts[row.account] += 1
    return taken
