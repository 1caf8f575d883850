"""Memory of a step: in use, and at the most since the step before."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from unmask.lab.sweep import decode as decoding
from unmask.lab.sweep.decode import memory_in_use

CPU = torch.device("cpu")
SIZE = 64 << 20


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the system keeps no peak")
def test_what_was_taken_and_given_back_between_two_looks_is_in_the_peak():
    memory_in_use(CPU)
    taken = torch.ones(SIZE, dtype=torch.uint8)
    del taken
    used, peak = memory_in_use(CPU)
    assert peak - used > SIZE // 2
    used, peak = memory_in_use(CPU)
    assert 0 <= peak - used < SIZE // 2


def test_without_a_peak_that_can_be_set_back_it_is_what_is_in_use(monkeypatch):
    class Closed(type(Path())):
        def write_text(self, *_, **__):
            raise PermissionError

    monkeypatch.setattr(decoding, "Path", Closed)
    used, peak = memory_in_use(CPU)
    assert used == pytest.approx(peak, rel=0.01)
    assert used > 1 << 20


def test_of_a_gpu_it_is_what_torch_has_allocated_there(monkeypatch):
    reset = []
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda device: 30)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: 20)
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", reset.append)
    device = torch.device("cuda", 0)
    assert memory_in_use(device) == (20, 30)
    assert reset == [device]
