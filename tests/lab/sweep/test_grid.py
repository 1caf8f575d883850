"""Sweeps from files and options."""

from __future__ import annotations

from dataclasses import replace

import pytest

from unmask.decoding.options import OPTIONS, DecodingOptions
from unmask.errors import UnmaskError
from unmask.lab.paper import LENGTHS, published
from unmask.lab.report.rule_parts import parts_of
from unmask.lab.sweep.grid import named_sweeps, read_sweep, spelled_out, sweep_of
from unmask.rules.rule import Rule

SMALL = {"task": "words", "rule": "confidence | swd({0,5}) | eb(0.1)"}


def sweep(table, **changes):
    return sweep_of(table, "mine", changes, "mine.toml")


def test_a_sweep_is_every_combination():
    grid = sweep({**SMALL, "block": ["full", 16], "seed": [0, 1], "task": ["words", "code"]})
    assert len(grid.settings) == 2 * 2 * 2 * 2
    assert len({(s.task, s.options) for s in grid.settings}) == 16


def test_every_option_can_be_swept():
    values = {
        "length": [8, 16], "block": ["full", 8], "eos": ["keep", "stop"], "steps": [9, 20],
        "history": [4, 8], "temperature": [0, 0.5], "top_p": [0.9, 1], "top_k": [0, 5],
        "tempered": [True, False], "seed": [0, 1], "cache": ["none", "prefix"],
        "guidance": [1.0, 2], "dtype": ["float32", "bfloat16"], "mask_id": [1, 2],
        "family": ["llada", "dream"], "sub_block": [2, 4],
        "template_args": ['{"a": 1}', '{"a": 2}'],
        "longest": [32, 64], "language": ["json", "regex:[0-9]+"],
        "quantize": ["int8", "int4"], "pack": [True, False],
    }  # fmt: skip
    assert set(values) == set(OPTIONS) - {"rule"}
    for name, pair in values.items():
        settings = sweep({**SMALL, name: pair}).settings
        assert [getattr(s.options, name) for s in settings] == [pair[0]] * 2 + [pair[1]] * 2
        assert [s.options for s in settings] == [
            DecodingOptions.read(s.options.given()) for s in settings
        ]


def test_swd_of_zero_is_the_plain_rule():
    assert spelled_out("confidence | swd({0,5}) | eb(0.1)") == [
        "confidence | eb(0.1)",
        "confidence | swd(5) | eb(0.1)",
    ]


def test_grids_add_up_and_share_what_stands_above_them():
    grid = sweep({"task": "words", "grid": [{"rule": "confidence | top(1)"}, {**SMALL, "seed": 3}]})
    assert [(s.options.rule, s.options.seed) for s in grid.settings] == [
        ("confidence | top(1)", None),
        ("confidence | eb(0.1)", 3),
        ("confidence | swd(5) | eb(0.1)", 3),
    ]


def test_a_setting_of_two_grids_is_run_once():
    assert len(sweep({"grid": [SMALL, SMALL]}).settings) == 2


def test_options_replace_what_the_file_says():
    grid = sweep({**SMALL, "limit": 100}, task=["code"], limit=5)
    assert {(s.task, s.limit) for s in grid.settings} == {("code", 5)}


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({**SMALL, "rul": 1}, "unknown key 'rul'; did you mean 'rule'?"),
        ({"rule": "confidence | top(1)"}, "a sweep needs a task"),
        ({"task": "words"}, "a sweep needs a rule"),
        ({**SMALL, "block": 0}, "block must be a whole number >= 1 or 'full', got 0"),
        ({**SMALL, "block": True}, "block must be"),
        ({**SMALL, "length": "long"}, "length must be a whole number >= 1 or 'auto', got 'long'"),
        ({**SMALL, "eos": ["keep", "drop"]}, "eos must be one of keep, suppress"),
        ({**SMALL, "cache": "big"}, "cache must be one of none, "),
        ({**SMALL, "temperature": -1}, "temperature must be a number >= 0"),
        ({**SMALL, "task": 3}, "task must be a text, got 3"),
        ({**SMALL, "grid": {}}, r"write \[\[grid\]\] for each grid"),
        ({**SMALL, "rule": "confidence | tpo(1)"}, "did you mean 'top'"),
    ],
)
def test_wrong_values_are_named(table, message):
    with pytest.raises(UnmaskError, match=message):
        sweep(table)


