"""Exact ties: shown with a proof, and never an excuse for another difference."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.helpers import canvas_of, logits_of
from tests.paths import ROOT
from unmask import ModelSpec
from unmask.conformance import Report, run
from unmask.conformance.forwards import real_prompts, useful_forwards, wanted_answer
from unmask.conformance.models import run_model
from unmask.models.load import load
from unmask.models.toys.lookup import LookupDenoiser

DECODERS, MODELS = ROOT / "tests" / "golden" / "decoders", ROOT / "tests" / "golden" / "models"
MASK, LENGTH = 60, 32
TWINS = (25, 30)  # positions that the prompt does not reach: equal tables give equal scores


FINE = 1 << 12  # the tables are made finer by this, to 2^-24, which float32 rounds off


@pytest.fixture
def toy(tmp_path):
    """A folder whose denoiser has two equal and very sure positions; the second less by `less`.

    The positions `near` come next: each is surer than the one before it by 2^-24 of a logit.
    """

    def make(less=0, near=()):
        with np.load(DECODERS / "denoiser_b.npz") as stored:
            tables = {name: stored[name].astype(np.int64) * FINE for name in stored.files}
        place, one = tables["P_q"], int(tables["denom"])
        place[TWINS[0], 7] = 23 * one
        place[TWINS[1]] = place[TWINS[0]]
        for more, position in enumerate(near):
            place[position] = place[TWINS[0]]
            place[position, 7] += more - one
        place[TWINS[1], 7] -= less
        np.savez(tmp_path / "denoiser_t.npz", **tables)
        return tmp_path

    return make


def static_case(folder, highest_first):
    """One token a step, the likeliest; ties by position. Written without the decoder under test."""
    model = LookupDenoiser.load(folder / "denoiser_t.npz", ModelSpec(MASK, 61, 59))
    prompt = json.loads((DECODERS / "prompts.json").read_text())["p0"]
    ids, steps = [*prompt, *[MASK] * LENGTH], []
    while MASK in ids:
        odds = logits_of(model, canvas_of(ids, mask=MASK))[0].softmax(-1)
        best = odds.max(-1)
        masked = [i for i, token in enumerate(ids) if token == MASK]
        order = sorted(masked, key=lambda i: (-float(best.values[i]), -i if highest_first else i))
        ids[order[0]] = int(best.indices[order[0]])
        steps.append({"pos": [order[0]], "tok": [ids[order[0]]]})
    config = {"decoder": "llada_static", "steps": LENGTH, "gen_length": LENGTH}
    config |= {"block_length": LENGTH, "temperature": 0.0}
    case = {"id": "llada/t/p0/static", "denoiser": "t", "config": config, "prompt": prompt}
    return {**case, "final_ids": ids, "steps": steps}


def outcomes(folder, case):
    (folder / "upstream_llada.jsonl").write_text(json.dumps(case))
    return run(folder)


def test_another_order_among_equal_scores_is_a_tie_with_its_proof(toy):
    folder = toy()
    report = outcomes(folder, static_case(folder, highest_first=True))
    assert (report.count("passed"), report.count("failed"), report.count("tie")) == (0, 0, 2)
    for outcome in report.outcomes:
        proof = (
            "row 0, step 0: positions [30] and [25] have exactly the same score in float64, 0.99"
        )
        assert outcome.reason.startswith(proof)
        assert outcome.reason.endswith("the first, this build the second; all else agrees")
    assert list(report.lines())[-1] == "0 passed, 0 failed"
    assert outcomes(folder, static_case(folder, highest_first=False)).count("passed") == 2


def test_scores_that_are_nearly_equal_are_no_tie(toy):
    folder = toy()
    case = static_case(folder, highest_first=True)
    toy(less=1)  # equal in float32, not in float64
    report = outcomes(folder, case)
    assert (report.count("failed"), report.count("tie")) == (2, 0)
    assert "step 0: expected {30: 7}, got {25: 7}" in report.outcomes[0].reason


def test_a_tie_does_not_excuse_another_difference(toy):
    folder = toy()

    def change_token(case):
        case["steps"][9]["tok"][0] ^= 1
        case["final_ids"][case["steps"][9]["pos"][0]] ^= 1

    def swap_later_steps(case):
        case["steps"][9], case["steps"][10] = case["steps"][10], case["steps"][9]

    def take_both_at_once(case):
        first = case["steps"].pop(0)
        case["steps"][0] = {"pos": [25, 30], "tok": [*case["steps"][0]["tok"], *first["tok"]]}

    def drop_the_last_step(case):
        case["steps"].pop()

    for change in (change_token, swap_later_steps, take_both_at_once, drop_the_last_step):
        case = static_case(folder, highest_first=True)
        change(case)
        report = outcomes(folder, case)
        assert (report.count("failed"), report.count("tie")) == (2, 0), change.__name__


def test_a_tie_does_not_excuse_a_difference_of_the_tested_precision(toy):
    folder = toy(near=(38, 44))  # equal in float32, so that it takes 38 where float64 takes 44
    report = outcomes(folder, static_case(folder, highest_first=True))
    assert [outcome.status for outcome in report.outcomes] == ["tie", "failed"]


def dream_case(folder, top_p):
    """Dream's sampler by entropy under top-p, two tokens in each of 4 steps; ties from the right.

    The last step takes what is left.
    """
    model = load(folder, dtype="float32").model
    prompt, steps = [7, 20, 90, 33, 51], 4
    ids, inputs = [*prompt, *[model.spec.mask_id] * 8], []
    times = torch.linspace(1, 0.001, steps + 1)
    for step in range(steps):
        inputs.append([list(ids)])
        logits = model.module.logits(model.module(torch.tensor([ids])))[0]
        shifted = torch.cat([logits[:1], logits[:-1]])
        odds, order = shifted.softmax(-1).sort(descending=True)
        odds = torch.where(odds.cumsum(-1) - odds <= top_p, odds, 0.0)
        odds /= odds.sum(-1, keepdim=True)
        entropy = -(odds * (odds + 1e-10).log()).sum(-1)
        masked = [i for i, token in enumerate(ids) if token == model.spec.mask_id]
        share = int(len(masked) * (1 - times[step + 1] / times[step]))
        count = len(masked) if step == steps - 1 else share
        for place in sorted(masked, key=lambda i: (float(entropy[i]), -i))[:count]:
            ids[place] = int(order[place, 0])
    params = {"max_new_tokens": 8, "steps": steps, "temperature": 0.0, "top_p": top_p}
    params |= {"top_k": None, "alg_temp": None, "eps": 0.001, "alg": "entropy"}
    case = {"case": "topp", "source": "Dream", "params": params, "mask_id": model.spec.mask_id}
    return {**case, "prompt_ids": [prompt], "output_ids": [ids], "forward_inputs": inputs}


@torch.no_grad()
def test_entropies_of_zero_under_top_p_are_ties_of_a_checkpoint(tmp_path):
    ignored = shutil.ignore_patterns("golden_*")
    folder = Path(shutil.copytree(MODELS / "dream-tiny", tmp_path / "dream", ignore=ignored))

    def outcome(case):
        (folder / "golden_generate.json").write_text(json.dumps([case]))
        report = Report()
        run_model(folder, report)
        return report.outcomes[-1]

    assert outcome(dream_case(folder, 1.0)).status == "passed"
    case = dream_case(folder, 0.02)
    tie = outcome(case)
    assert tie.status == "tie"
    assert "have exactly the same score in float64, 0.0; upstream took the first" in tie.reason
    case["output_ids"][0][-1] ^= 1
    assert outcome(case).status == "failed"


def test_the_forwards_of_every_golden_generation_write_its_answer():
    for folder in sorted(path for path in MODELS.iterdir() if path.is_dir()):
        meta = json.loads((folder / "golden_meta.json").read_text())
        for case in json.loads((folder / "golden_generate.json").read_text()):
            block = 1 if folder.name.startswith(("sdar", "llada2")) else None
            spec = ModelSpec(case.get("mask_id", meta.get("mask_id")), 512, block=block)
            for row, writes in enumerate(useful_forwards(case, spec)):
                prompt, answer = real_prompts(case)[row], wanted_answer(case, row)
                together = {at: token for written in writes for at, token in written.items()}
                assert sum(map(len, writes)) == len(together), case["case"]
                known = [together.get(len(prompt) + i, token) for i, token in enumerate(answer)]
                assert known == answer, case["case"]
                assert set(range(len(prompt), len(prompt) + len(answer))) <= set(together)
