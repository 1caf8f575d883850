"""Loading needs no transformers, and little more memory than the weights."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.models.common import MEGABYTE
from tests.models.configs import config_of, tensor_shapes
from tests.models.makers import write_json, write_tokenizer
from unmask import decode, load

# Measuring


def run(code, *arguments):
    """Run a program in a new process; returns its JSON output."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_nothing_of_transformers_is_needed_to_load_and_decode(folder):
    code = """
        import json, sys

        class Absent:
            def find_spec(self, name, path=None, target=None):
                if name.split(".")[0] in ("transformers", "accelerate", "huggingface_hub"):
                    raise ImportError(name)

        sys.meta_path.insert(0, Absent())
        import unmask

        model, tokenizer = unmask.load(sys.argv[1])
        prompt = tokenizer.encode_chat([{"role": "user", "content": "hello"}])
        result = unmask.decode(model, prompt, "confidence | swd(5) | top(2)", length=6)
        named = {name.split(".")[0] for name in sys.modules}
        print(json.dumps([result.answer.tolist(), sorted(named & {"transformers"})]))
    """
    answer, imported = run(code, folder)
    model, tokenizer = load(folder)
    prompt = tokenizer.encode_chat([{"role": "user", "content": "hello"}])
    here = decode(model, prompt, "confidence | swd(5) | top(2)", length=6)
    assert answer == here.answer.tolist()
    assert imported == []


def write_zeros(file, shapes):
    """A file of bfloat16 zeros that takes no room on the disk; returns its size."""
    header, place = {}, 0
    for name, shape in shapes.items():
        end = place + 2 * math.prod(shape)
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [place, end]}
        place = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with file.open("wb") as out:
        out.write(len(text).to_bytes(8, "little") + text)
        out.truncate(out.tell() + place)
    return place


@pytest.fixture
def large(tmp_path):
    """A LLaDA of 270 MB in bfloat16, in four files; deleted after the test."""
    config = config_of("llada", d_model=1024, mlp_hidden_size=4096, n_layers=8)
    write_json(tmp_path / "config.json", config)
    write_tokenizer(tmp_path, "llada")
    shapes = tensor_shapes("llada", config)
    where, sizes = {}, []
    for number in range(4):
        part = {name: shape for name, shape in shapes.items() if _shard(name) == number}
        file = tmp_path / f"model-{number + 1:05d}-of-00004.safetensors"
        sizes.append(write_zeros(file, part))
        where.update(dict.fromkeys(part, file.name))
    write_json(tmp_path / "model.safetensors.index.json", {"weight_map": where})
    yield tmp_path, sum(sizes), max(sizes)
    for file in tmp_path.iterdir():
        file.unlink()


def _shard(name):
    """Two layers in each file; tensors outside the layers go to the first."""
    return int(name.split(".")[3]) // 2 if ".blocks." in name else 0


MEASURE = """
    import json, os, sys
    import torch
    from unmask import load

    def memory(field):
        values = open("/proc/self/status").read().split(field)[1].split()
        return int(values[0]) * 1024

    def measure(options):
        before, kept = memory("VmRSS:"), memory("RssAnon:")  # torch itself
        model = load(sys.argv[1], **options).model
        for parameter in model.module.parameters():  # a mapped page counts once it is touched
            parameter.view(torch.int16).flatten()[::1024].sum()
        return [memory("VmHWM:") - before, memory("RssAnon:") - kept, str(model.dtype)]

    torch.set_num_threads(1)
    results = []
    for options in json.loads(sys.argv[2]):
        reader, writer = os.pipe()
        if not os.fork():  # each in a process of its own, all after one import
            os.write(writer, json.dumps(measure(options)).encode())
            os._exit(0)
        os.close(writer)
        results.append(json.loads(os.read(reader, 1 << 16)))
        os.wait()
    print(json.dumps(results))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_loading_takes_the_weights_one_file_and_little_more(large):
    folder, weights, shard = large
    assert weights >= 200 * MEGABYTE
    dtypes = (None, "float16")
    results = run(MEASURE, folder, json.dumps([{"dtype": dtype} for dtype in dtypes]))
    for dtype, (taken, _, actual) in zip(dtypes, results, strict=True):
        assert actual == f"torch.{dtype or 'bfloat16'}"
        assert taken >= 0.9 * weights  # otherwise nothing was measured
        assert taken <= weights + shard + 40 * MEGABYTE, dtype


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_quantising_takes_the_small_weights_and_one_file(large):
    folder, weights, shard = large
    shares = {"int8": 0.6, "int4": 0.35}
    results = run(MEASURE, folder, json.dumps([{"quantize": kind} for kind in shares]))
    for (kind, share), (peak, kept, _) in zip(shares.items(), results, strict=True):
        assert peak <= share * weights + shard + 110 * MEGABYTE, kind
        assert kept <= share * weights + 110 * MEGABYTE, kind
