"""Forged checkpoint configs through `unmask models` and `unmask run`; prints the outcomes as JSON.

Run it alone: PYTHONPATH=src python -m tests.hostile.forged_configs
"""

from __future__ import annotations

import io
import json
import resource
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import torch

from tests.checkpoints import LLADA, SDAR, make_llada, make_sdar
from unmask.cli import main as unmask

SIZES = ("d_model", "n_heads", "n_kv_heads", "n_layers", "mlp_hidden_size", "vocab_size")
ODD: dict[str, Any] = {
    "huge": 2**63, "absurd": 10**6, "digits": 10**4000, "negative": -4, "zero": 0, "true": True,
    "nan": float("nan"), "inf": float("inf"), "fraction": 2.5, "text": "32", "list": [32],
    "object": {"a": 1},
}  # fmt: skip


def forgeries() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """The family, the name of the forgery, and its config."""
    for key in SIZES:
        for name, value in ODD.items():
            yield "llada", f"{key} {name}", {**LLADA, key: value}
    for key in (
        "rope_theta",
        "rms_norm_eps",
        "max_sequence_length",
        "mask_token_id",
        "eos_token_id",
    ):
        for name in ("huge", "negative", "nan", "inf", "text", "list", "object", "digits"):
            yield "llada", f"{key} {name}", {**LLADA, key: ODD[name]}
    for key in LLADA:
        yield "llada", f"{key} missing", {k: v for k, v in LLADA.items() if k != key}
    for key in (
        "hidden_size",
        "num_attention_heads",
        "num_hidden_layers",
        "block_size",
        "head_dim",
    ):
        for name in ("huge", "absurd", "negative", "nan", "text", "zero"):
            yield "sdar", f"{key} {name}", {**SDAR, key: ODD[name]}
    deep: Any = 0
    for _ in range(900):
        deep = [deep]
    for key in ("architectures", "rope_scaling", "auto_map", "model_type", "torch_dtype", "dtype"):
        for name, value in {"deep": deep, "long": "x" * 10**6, "list": [1], "number": 7}.items():
            yield "llada", f"{key} {name}", {**LLADA, key: value}


def raw_files() -> dict[str, bytes]:
    """Bytes in the place of config.json."""
    return {
        "empty": b"", "null": b"null", "list": b"[]", "number": b"7", "text": b'"x"',
        "deep": b'{"a":' + b"[" * 10**6, "binary": bytes(range(256)) * 100, "zeros": bytes(10**6),
        "long": b'{"a": "' + b"x" * 10**7 + b'"}', "surrogate": b'{"architectures": ["\\ud800"]}',
        "digits": b'{"vocab_size": ' + b"9" * 10**5 + b"}",
        "utf-16": json.dumps(LLADA).encode("utf-16"),
        "twice": json.dumps(LLADA).encode() * 2, "half": json.dumps(LLADA).encode()[:99],
    }  # fmt: skip


def outcome(folder: Path) -> str:
    """What both commands do: `ok`, `refused`, or what is wrong."""
    results = set()
    run = ["run", "Hello", "--model", str(folder), "--length", "4", "--device", "cpu"]
    run += ["--rule", "llada"]  # without it, one more line says which rule is used
    for command in (["models", str(folder)], run):
        out, err = io.StringIO(), io.StringIO()
        try:
            with redirect_stdout(out), redirect_stderr(err), warnings.catch_warnings():
                code = unmask(command)
        except BaseException as error:
            results.add(f"TRACEBACK of {command[0]}: {type(error).__name__}: {str(error)[:200]}")
            continue
        lines = [line for line in err.getvalue().splitlines() if not line.startswith("warning: ")]
        if code and (len(lines) != 1 or len(lines[0]) > 1000):
            results.add(f"{len(lines)} LINES, {len(err.getvalue())} characters: {lines[:1]}"[:300])
        results.add("refused" if code else "ok")
    wrong = sorted(result for result in results if result not in ("ok", "refused"))
    return "; ".join(wrong) or ("refused" if "refused" in results else "ok")


def main() -> None:
    """Forge every config and print the outcomes."""
    torch.set_num_threads(1)
    part = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    outcomes: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as place:
        bases = {"llada": make_llada(Path(place, "llada")), "sdar": make_sdar(Path(place, "sdar"))}
        copy = Path(place, "copy")
        cases = [(f, name, json.dumps(config).encode()) for f, name, config in forgeries()]
        cases += [("llada", f"file {name}", data) for name, data in raw_files().items()]
        for family, name, data in cases[::part]:
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(bases[family], copy)
            (copy / "config.json").write_bytes(data)
            outcomes[f"{family} {name}"] = outcome(copy)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    json.dump({"outcomes": outcomes, "megabytes": memory}, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
