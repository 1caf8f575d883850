"""The event loop leaves the interpreter to the engine."""

import asyncio
import time

from unmask.server import loop_share
from unmask.server.loop_share import LoopShare


class Rows:
    def __init__(self, rows):
        self.rows = rows


async def _flooded(rows, seconds=0.6):
    """The share of the time that a flood of cheap work gets."""
    share, done = LoopShare(Rows(rows)), 0.0
    share.start()
    begin = time.monotonic()
    while (passed := time.monotonic() - begin) < seconds:
        used = time.thread_time()
        while time.thread_time() - used < 0.0005:
            pass
        done += time.thread_time() - used
        await asyncio.sleep(0)
    return share.paused / passed, done / passed


def test_a_flood_gets_its_share_while_rows_decode_and_all_of_it_otherwise():
    paused, worked = asyncio.run(_flooded(rows=1))
    assert paused > 0.2
    assert worked < loop_share.SHARE + 0.15
    assert asyncio.run(_flooded(rows=0))[0] == 0
