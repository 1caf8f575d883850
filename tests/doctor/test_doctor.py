"""The doctor finds planted faults, says how to mend what is missing, and fits on a page."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch

from tests.checkpoints import make_llada
from tests.paths import ROOT
from unmask import Session, kernels, load
from unmask.cli import main
from unmask.decoding.options import DecodingOptions
from unmask.doctor import kernels as kernel_checks
from unmask.doctor import machine as machine_checks
from unmask.doctor import model as model_checks
from unmask.doctor.machine import EXTRAS, machine
from unmask.doctor.model import fits, invariance, speed
from unmask.kernels import codes, layer, native, product, reference
from unmask.models import packed
from unmask.models.pretrained import Pretrained

CPU = torch.device("cpu")
GPT = ROOT / "tests" / "golden" / "models-2" / "diffugpt-tiny"  # it has learned 40 positions


def by_name(findings):
    return {finding.name: finding for finding in findings}


@pytest.fixture
def fresh():
    kernels.missing.cache_clear()
    kernels._broken.clear()
    yield
    kernels.missing.cache_clear()
    kernels._broken.clear()


def test_a_whole_examination_is_a_page_and_says_ok(capsys, monkeypatch):
    monkeypatch.setattr(kernel_checks, "VOCABULARY", 5000)
    assert main(["doctor", "--device", "cpu"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 100


def test_findings_as_json_have_names_and_states(capsys, monkeypatch):
    monkeypatch.setattr(kernel_checks, "VOCABULARY", 5000)
    assert main(["doctor", "--device", "cpu", "--quantize", "int8", "--json"]) == 0
    findings = {each["name"]: each for each in json.loads(capsys.readouterr().out)}
    assert {"versions", "device", "memory", "bubblewrap", "kernel", "batches", "forward",
            "fits int8", "extra serve"} <= set(findings)  # fmt: skip
    assert all(each["mend"] for each in findings.values() if each["status"] in ("slow", "missing"))


def test_a_kernel_that_disagrees_on_many_tokens_is_a_fault(monkeypatch, capsys, fresh):
    def wrong_on_many(rows):
        stats = reference.reduce_rows(rows)
        if rows.now.shape[-1] < 1000:
            return stats
        return replace(stats, confidence=stats.confidence * 1.01)

    monkeypatch.setattr(native, "prepare", lambda: CPU)
    monkeypatch.setattr(native, "serves", lambda rows: True)
    monkeypatch.setattr(native, "reduce_rows", wrong_on_many)
    monkeypatch.setattr(kernel_checks, "VOCABULARY", 5000)
    assert main(["doctor", "--device", "cpu"]) == 1
    line = next(line for line in capsys.readouterr().out.splitlines() if "kernel" in line)
    assert line.startswith("fault")
    assert "native disagrees" in line


@pytest.fixture
def no_library(monkeypatch):
    """As if the C++ library had not been built."""
    caches = (native.library, product.order, layer.trouble, codes.trouble)
    monkeypatch.setattr(native, "LIBRARY", ROOT / "no such file")
    for cached in caches:
        cached.cache_clear()
    yield
    for cached in caches:
        cached.cache_clear()


@pytest.mark.usefixtures("fresh", "no_library")
def test_without_the_library_every_slower_path_says_how_to_build_it():
    findings = by_name(kernel_checks.kernels_on(CPU))
    for name in ("kernel", "products", "layers", "8 and 4 bits"):
        assert findings[name].status == "slow", name
        assert findings[name].mend == "python -m unmask.kernels.build (needs a C++ compiler)"
        assert "kernels.build" not in findings[name].says  # once is enough


def test_whatever_native_does_not_do_has_an_advice(monkeypatch):
    reasons = {
        "it does not have the bits of torch's product": ("ok", "--pack"),
        "it is for x86 processors with AVX2": ("ok", "nothing to do"),
        "its products with 4 bits are wrong": ("fault", "report it"),
    }
    for reason, (status, advice) in reasons.items():
        checked = codes if "wrong" in reason else product
        monkeypatch.setattr(checked, "trouble", lambda reason=reason: reason)
        finding = by_name(kernel_checks.kernels_on(CPU))[
            "8 and 4 bits" if checked is codes else "products"
        ]
        assert finding.status == status
        assert advice in finding.mend


def test_a_kernel_that_fails_is_a_fault(monkeypatch, fresh):
    def fails(rows):
        raise RuntimeError("no resources")

    monkeypatch.setattr(native, "prepare", lambda: CPU)
    monkeypatch.setattr(native, "reduce_rows", fails)
    with pytest.warns(RuntimeWarning, match="is not used"):
        finding, *_ = kernel_checks.kernels_on(CPU)
    assert (finding.status, "no resources" in finding.says) == ("fault", True)


@pytest.fixture
def unchecked():
    """As if no kernel had been compared with torch yet; and once more afterwards."""
    checks = (product.order, layer.trouble)
    for check in checks:
        check.cache_clear()
    yield
    for check in checks:
        check.cache_clear()


@pytest.mark.usefixtures("unchecked")
def test_a_product_without_the_bits_of_torch_is_left_to_torch_and_told(monkeypatch):
    monkeypatch.setattr(product, "multiply", lambda x, weight, bias=None, by=None: x.sum() * weight)
    finding = by_name(kernel_checks.kernels_on(CPU))["products"]
    assert finding.says.startswith(
        "torch multiplies large weights; native is not used: it does not have the bits"
    )


@pytest.mark.usefixtures("unchecked")
def test_a_norm_without_the_bits_of_torch_is_left_to_torch_and_told(monkeypatch):
    monkeypatch.setattr(layer, "_normalise", lambda x, weight, eps: x)
    finding = by_name(kernel_checks.kernels_on(CPU))["layers"]
    assert finding.says.startswith(
        "torch computes norms and rotations; native is not used: it does not have the bits"
    )


def test_packed_weights_without_the_bits_of_torch_are_not_used_and_that_is_told(monkeypatch):
    monkeypatch.setattr(packed, "_same_bits", lambda dtype: False)
    monkeypatch.setattr(packed, "trouble", lambda dtype, device: None)
    finding = by_name(kernel_checks.kernels_on(CPU))["packing"]
    assert finding.says == (
        "weights in bfloat16 are not packed: their products do not have torch's bits"
    )


def test_a_kernel_that_is_not_built_is_slow_and_says_how_to_build_it(monkeypatch, fresh):
    def unavailable():
        raise kernels.Unavailable("there is no C++ compiler")

    monkeypatch.setattr(native, "prepare", unavailable)
    finding, *_ = kernel_checks.kernels_on(CPU)
    assert finding.status == "slow"
    assert "python -m unmask.kernels.build" in finding.mend


def test_a_missing_extra_says_what_to_install(monkeypatch):
    here = machine_checks.find_spec
    monkeypatch.setattr(
        machine_checks, "find_spec", lambda name: None if name == "uvicorn" else here(name)
    )
    findings = by_name(machine(CPU))
    assert findings["extra serve"].status == "missing"
    assert "uvicorn" in findings["extra serve"].says
    assert findings["extra serve"].mend == "pip install 'unmask[serve]'"


def test_a_sandbox_and_a_browser_that_are_missing_say_how_to_mend_it(monkeypatch):
    monkeypatch.setattr(machine_checks, "bwrap_trouble", lambda: "bwrap is not installed")
    monkeypatch.setattr(machine_checks.shutil, "which", lambda name: None)
    findings = by_name(machine(CPU))
    for name in ("bubblewrap", "chromium"):
        assert findings[name].status == "missing"
        assert findings[name].mend


def test_the_extras_are_those_of_the_package():
    tomllib = pytest.importorskip("tomllib")
    from tests.paths import ROOT

    table = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = table["project"]["optional-dependencies"]
    assert set(EXTRAS) == set(extras) - {"dev", "sglang", "plot"}  # plot is a part of lab
    assert set(machine_checks.PURPOSE) == set(EXTRAS)


def test_a_model_whose_rows_depend_on_their_batch_is_a_fault(monkeypatch):
    model = load(device="cpu").model
    assert invariance(model).status == "ok"
    padded = Pretrained._padded

    def leaky(self, tokens, lengths, offset, first):
        return padded(self, tokens, lengths, offset, first) * (1.0 if len(tokens) == 1 else -1.0)

    monkeypatch.setattr(Pretrained, "_padded", leaky)
    finding = invariance(model)
    assert (finding.status, bool(finding.mend)) == ("fault", True)


def test_batches_with_a_cache_are_checked_too():
    options = DecodingOptions(dtype="bfloat16")
    findings = by_name(model_checks.examined("embedded", options, CPU))
    assert findings["batches"].status == findings["batches, dual cache"].status == "ok"


def test_a_processor_that_does_not_multiply_bfloat16_is_told(monkeypatch):
    monkeypatch.setattr("unmask.doctor.model.multiplies", lambda dtype: False)
    assert "float32" not in speed(load(device="cpu").model).says
    assert "in float32" in speed(load(device="cpu", dtype="bfloat16").model).says


def test_what_fits_grows_with_the_memory_and_shrinks_with_the_bits():
    model = load(device="cpu").model
    none, some, all_sizes = (by_name(fits(model, free, None, 2048)) for free in (10, 10**7, 10**12))
    assert "too large" in none["fits bfloat16"].says
    assert none["fits float32"].status == "slow"  # the dtype of this model
    assert none["fits bfloat16"].status == "ok"
    assert "1 x 512" in some["fits int8"].says
    assert "32 x 2048" not in some["fits int8"].says
    assert "32 x 2048" in all_sizes["fits float32"].says


def test_no_more_tokens_are_promised_than_the_model_has_positions():
    finding = by_name(fits(load(GPT, device="cpu").model, 10**12, None, 40))["fits float32"]
    assert finding.says.endswith("room for rows x tokens: 32 x 40")


def test_the_weights_that_fit_are_those_of_the_loaded_model():
    for kind in ("int8", "int4"):
        model = Session(device="cpu", dtype="bfloat16", quantize=kind).model()
        layers = model.module
        taken = sum(t.nbytes for t in (*layers.parameters(), *layers.buffers()))
        assert model_checks._weights(model, kind) == pytest.approx(taken, rel=0.05)


def test_the_weights_of_gpt2_are_not_those_of_a_gated_transformer():
    model = load(GPT, device="cpu", dtype="float32").model
    taken = sum(weight.nbytes for weight in model.module.parameters())
    assert model_checks._weights(model, "float32") == taken


@pytest.fixture
def as_json(capsys, monkeypatch):
    """The exit code of an examination, and its findings by name."""
    monkeypatch.setattr(kernel_checks, "VOCABULARY", 5000)

    def call(*arguments):
        code = main(["doctor", "--device", "cpu", "--json", *map(str, arguments)])
        captured = capsys.readouterr()
        assert captured.err == ""
        return code, {each["name"]: each for each in json.loads(captured.out)}

    return call


def test_a_model_with_few_learned_positions_is_examined_within_them(as_json):
    code, findings = as_json("--model", GPT)
    assert code == 0
    assert findings["batches"]["status"] == findings["forward"]["status"] == "ok"
    assert "for 40 positions" in findings["forward"]["says"]
    assert invariance(load(GPT, device="cpu").model, 5).status == "ok"


def test_a_model_that_cannot_be_loaded_is_a_fault(as_json, tmp_path):
    broken = make_llada(tmp_path / "broken")
    (broken / "model.safetensors").write_bytes(b"no weights")
    for model, more in ((broken, ()), (tmp_path / "none", ()), ("embedded", ("--mask-id", "9999"))):
        code, findings = as_json("--model", model, *more)
        assert (code, findings["model"]["status"]) == (1, "fault")
        assert findings["model"]["says"].startswith(f"{model} cannot be loaded: ")
        assert findings["model"]["mend"]
        assert findings["versions"]["status"] == "ok"  # the machine is examined all the same


def test_a_model_that_does_not_fit_is_not_loaded_and_what_fits_is_told(as_json, monkeypatch):
    monkeypatch.setattr(model_checks, "free_memory", lambda device: 100_000)
    monkeypatch.setattr(Session, "model", lambda self: pytest.fail("it was loaded"))
    for more in ((), ("--quantize", "int8"), ("--dtype", "bfloat16")):
        code, findings = as_json(*more)
        assert (code, findings["model"]["status"]) == (1, "fault")
        assert "0.1 MB are free" in findings["model"]["says"]
        assert "weights 1.73 MB; too large" in findings["fits float32"]["says"]


def test_weights_that_stay_mapped_to_their_file_need_no_free_memory(as_json, monkeypatch):
    monkeypatch.setattr(model_checks, "free_memory", lambda device: 10)
    code, findings = as_json("--model", GPT)
    assert (code, findings["forward"]["status"]) == (0, "ok")
    assert findings["fits float32"]["status"] == "slow"


def test_weights_that_are_packed_need_free_memory(as_json, monkeypatch):
    monkeypatch.setattr(model_checks, "free_memory", lambda device: 10)
    code, findings = as_json("--model", GPT, "--pack")
    assert (code, findings["model"]["status"]) == (1, "fault")
    assert "is not loaded" in findings["model"]["says"]


def test_a_forward_that_fails_is_a_fault(as_json, monkeypatch):
    def fails(self, canvas):
        raise RuntimeError("no kernel image\nfor this device")

    monkeypatch.setattr(Pretrained, "trunk", fails)
    code, findings = as_json()
    assert code == 1
    for name in ("batches", "forward"):
        assert findings[name]["status"] == "fault"
        assert findings[name]["says"].endswith("cannot run here: RuntimeError: no kernel image")
    assert findings["fits float32"]["status"] == "ok"


def test_wrong_arguments_are_not_findings(capsys):
    for arguments in (["--device", "meta"], ["--mask-id", "1.5"]):
        assert main(["doctor", *arguments, "--json"]) == 2
        captured = capsys.readouterr()
        assert (captured.out, captured.err.count("\n")) == ("", 1)
