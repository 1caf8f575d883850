"""Spreading the layers of a model over devices, through accelerate."""

from __future__ import annotations

import sys

import pytest
import torch

from tests.models.common import IDS, logits, one_line
from unmask import ModelError, Session, load
from unmask.models.load import usable_device


def test_a_device_map_without_accelerate_is_one_line(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "accelerate", None)
    for device_map in ("auto", {"": "cpu"}):
        with pytest.raises(ModelError) as caught:
            load(folder, device_map=device_map)
        assert "device_map needs the package accelerate" in one_line(caught)


class FakeAccelerate:
    """Records the calls of `load` to accelerate."""

    def __init__(self, device_map):
        self.device_map, self.dispatched = device_map, None

    def infer_auto_device_map(self, module, no_split_module_classes):
        assert no_split_module_classes == ["Layer"]
        assert {p.device.type for p in module.parameters()} == {"meta"}
        return self.device_map

    def dispatch_model(self, module, device_map, force_hooks):
        assert force_hooks
        self.dispatched = device_map
        return module


@pytest.mark.parametrize("given", ["auto", {"embed": "cpu", "layers": "cpu", "": "cpu"}])
def test_a_device_map_is_handed_to_accelerate_module_by_module(folder, monkeypatch, given):
    fake = FakeAccelerate({"": "cpu"})
    monkeypatch.setitem(sys.modules, "accelerate", fake)
    model = load(folder, device_map=given).model
    assert set(fake.dispatched.values()) == {torch.device("cpu")}
    assert {"embed", "norm", "head", "layers.0", "layers.1"} == set(fake.dispatched)
    assert torch.equal(logits(model), logits(load(folder).model))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("balanced", "device_map must be 'auto' or a mapping, got 'balanced'"),
        ({"embed": "cpu"}, "device_map has no device for 'layers.0."),
    ],
)
def test_a_device_map_that_does_not_fit_is_one_line(folder, monkeypatch, given, message):
    monkeypatch.setitem(sys.modules, "accelerate", FakeAccelerate({}))
    with pytest.raises(ModelError) as caught:
        load(folder, device_map=given)
    assert message in one_line(caught)


def test_the_most_precise_name_in_a_device_map_counts(folder, monkeypatch):
    fake = FakeAccelerate({})
    monkeypatch.setitem(sys.modules, "accelerate", fake)
    load(folder, device_map={"": "cpu", "layers": "meta", "layers.1": "cpu"})
    assert {str(place) for name, place in fake.dispatched.items() if "layers.0" in name} == {"meta"}
    assert {str(place) for name, place in fake.dispatched.items() if "layers.1" in name} == {"cpu"}
    assert str(fake.dispatched["head"]) == "cpu"


class Moving(FakeAccelerate):
    """As in accelerate: a module's tensor arguments go to its device before it runs."""

    def dispatch_model(self, module, device_map, force_hooks):
        for name, place in device_map.items():
            module.get_submodule(name).register_forward_pre_hook(self.mover(place))
        return module

    @staticmethod
    def mover(place):
        def move(_, inputs):
            return tuple(x.to(place) if isinstance(x, torch.Tensor) else x for x in inputs)

        return move


ELSEWHERE = {"": "cpu", "layers.1": "meta", "norm": "meta", "head": "meta"}


def test_a_layer_on_another_device_finds_everything_there(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "accelerate", Moving({}))
    model = load(folder, device_map=ELSEWHERE).model
    with torch.no_grad():
        assert model.module(IDS, mask=torch.ones(1, 1, 1, IDS.shape[-1]).bool()).is_meta


def test_a_head_on_another_device_is_given_its_hidden_states_there(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "accelerate", Moving({}))
    module = load(folder, device_map=ELSEWHERE).model.module
    with torch.no_grad():
        assert module.logits(torch.zeros(3, 32)).is_meta


def test_without_a_device_cuda_is_taken_where_it_is(folder, monkeypatch):
    assert load(folder).model.device.type == "cpu" or torch.cuda.is_available()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert usable_device() == Session(folder).device == torch.device("cuda")
    assert load(folder, device="cpu").model.device.type == "cpu"