def test_a_file_is_read(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('task = "words"\nrule = "confidence | top({1,2})"\n')
    grid = read_sweep(str(file), {})
    assert (grid.name, len(grid.settings)) == ("mine", 2)


def test_what_is_no_toml_or_no_file_is_said(tmp_path):
    file = tmp_path / "mine.toml"
    with pytest.raises(UnmaskError, match=r"mine\.toml cannot be read"):
        read_sweep(str(file), {})
    file.write_text("task =")
    with pytest.raises(UnmaskError, match=r"mine\.toml is not valid TOML"):
        read_sweep(str(file), {})
    with pytest.raises(UnmaskError, match="did you mean 'paper-table1'"):
        read_sweep("papertable1", {})


@pytest.mark.parametrize("name", named_sweeps())
def test_the_sweeps_of_the_package_can_be_read(name):
    grid = read_sweep(name, {})
    assert grid.about
    assert grid.settings


def test_the_demo_compares_108_rules_and_sweeps_gamma():
    settings = [each for each in read_sweep("demo", {}).settings if each.options.length == 24]
    assert len(settings) == len(set(settings)) == 128
    panels = list(dict.fromkeys((each.options.block, each.options.eos) for each in settings[:108]))
    windows, policies = ("full", 16), ("keep", "suppress")
    assert panels == [(window, policy) for window in windows for policy in policies]
    assert [each.options.rule for each in settings[:6]] == [
        "confidence | eb(0.1)",
        "confidence | swd(1) | eb(0.1)",
        "confidence | swd(5) | eb(0.1)",
        "margin | eb(0.1)",
        "margin | swd(1) | eb(0.1)",
        "margin | swd(5) | eb(0.1)",
    ]
    assert {
        each.options.rule
        for each in settings[:27]
        if "threshold" in each.options.rule and "swd" not in each.options.rule
    } == {
        "confidence | threshold(0.9)",
        "margin | threshold(0.9)",
        "entropy | threshold(-0.4)",
    }
    assert all(each.options.rule.startswith("confidence") for each in settings[108:])


@pytest.mark.parametrize(
    ("table", "sweeps"),
    [
        ("table1", ["paper-table1", "paper-table1-dream"]),
        ("llada-lambda", ["paper-lambda"]),
        ("llada-threshold", ["paper-threshold"]),
        ("llada-top1", ["paper-top1"]),
        ("llada-block32", ["paper-block32"]),
        ("dream-lambda", ["paper-lambda-dream"]),
        ("dream-block32", ["paper-block32-dream"]),
        ("llada-history", ["paper-history"]),
        ("efficiency", ["paper-efficiency"]),
        ("a remark on Dream", ["paper-gamma-dream"]),
    ],
)
def test_the_named_sweeps_hold_every_row_of_the_papers_tables(table, sweeps):
    ours = {
        (
            s.task,
            s.options.rule,
            None if s.options.block == "full" else s.options.block,
            s.options.length or LENGTHS[s.task],
        )
        for name in sweeps
        for s in read_sweep(name, {}).settings
        if s.options.eos is None
    }
    theirs = {
        (p.task, str(Rule.parse(p.rule)), p.block, p.length)
        for p in published()
        if p.table == table
    }
    assert theirs
    assert theirs <= ours


def test_every_table_of_the_paper_has_a_sweep():
    tables = {read_sweep(name, {}).table for name in named_sweeps()}
    assert {p.table for p in published()} - tables == {"a remark on Dream"}  # in paper-gamma-dream


def test_every_sweep_of_a_full_window_has_its_baselines_under_other_eos_policies():
    for name in named_sweeps():
        if not name.startswith("paper-"):
            continue
        settings = read_sweep(name, {}).settings
        bases = [
            each
            for each in settings
            if each.options.block == "full" and "swd" not in each.options.rule
        ]
        assert bases or "block32" in name
        for base in (each for each in bases if each.options.eos is None):
            for eos in ("suppress", "last"):
                assert replace(base, options=replace(base.options, eos=eos)) in settings, name
        kept = {each.options.rule for each in bases if each.options.eos is None}
        assert {each.options.rule for each in bases} == kept


def test_the_figure_of_lam_has_one_range_for_both_windows():
    settings = [e for e in read_sweep("paper-lambda-figure", {}).settings if e.options.eos is None]
    rules = {
        block: [each.options.rule for each in settings if each.options.block == block]
        for block in ("full", 32)
    }
    assert rules["full"] == rules[32]
    lams = [parts_of(rule).lam for rule in rules[32] if rule.startswith("confidence")]
    assert lams == sorted(lams)
    assert (lams[0], lams[-1] > 30, len(lams)) == (0, True, 10)  # beyond the paper's largest


def test_dreams_gamma_curves_are_those_of_lam_30():
    curves = {
        name: [
            parts_of(each.options.rule)
            for each in read_sweep(name, {}).settings
            if each.task == "gsm8k" and each.options.eos is None
        ]
        for name in ("paper-gamma", "paper-gamma-dream")
    }
    lams = [{parts.lam for parts in each} for each in curves.values()]
    assert lams == [{0, 1, 5}, {0, 30}]
    first, second = ({parts.knob for parts in each} for each in curves.values())
    assert first == second


def test_table_1_says_what_the_paper_says():
    (figure,) = [
        p
        for p in published()
        if (p.table, p.model, p.task, p.rule)
        == ("table1", "llada-8b-instruct", "gsm8k", "confidence | swd(5) | eb(0.1)")
    ]
    assert figure.accuracy == 67.3


def test_a_grid_beyond_the_limit_is_refused_with_the_count():
    with pytest.raises(UnmaskError, match=r"mine.toml: the grid has 200000 trials, more than"):
        sweep({**SMALL, "seed": list(range(1000)), "length": list(range(1, 101))})


def test_deep_lists_and_huge_numbers_in_a_file_are_one_line(tmp_path):
    file = tmp_path / "mine.toml"
    for text in (f"seed = {'[' * 5000}", f"seed = {'9' * 5000}"):
        file.write_text(text)
        with pytest.raises(UnmaskError, match=r"mine\.toml is not valid TOML") as caught:
            read_sweep(str(file), {})
        assert "\n" not in str(caught.value)
