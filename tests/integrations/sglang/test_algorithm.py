"""Our algorithm inside the released SGLang's own classes, over a fake model runner."""

from __future__ import annotations

import shlex

import pytest
import torch

from tests.helpers import EOS, MASK, hosted_texts, random_lookup
from tests.paths import ROOT

pytest.importorskip("sglang", reason="SGLang is not installed: make test-engines")
from sglang.srt.dllm.algorithm import algo_name_to_cls
from sglang.srt.dllm.algorithm.base import DllmAlgorithm
from sglang.srt.plugins import load_plugins

from tests.integrations.sglang.sglang_host import (
    BLOCK,
    Runner,
    algorithm,
    batch_of,
    blocks_of,
    first_done_first_out,
    synchronous,
)
from unmask import infill
from unmask.errors import UnmaskError
from unmask.integrations.sglang import NAME

load_plugins()
SWD = "confidence | swd(5) | eb(0.1)"


def ours(fdfo, rule=SWD, **options):
    return algorithm(algo_name_to_cls[NAME], fdfo, rule=rule, **options)


def alone(seed, block, draws=0, rule=SWD):
    return infill(random_lookup(seed, length=BLOCK), block, rule, seed=draws)


def test_the_installed_package_registers_the_algorithm_through_its_entry_point():
    assert issubclass(algo_name_to_cls[NAME], DllmAlgorithm)
    assert NAME == "Unmask"


@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.6, 0.95])
@pytest.mark.parametrize("seed", range(5))
def test_the_equal_rule_is_sglangs_low_confidence_token_for_token(threshold, seed):
    blocks = blocks_of(seed, 6)
    for fdfo, host in ((False, synchronous), (True, first_done_first_out)):
        theirs = algorithm(algo_name_to_cls["LowConfidence"], fdfo, threshold=threshold)
        mine = ours(fdfo, f"confidence | threshold({threshold})", allow_mask=True)
        assert host(mine, seed, blocks) == host(theirs, seed, blocks)


@pytest.mark.parametrize("rule", hosted_texts())
def test_every_rule_decides_as_unmask_alone_in_both_modes(rule):
    seed, blocks = 3, blocks_of(3, 4)
    draws = ours(True, rule)._seeds(batch_of(blocks, [f"request {i}" for i in range(4)]))
    expected = [alone(seed, *each, rule) for each in zip(blocks, draws, strict=True)]
    done, forwards = first_done_first_out(ours(True, rule), seed, blocks, shuffled=True)
    assert done == [result.canvas.tolist() for result in expected]
    assert forwards == [result.nfe + 1 for result in expected]  # one more stores the final KV
    together, most = synchronous(ours(False, rule), seed, blocks)
    assert together == done
    assert most == max(forwards)


def test_swd_is_not_the_rule_without_it():
    blocks = blocks_of(0, 8)
    with_it, _ = first_done_first_out(ours(True, "confidence | swd(5) | top(1)"), 0, blocks)
    without, _ = first_done_first_out(ours(True, "confidence | top(1)"), 0, blocks)
    assert with_it != without


@pytest.mark.parametrize("seed", range(8))
def test_requests_that_come_and_go_in_any_order_do_not_change_each_other(seed):
    blocks = blocks_of(seed, 8)
    expected = [alone(seed, block).canvas.tolist() for block in blocks]
    assert first_done_first_out(ours(True), seed, blocks, shuffled=True)[0] == expected


def test_the_engines_own_logits_are_left_as_they_are():
    runner, mine = Runner(1), ours(True)
    batch = batch_of(blocks_of(1, 3), ["a", "b", "c"])
    before = runner.forward(batch).logits_output.full_logits.clone()
    mine.step(batch, runner.buffer[: len(before)], mine.init_step_state(batch))
    assert torch.equal(runner.buffer[: len(before)], before)


def test_a_block_that_the_engine_began_anew_begins_anew():
    seed, (block,) = 2, [[MASK] * BLOCK]
    mine, runner = ours(True), Runner(2)
    state = [None]
    for _ in range(3):
        batch = batch_of([block], ["a"])
        _, (tokens,), _, state, _ = mine.run(runner, batch, state)
        block = tokens
    assert MASK in block
    block = [MASK] * BLOCK  # the request was retracted and lost its KV
    while MASK in block:
        batch = batch_of([block], ["a"])
        _, (block,), _, state, _ = mine.run(runner, batch, state)
    assert block == alone(seed, [MASK] * BLOCK).canvas.tolist()


