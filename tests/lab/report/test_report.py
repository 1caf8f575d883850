"""The three files of a report: their numbers, their form, and what they refuse to say."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import groupby, pairwise

import pytest

from tests.lab.makers import trial
from tests.lab.page_reader import Reader, read_page
from tests.lab.stores import fill, findings_of, rich, rows_of, solved, summary
from unmask.lab.report import report_of, write_report
from unmask.lab.report.gather import gather
from unmask.lab.report.markdown import markdown
from unmask.lab.summary import Comparison, Summary

BASE, SWD = "confidence | eb(0.1)", "confidence | swd(5) | eb(0.1)"
WORSE, BETTER = "1000000000", "1111111111"


def small(**changes):
    """SWD gains on words and loses on code."""
    return {
        trial(rule=BASE, **changes): solved(WORSE, nfe=16),
        trial(rule=SWD, **changes): solved(BETTER, nfe=8),
        trial(rule=BASE, task="code", **changes): solved(BETTER, nfe=4),
        trial(rule=SWD, task="code", **changes): solved(WORSE, nfe=8),
    }


def summaries(trials):
    return [Summary.of(each, rows_of(outcomes)) for each, outcomes in trials.items()]


def read_markdown(summaries, baseline=None):
    return markdown(report_of(findings_of(summaries, baseline), []))


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The files of one report with every kind of plot, twice, and its store."""
    folder = tmp_path_factory.mktemp("report")
    trials = small()
    for lam in ("", "swd(1) | ", "swd(5) | "):
        for gamma in ("0.05", "0.5"):
            rule = f"confidence | {lam}eb({gamma})"
            trials[trial(rule=rule)] = solved(WORSE, nfe=round(4 / float(gamma)))
    trials[trial(rule="confidence | swd(1) | eb(0.1)")] = solved(WORSE)
    trials[trial(rule="confidence | top(1)")] = solved(BETTER, nfe=32)
    store = fill(folder / "some.sqlite", trials)
    for name in ("one", "two"):
        list(write_report(store, folder / name))
    return folder


# Numbers


def test_the_json_holds_what_the_summaries_say(written):
    record = json.loads((written / "one" / "report.json").read_text())
    stored = gather(written / "some.sqlite").summaries
    assert [each["key"] for each in record["trials"]] == [each.trial.key for each in stored]
    for each, said in zip(stored, record["trials"], strict=True):
        assert said.items() >= json.loads(json.dumps(each.record())).items()


def test_the_json_holds_every_comparison(written):
    record = json.loads((written / "one" / "report.json").read_text())
    by_key = {each.trial.key: each for each in gather(written / "some.sqlite").summaries}
    assert len(record["comparisons"]) == 10
    for said in record["comparisons"]:
        pair = Comparison(by_key[said["baseline"]], by_key[said["trial"]]).accuracy()
        assert said["acc"]["difference"] == pair.difference
        assert said["acc"]["interval"] == list(pair.interval)
        assert said["acc"]["p"] == pair.p


def test_a_cell_of_the_page_has_accuracy_interval_and_difference():
    table = read_page(summaries(small())).table("EB-Sampler")
    assert table.head == [
        ["rule", "code, 32 tokens, n 10", "words, 32 tokens, n 10"],
        ["acc %", "NFE", "vs lam 0"] * 2,
    ]
    low, high = (100 * end for end in summary(WORSE).interval())
    pair = Comparison(summary(WORSE), summary(BETTER)).accuracy()
    ends = [f"{100 * end:+.1f}" for end in pair.interval]
    assert table.rows[0][4:6] == [f"10.0 [{low:.1f}, {high:.1f}]", "16.0"]
    assert table.rows[1][0] == SWD
    assert table.rows[1][4:] == [
        "100.0 [72.2, 100.0]",
        "8.0",
        f"▲ +90.0* [{ends[0]}, {ends[1]}] p {pair.p:.3f}",
    ]
    assert table.rows[1][3].startswith("▼ -90.0*")


