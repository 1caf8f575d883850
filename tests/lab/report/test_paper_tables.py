"""The paper's figures in the tables of a report: beside which rows, and with which remarks."""

from __future__ import annotations

from tests.lab.page_reader import read_page
from tests.lab.stores import summary
from unmask.lab.paper import LENGTHS, inconsistencies
from unmask.lab.report.rule_parts import parts_of

BASE, SWD = "confidence | eb(0.1)", "confidence | swd(5) | eb(0.1)"
LLADA = {"model": "GSAI-ML/LLaDA-8B-Instruct", "preset": "paper"}


def test_the_papers_figures_stand_beside_ours():
    usual = {**LLADA, "length": 512}
    swd = "confidence | swd(5, start=uniform) | eb(0.1)"
    summaries = [summary("1000", rule=rule, task="math500", **usual) for rule in (BASE, swd)]
    seen = read_page(summaries)
    table = seen.table("EB-Sampler (paper: table1, llada-history)")
    assert table.head[1][-2:] == ["paper acc", "paper NFE"]
    assert [row[-2:] for row in table.rows] == [
        ["19.6", "226.6"],
        ["26.2 but 36.0 in llada-history", "205.7"],
    ]
    assert "the paper's llada-8b-instruct, to judge by its name" in seen.text
    assert (
        "The paper used all examples (humaneval 164, mbpp 500, gsm8k 1319, math500 500)"
        in seen.text
    )
    assert (2, "Contradictions in the paper") in seen.headings
    assert all(text in seen.text for text in inconsistencies())


def test_averages_of_the_four_tasks_stand_beside_the_papers():
    rules = {"margin | eb(0.1)": "1100", "margin | swd(1, start=uniform) | eb(0.1)": "1110"}
    summaries = [
        summary(pattern, rule=rule, task=task, length=length, block=32, **LLADA)
        for rule, pattern in rules.items()
        for task, length in LENGTHS.items()
    ]
    seen = read_page(summaries)
    table = seen.table("EB-Sampler (paper: llada-block32)")
    assert table.head[0][-1] == "average of the four tasks"
    assert table.head[1][-3:] == ["acc %", "NFE", "paper acc"]
    assert [row[-3:] for row in table.rows] == [
        ["50.0", "16.0", "50.05 (1)"],
        ["75.0", "16.0", "50.00"],
    ]
    assert "(1) The paper prints 47.55, a misprint: its four figures average 50.05." in seen.text
    three = read_page([each for each in summaries if each.trial.task != "mbpp"])
    assert "average of the four tasks" not in three.text


def test_an_average_names_the_table_that_gives_another():
    summaries = [
        summary("10", rule=SWD, task=task, length=length, **LLADA)
        for task, length in LENGTHS.items()
    ]
    (row,) = (
        read_page(summaries).table("EB-Sampler (paper: table1, efficiency, llada-history)").rows
    )
    assert row[-1] == "41.08 but 43.53 in llada-history"


def test_another_reading_has_the_papers_figures_and_is_named():
    usual = {**LLADA, "task": "math500", "length": 512}
    readings = ("swd(5, start=single)", "swd(5, start=skip)", "swd(5, start=uniform)")
    rules = [f"confidence | {swd} | eb(0.1)" for swd in readings]
    rules += [
        f"entropy | swd(5, start=uniform, form={form}) | eb(0.1)" for form in ("literal", "signed")
    ]
    bases = [BASE, "entropy | eb(0.1)"]
    seen = read_page([summary("10", rule=rule, **usual) for rule in (*rules, *bases)])
    figures = {
        row[0]: row[-2] for row in seen.table("EB-Sampler (paper: table1, llada-history)").rows
    }
    assert [figures.pop(rule) for rule in bases] == ["19.6", "19.6"]
    assert sorted(figures.values()) == [
        "20.4",
        "20.4 (3)",
        "26.2 but 36.0 in llada-history",
        "26.2 but 36.0 in llada-history (1)",
        "26.2 but 36.0 in llada-history (2)",
    ]
    assert figures[parts_of(rules[3]).rule] == "20.4"  # Eq. 8 as printed
    assert figures[parts_of(rules[2]).rule] == "26.2 but 36.0 in llada-history"  # Algorithm 1
    for text in ("start=single is another reading: Algorithm 1 as printed is start=uniform.",
                 "form=signed is another reading: Eq. 8 as printed is form=literal."):  # fmt: skip
        assert text in seen.text


