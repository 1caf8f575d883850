"""The memory of a machine, and of a container on it."""

from __future__ import annotations

import torch

from unmask.models import memory as memory_module
from unmask.models.memory import memory, weight_bytes

CPU = torch.device("cpu")


def test_a_container_has_the_memory_of_its_limit(tmp_path, monkeypatch):
    limit, used = tmp_path / "memory.max", tmp_path / "memory.current"
    group = (str(tmp_path), limit.name, used.name, "inactive_file")
    monkeypatch.setattr(memory_module, "GROUPS", (group,))
    free, total = memory(CPU)  # there is no such file
    assert 0 < free <= total
    used.write_text("3000\n")
    limit.write_text("10000\n")
    assert memory(CPU) == (7000, 10000)
    (tmp_path / "memory.stat").write_text("anon 500\ninactive_file 2500\nactive_file 9\n")
    assert memory(CPU) == (9500, 10000)  # pages of files can be freed
    limit.write_text("400\n")  # less than is used already
    assert memory(CPU) == (0, 400)
    for no_limit in ("max\n", f"{1 << 62}\n"):
        limit.write_text(no_limit)
        assert memory(CPU)[1] == total


def test_embedding_and_head_keep_two_bytes_where_the_layers_have_fewer_bits():
    sizes = [weight_bytes(3200, 100, name) for name in ("float32", "bfloat16", "int8", "int4")]
    assert sizes == [13200, 6600, 3400, 2000]