def test_a_mask_token_that_the_prompt_holds_stays():
    block = [1, MASK, 2] + [MASK] * (BLOCK - 3)
    prompt = torch.arange(BLOCK)[None] < 3
    mine, runner = ours(False), Runner(4)
    batch = batch_of([block], ["a"], prompt)
    states, done = mine.init_step_state(batch), [False]
    while not all(done):
        done = mine.step(batch, runner.forward(batch).logits_output.full_logits, states)
    tokens = batch.input_ids.tolist()
    assert tokens[:3] == [1, MASK, 2]
    assert MASK not in tokens[3:]


def test_the_end_token_cuts_a_block_short():
    eos = {"eos": "stop", "eos_id": EOS}
    seed, blocks = 5, blocks_of(5, 6)
    done, forwards = first_done_first_out(ours(True, **eos), seed, blocks)
    runner = random_lookup(seed, length=BLOCK)
    expected = [infill(runner, block, SWD, eos="stop") for block in blocks]
    assert done == [result.canvas.tolist() for result in expected]
    assert forwards == [result.nfe + 1 for result in expected]


def test_draws_are_the_same_on_every_rank_and_differ_between_requests():
    block = [MASK] * BLOCK
    hot = {"temperature": 1.5, "rule": "confidence | top(1)"}
    rows = [block] * 4
    first, _ = first_done_first_out(ours(True, **hot), 0, rows)
    assert first == first_done_first_out(ours(True, **hot), 0, rows)[0]
    assert len(set(map(tuple, first))) > 1
    seeded, _ = first_done_first_out(ours(True, seed=7, **hot), 0, rows)
    assert len(set(map(tuple, seeded))) == 1
    assert seeded != first_done_first_out(ours(True, seed=8, **hot), 0, rows)[0]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"rule": "confidance | top(1)"}, "did you mean 'confidence'?"),
        ({"rule": 5}, "rule must be a Rule or its notation, got 5"),
        ({"rule": SWD, "treshold": 1}, "unknown option 'treshold'"),
        ({"rule": SWD, "eos": "last"}, "give eos_id"),
        ({"rule": SWD, "temperature": "hot"}, "temperature must be a number >= 0, got 'hot'"),
        ({"rule": SWD, "imports": "a.py"}, "imports must be a list of files or modules"),
        ({"rule": SWD, "imports": ["a.py"]}, "a.py cannot be imported: FileNotFoundError"),
        ({}, "rule is missing; give for example"),
    ],
)
def test_a_wrong_file_is_one_line_that_names_the_option(options, said):
    with pytest.raises(UnmaskError) as caught:
        algorithm(algo_name_to_cls[NAME], True, **options)
    assert str(caught.value).startswith("--dllm-algorithm-config: ")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_wrong_file_stops_the_launch_before_anything_is_loaded(tmp_path):
    from types import SimpleNamespace

    file = tmp_path / "rule.yaml"
    file.write_text("rule: [")
    with pytest.raises(UnmaskError, match=r"rule\.yaml: while parsing"):
        algo_name_to_cls[NAME].configure_server_args(
            SimpleNamespace(dllm_algorithm_config=str(file))
        )
    file.write_text("rule: confidence | swd(5) | eb(0.1)\nblock_size: 8\n")
    algo_name_to_cls[NAME].configure_server_args(SimpleNamespace(dllm_algorithm_config=str(file)))


def test_the_commands_of_the_page_are_what_sglangs_own_parser_takes():
    from sglang.srt.server_args import prepare_server_args

    page = (ROOT / "docs" / "sglang.md").read_text()
    commands = [line for line in page.splitlines() if line.startswith("python -m sglang")]
    assert len(commands) == 2
    for command in commands:
        server_args = prepare_server_args(shlex.split(command)[3:])
        assert server_args.dllm_algorithm == NAME
        assert server_args.dllm_algorithm_config == "rule.yaml"


def test_the_bench_compares_equal_decisions():
    from bench.sglang import ALGORITHMS, run

    rows = [run(name, options, blocks=1, steps=2) for name, options in ALGORITHMS]
    assert rows[0]["masks_left"] == rows[1]["masks_left"] < 32
    assert all(row["least_ms"] <= row["median_ms"] for row in rows)
