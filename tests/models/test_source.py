"""A model source as JSON, and the model loaded from it."""

from __future__ import annotations

import json
from dataclasses import asdict

from tests.models.makers import make
from unmask import Cached, Guided
from unmask.models.source import ModelSource


def test_a_source_from_json_loads_the_same_model(tmp_path):
    folder = make(tmp_path, "sdar")
    source = ModelSource(str(folder), dtype="bfloat16", mask_id=7, block=8, cache="block")
    kept = json.loads(json.dumps(asdict(source)))
    assert list(kept) == [
        "path",
        "device",
        "dtype",
        "mask_id",
        "block",
        "cache",
        "guidance",
        "family",
        "quantize",
        "pack",
    ]
    model = ModelSource(**kept).load()
    assert isinstance(model, Cached)
    assert (model.spec.mask_id, model.spec.block) == (7, 8)


def test_guidance_goes_around_the_cache(tmp_path):
    source = ModelSource(str(make(tmp_path, "llada")), cache="prefix", guidance=1.5)
    model = source.load(source.describe())
    assert isinstance(model, Guided)
    assert isinstance(model.model, Cached)