def test_the_compatible_verdict_has_a_column_where_it_differs():
    outcomes = [(True, False, {}), (True, True, {}), (False, True, {}), (True, True, {})]
    table = read_page([Summary.of(trial(), rows_of(outcomes))]).table("Top-k")
    assert table.head[1] == ["acc %", "compat %", "NFE"]
    assert [cell.split()[0] for cell in table.rows[0][1:3]] == ["75.0", "75.0"]
    outcomes[0] = (False, False, {})
    table = read_page([Summary.of(trial(), rows_of(outcomes))]).table("Top-k")
    assert [cell.split()[0] for cell in table.rows[0][1:3]] == ["50.0", "75.0"]


def test_markdown_has_the_same_cells_as_the_page():
    results = summaries(small())
    lines = read_markdown(results).splitlines()
    rows = [line[2:-2].replace(",", "") for line in lines if line[:2] == "| "]
    cells = {tuple(re.split(r" (?<!\\)\| ", row)) for row in rows}
    for table in read_page(results).tables:
        for row in table.rows:
            plain = [cell.lstrip("▲▼ ").replace(",", "") for cell in row]
            marked = [
                re.sub(r"([*|])", r"\\\1", cell).replace("<", "&lt;").replace(">", "&gt;")
                for cell in plain
            ]
            assert tuple(marked) in cells


def test_gains_and_losses_are_two_lists_of_one_form():
    seen = read_page(summaries(small()))
    helps, loses = (seen.table(f"{kind}, largest first") for kind in ("Gains", "Losses"))
    assert helps.head == loses.head
    assert [row[0] for row in helps.rows] == [f"{SWD} words, 32 tokens, full window"]
    assert [row[0] for row in loses.rows] == [f"{SWD} code, 32 tokens, full window"]
    assert helps.rows[0][1:] == [
        "10",
        "▲ +90.0* [+70.0, +100.0]",
        "10.0 → 100.0",
        "p 0.004 Holm 0.008",
        "9 : 0",
        "16.0 → 8.0",
    ]
    assert (3, "Where SWD loses (1 of 2)") in seen.headings


def test_nothing_lost_is_said_as_loudly():
    trials = {each: rows for each, rows in small().items() if each.task == "words"}
    seen = read_page(summaries(trials))
    assert (3, "Where SWD loses (0 of 1)") in seen.headings
    assert "Nowhere: no comparison has a star." in seen.text


def test_the_number_of_comparisons_and_their_correction_are_said():
    text = " ".join(read_page(summaries(small())).text.split())
    rule = "McNemar's exact p is below 0.05 after Holm's correction for all 2 comparisons of this"
    assert f"A star means: {rule} report." in text
    assert f"* {rule} report. The intervals are not corrected." in text  # under the table
    assert "2 of 2 exclude 0" in text


def test_an_interval_without_0_is_no_star():
    results = [summary("1111100000", rule=BASE), summary("1" * 10, rule=SWD)]  # p 0.0625
    seen = read_page(results)
    assert seen.table("EB-Sampler").rows[1][-1] == "+50.0 [+20.0, +80.0] p 0.062"
    assert (3, "Where SWD helps (0 of 1)") in seen.headings


def test_every_counter_of_a_trial_is_in_its_table():
    counters = {"nfe": 20, "nfe_eos": 5, "tokens": 8, "written": 40, "eos_share": 0.3,
                "cut_off": True, "seconds_model": 3.0, "seconds_decision": 1.0, "seconds_kl": 0.5,
                "seconds_total": 4.0, "memory_mean": 2e9, "memory_peak": 3e9}  # fmt: skip
    result = Summary.of(trial(), rows_of([(True, False, counters), (False, False, counters)]))
    seen = read_page([result])
    every, costs = (table for table in seen.tables if table.caption == "embedded: words, 32 tokens")
    assert every.rows == [
        ["confidence | top(1) full window", "2", "50.0 [9.5, 90.5]", "0.0 [0.0, 65.8]", "20.0",
         "5.0", "2.00", "1.60", "8.0", "30.0", "100.0"]
    ]  # fmt: skip
    assert costs.rows == [
        ["confidence | top(1) full window", "20.0", "3.00", "1.00", "0.500", "4.00", "25.0", "12.5",
         "2.00", "3.00"]
    ]  # fmt: skip


