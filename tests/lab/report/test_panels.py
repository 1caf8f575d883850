"""Which trials share a table, and how settings are called."""

from __future__ import annotations

from tests.lab.makers import trial
from tests.lab.stores import summary
from unmask.lab.report.panels import Exam, TrialSetting, exams_of, panels, usual_knobs


def rules(rules):
    return [parts.rule for parts in rules]


def test_a_panel_holds_one_setting_and_one_family_of_selections():
    drawn = panels(
        [
            summary("1", rule="confidence | eb(0.1)"),
            summary("1", rule="confidence | eb(0.1)", task="code"),
            summary("1", rule="confidence | top(1)"),
            summary("1", rule="confidence | eb(0.1)", block=16),
            summary("1", rule="confidence | eb(0.1)", eos="suppress"),
            summary("1", rule="confidence | eb(0.1)", weights="others"),
        ],
        "w",
    )
    assert [(p.setting.block, p.setting.eos, p.family, len(p.summaries)) for p in drawn] == [
        (None, "keep", "eb", 2),
        (None, "keep", "top", 1),
        (None, "suppress", "eb", 1),
        (16, "keep", "eb", 1),
    ]


def test_every_option_of_decoding_makes_a_setting_of_its_own():
    options = [{}, {"guidance": 1.5}, {"guidance": 2.0}, {"history": 64}, {"tempered": True}]
    every = panels([summary("1", **option) for option in options], "w")
    assert [panel.setting.words() for panel in every] == [
        "full window",
        "full window, guidance 1.5",
        "full window, guidance 2.0",
        "full window, history 64",
        "full window, tempered True",
    ]


def test_lengths_are_columns_of_one_table():
    summaries = [summary("1", length=length) for length in (256, 512)]
    (panel,) = panels(summaries, "w")
    assert [exam.words(panel.exams) for exam in panel.exams] == [
        "words, 256 tokens",
        "words, 512 tokens",
    ]


def test_the_papers_tasks_come_first_in_its_order():
    summaries = [summary("1", task=task) for task in ("words", "math500", "gsm8k", "humaneval")]
    assert [exam.task for exam in exams_of(summaries)] == ["humaneval", "gsm8k", "math500", "words"]


def test_a_preset_or_version_is_said_where_there_are_two():
    exams = [Exam("words", 1, "own", 32), Exam("words", 2, "paper", 32), Exam("code", 1, "own", 32)]
    assert [exam.words(exams) for exam in exams] == [
        "words, 32 tokens, own, version 1",
        "words, 32 tokens, paper, version 2",
        "code, 32 tokens",
    ]


def test_a_setting_says_what_is_unusual_and_what_differs():
    plain, other = (
        TrialSetting.of(trial()),
        TrialSetting.of(trial(eos="suppress", dtype="bfloat16")),
    )
    assert plain.words() == "full window"
    assert other.words() == "full window, EOS suppressed"
    assert plain.words([plain, other]) == "full window, EOS kept, float32"
    cached = TrialSetting.of(trial(block=32, cache="dual", seed=3, temperature=0.2))
    assert cached.words() == "blocks of 32, dual cache, temperature 0.2, seed 3"


def test_the_main_table_has_the_usual_knob_and_the_sweep_the_others():
    texts = ("confidence | eb({})", "confidence | swd(5) | eb({})")
    summaries = [summary("1", rule=t.format(g)) for t in texts for g in (0.05, 0.1, 0.5)]
    main, swept = panels(summaries, "w")[0].split()
    assert rules(main) == ["confidence | eb(0.1)", "confidence | swd(5) | eb(0.1)"]
    assert len(swept) == 4


def test_thresholds_that_differ_by_lam_stand_in_one_table():
    texts = ["entropy | threshold(-0.4)", "entropy | swd(1) | threshold(-0.6)"]
    main, swept = panels([summary("1", rule=text) for text in texts], "w")[0].split()
    assert (rules(main), swept) == (texts, [])


def test_without_the_papers_knob_the_commonest_stands_for_a_selection():
    texts = ["confidence | eb(2)", "confidence | eb(0.5)", "margin | eb(0.5)"]
    assert usual_knobs([summary("1", rule=text) for text in texts]) == {"eb": "0.5"}
