"""Answers of a model with random weights are valid JSON under real-world schemas."""

from __future__ import annotations

import json

from bench.common import Shape, llada_shaped
from bench.schemas import SCHEMAS
from bench.structured import fits, random_answers, selections
from unmask.languages.build import build


def test_every_selection_writes_valid_json_for_ten_schemas():
    pieces = json.dumps(list(SCHEMAS.values())).split()  # words that the answers need, and others
    words = [
        *(bytes([byte]) for byte in range(256)),
        *map(str.encode, sorted({*pieces})),
        None,
        None,
    ]
    model = llada_shaped(Shape(layers=1, hidden=64, vocabulary=len(words)))
    rules, texts = selections(), set()
    assert len(SCHEMAS) == 10
    for place, (name, schema) in enumerate(SCHEMAS.items()):
        language = build(f"schema:{json.dumps(schema)}", words)
        for number in (place, place + 10):  # every rule at least once over the ten schemas
            rule = rules[number % len(rules)]
            for text in random_answers(model, words, language, rule, number, 1):
                assert fits(text, schema), (name, rule, text)
                texts.add(text)
    assert len(rules) <= 20
    assert len(texts) > 15
    assert not fits("{}", SCHEMAS["user"])
    assert not fits("{", SCHEMAS["user"])