def test_a_trial_that_is_not_comparable_has_a_reason_instead_of_a_difference():
    results = [summary("1111", rule=BASE), summary("11", rule=SWD)]
    seen = read_page(results)
    table = seen.table("EB-Sampler")
    assert table.rows[1] == [SWD, "100.0 [34.2, 100.0] n 2", "16.0", "– (1)"]
    reason = "2 examples, such as 002, were decoded in one of them only"
    assert f"(1) Not compared: {reason}." in seen.text
    assert f"words: {SWD}, full window: {reason}" in seen.text
    assert reason in read_markdown(results)


def test_a_baseline_of_choice_is_named():
    results = [summary(WORSE, rule=BASE), summary(BETTER, rule="margin | eb(0.1)")]
    seen = read_page(results, BASE)
    assert (3, "Where another rule helps (1 of 1)") in seen.headings
    head = seen.table("Gains, largest first").rows[0][0]
    assert head == f"margin | eb(0.1) words, 32 tokens, full window, against {BASE}"


def test_a_full_window_shows_the_baseline_with_eos_suppressed():
    trials = small()
    trials[trial(rule=BASE, eos="suppress")] = solved(BETTER)
    seen = read_page(summaries(trials))
    rows = seen.table("EB-Sampler").rows
    assert rows[-1][0] == f"{BASE} EOS suppressed, compared with EOS kept"
    assert rows[-1][4].startswith("100.0")
    assert rows[-1][6].startswith("▲ +90.0*")
    assert "No trial of this setting ranks EOS last." in seen.text
    trials[trial(rule=BASE, eos="last")] = solved(WORSE)
    seen = read_page(summaries(trials))
    rows = seen.table("EB-Sampler").rows
    assert rows[-1][0] == f"{BASE} EOS last, compared with EOS kept"
    assert rows[-1][6].startswith("+0.0")
    assert "No trial of this setting" not in seen.text


def test_a_full_window_without_eos_suppressed_carries_a_warning():
    assert (
        "No trial of this setting suppresses EOS or ranks EOS last."
        in read_page(summaries(small())).text
    )
    blocks = summaries(small(block=16))
    assert "No trial of this setting" not in read_page(blocks).text


# Form


def test_the_same_store_gives_the_same_bytes(written):
    names = sorted(file.name for file in (written / "one").iterdir())
    assert {"report.md", "report.json", "report.html"} < set(names)
    assert {name.split("-")[0] for name in names if name.endswith(".png")} == {
        "rules",
        "speed",
        "lam",
        "selections",
    }
    for name in names:
        assert (written / "one" / name).read_bytes() == (written / "two" / name).read_bytes()


def test_the_page_needs_nothing_from_elsewhere(written):
    text = (written / "one" / "report.html").read_text()
    seen = Reader(text)
    local = re.compile(r"(#[\w.-]+|[\w-]+\.(svg|png))$")
    for tag, attributes in seen.tags:
        assert tag not in ("script", "link", "img", "iframe", "object")
        for name in ("href", "src", "xlink:href"):
            assert local.match(attributes.get(name, "#none"))
    assert "@import" not in text
    assert not re.findall(r"url\((?!#)", text)


