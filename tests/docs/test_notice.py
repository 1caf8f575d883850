"""NOTICE names every project that prompts, grading rules and golden cases come from."""

from __future__ import annotations

import json

from tests.paths import ROOT
from unmask.lab.benchmarks import BENCHMARKS

NOTICE = (ROOT / "NOTICE").read_text()


def test_every_project_of_the_golden_cases_is_named():
    projects = set()
    for file in (ROOT / "tests/golden").glob("decoders*/*.jsonl"):
        for line in file.read_text().splitlines():
            upstream = json.loads(line).get("upstream") or {}
            projects |= {str(upstream["repo"]).split()[0]} if "repo" in upstream else set()
    assert len(projects) > 5
    assert not [project for project in projects if project not in NOTICE]


def test_every_source_of_a_prompt_is_named_or_our_own():
    known = ("DAEDAL", "OpenCompass", "lm-eval", "Dream", "unmask")
    sources = {preset.source for bench in BENCHMARKS.values() for preset in bench.presets.values()}
    assert len(sources) > 5
    for source in sources:
        named = [name for name in known if name in source]
        assert named, source
        assert all(name in NOTICE for name in named), source