def test_a_misprinted_nfe_is_shown_as_one():
    usual = {**LLADA, "task": "gsm8k", "length": 512}
    seen = read_page([summary("10", rule="confidence | swd(5, start=uniform) | top(1)", **usual)])
    (row,) = seen.table("Top-k (paper: llada-top1)").rows
    assert row[-2:] == ["60.7", "256.0 (2)"]
    assert "The printed NFE 256 is a misprint: one token per forward takes 512" in seen.text


def test_another_protocol_says_why_the_paper_is_not_shown():
    usual = {**LLADA, "length": 512}
    seen = read_page([summary("1000", rule=BASE, task="math500", eos="suppress", **usual)])
    assert "The paper's figures are not shown: the paper's eos is keep, ours suppress." in seen.text


def test_the_embedded_model_has_no_published_counterpart():
    seen = read_page([summary("1000", rule=rule) for rule in (BASE, SWD)])
    assert "unmask's own small model; the paper has no figures for it" in seen.text
    assert "paper acc" not in seen.text
    assert not any(text in seen.text for text in inconsistencies())


def test_the_papers_efficiency_stands_beside_timed_runs_alone():
    usual = {**LLADA, "task": "humaneval", "rule": SWD}
    timed = summary("10", length=512, timing="batch size 1, an A100", **usual)
    other = summary("10", length=512, **usual)
    title = "GSAI-ML/LLaDA-8B-Instruct: humaneval, 512 tokens"
    theirs = "The paper's efficiency table: LLaDA on HumanEval, 512 tokens"
    seen = read_page([timed, other])
    captions = [table.caption for table in seen.tables]
    assert captions[-3:] == [f"{title}, timed: batch size 1, an A100", theirs, title]
    assert [row[0] for row in seen.table(captions[-3]).rows] == [f"{SWD} full window"]
    assert [row[:3] for row in seen.table(theirs).rows] == [
        ["eb", "15.9", "149.2"],
        ["swd", "28.0", "82.8"],
    ]
    assert "These runs were not timed" in seen.text
    alone = read_page([other])
    assert theirs not in [table.caption for table in alone.tables]
    assert "These runs were not timed" not in read_page([timed]).text


def test_a_length_that_the_papers_efficiency_table_lacks_has_no_empty_table():
    short = {**LLADA, "task": "humaneval", "rule": SWD, "length": 128}
    captions = [t.caption for t in read_page([summary("10", timing="an A100", **short)]).tables]
    assert captions[-1] == "GSAI-ML/LLaDA-8B-Instruct: humaneval, 128 tokens, timed: an A100"


def test_timed_trials_are_compared_among_themselves():
    timed = [summary("10", rule=rule, timing="batch size 1") for rule in (BASE, SWD)]
    seen = read_page([*timed, summary("10", rule=SWD)])
    assert (3, "embedded: full window, timed") in seen.headings
    assert (3, "Where SWD helps (0 of 1)") in seen.headings
    assert f"words: {SWD}, full window: {BASE} was not run in the same setting" in seen.text


def test_headings_name_the_machine_of_timed_trials_only_where_there_are_several():
    seen = read_page([summary("10", rule=BASE, timing=machine) for machine in ("an A100", "a T4")])
    for machine in ("an A100", "a T4"):
        assert (3, f"embedded: full window, timed: {machine}") in seen.headings