def test_every_link_of_the_page_leads_somewhere(written):
    seen = Reader((written / "one" / "report.html").read_text())
    ids = [attributes["id"] for _, attributes in seen.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    for _, attributes in seen.tags:
        for name in ("href", "xlink:href"):
            target = attributes.get(name, "")
            if target.startswith("#"):
                assert target[1:] in ids
            elif target:
                assert (written / "one" / target).is_file()


def test_headings_step_down_one_at_a_time_and_headers_have_a_scope(written):
    seen = Reader((written / "one" / "report.html").read_text())
    levels = [level for level, _ in seen.headings]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    scopes = [attributes.get("scope") for tag, attributes in seen.tags if tag == "th"]
    assert set(scopes) <= {"col", "row", "colgroup"}


def test_every_plot_has_a_text_for_who_does_not_see_it(written):
    seen = Reader((written / "one" / "report.html").read_text())
    plots = [attributes for tag, attributes in seen.tags if tag == "svg"]
    assert len(plots) == len(list((written / "one").glob("*.svg")))
    ids = {attributes.get("id") for _, attributes in seen.tags}
    assert all(plot["role"] == "img" and plot["aria-labelledby"] in ids for plot in plots)
    assert "lam 5: 10.0 to 100.0%" in seen.text


def test_light_and_dark_follow_the_reader(written):
    text = (written / "one" / "report.html").read_text()
    assert "@media (prefers-color-scheme: dark)" in text
    drawings = "".join(re.findall(r"<svg.*?</svg>", text, re.DOTALL))
    assert "var(--plot-1)" in drawings
    assert "#0072b2" not in drawings.lower()


def test_hostile_names_are_shown_and_never_run(tmp_path):
    bad = "<script>alert(1)</script>\"'&|`[x](javascript:1)\x1b[31m\n# no heading"
    trials = {}
    for each, outcomes in small().items():
        trials[replace(each, model=bad, task=f"{each.task}{bad}", preset=bad)] = outcomes
    for gamma in ("0.5", "2"):
        last = replace(next(iter(trials)), rule=f"confidence | eb({gamma})")
        trials[last] = solved(WORSE)
    trials[replace(next(iter(trials)), rule=f"confidence | {bad}")] = solved(WORSE)
    store = fill(tmp_path / "bad.sqlite", trials, {"device": bad, "commit": None}, bad)
    list(write_report(store, tmp_path / "out"))
    text = (tmp_path / "out" / "report.html").read_text()
    seen = Reader(text)
    assert not [tag for tag, _ in seen.tags if tag == "script"]
    assert not [name for _, attributes in seen.tags for name in attributes if name[:2] == "on"]
    assert "<script>alert(1)</script>\"'&|`[x](javascript:1)" in seen.text
    assert not [a for _, a in seen.tags if a.get("href", "").startswith("javascript")]
    lines = (tmp_path / "out" / "report.md").read_text().splitlines()
    assert not [line for line in lines if "<script" in line or "\x1b" in line]
    assert not [line for line in lines if re.search(r"(?<!\\)\]\(javascript", line)]
    assert "# no heading" not in lines
    for is_table, group in groupby(lines, key=lambda line: line.startswith("| ")):
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in group}
        assert not is_table or len(widths) == 1  # no name adds a column
    assert json.loads((tmp_path / "out" / "report.json").read_text())["models"][0]["names"] == [bad]
    assert all(re.fullmatch(r"[\w.-]+", file.name) for file in (tmp_path / "out").iterdir())


def test_without_matplotlib_the_report_says_so_and_is_whole(tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "matplotlib", None)
    trials = small()
    trials[trial(rule="confidence | top(1)")] = solved(BETTER)
    files = list(write_report(fill(tmp_path / "some.sqlite", trials), tmp_path / "out"))
    assert [file.name for file in files] == ["report.md", "report.json", "report.html"]
    said = "There are no plots: plots need matplotlib; pip install 'unmask[plot]'."
    assert said in Reader(files[2].read_text()).text


@pytest.mark.long
@pytest.mark.parametrize("paper", [False, True])
def test_a_rich_store_fills_every_table_without_a_gap(paper):
    results = [Summary.of(each, rows_of(rows)) for each, rows in rich(4, paper=paper).items()]
    seen = read_page(results)
    assert len(seen.tables) > 15
    for table in seen.tables:
        width = {len(row) for row in table.rows}
        assert len(width) == 1
        if len(table.head) == 2:
            (columns,) = width
            assert len(table.head[1]) == columns - 1
    assert "nan" not in seen.text
