"""Every row of docs/paper.md runs from start to end, and its sweeps have every published figure."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from contextlib import nullcontext
from dataclasses import replace
from itertools import takewhile
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from tests.lab.invented import judge, write
from tests.paths import GOLDEN, ROOT
from unmask.cli import main, sweep
from unmask.cli.lab_options import options_of
from unmask.lab.benchmarks.data import DataFile
from unmask.lab.grading import Tools, Verifier
from unmask.lab.paper import published
from unmask.lab.report.paper_columns import counterpart, figures
from unmask.lab.sweep.grid import named_sweeps, read_sweep
from unmask.lab.sweep.plan import plan

PAGE = (ROOT / "docs" / "paper.md").read_text()
# A folder by the name of the paper's checkpoint, and the tiny one that stands in for it.
TINY = {
    "$LLADA": ("LLaDA-8B-Instruct", "llada-tiny", "n_layers", "model.transformer.ln_f.weight"),
    "$DREAM": ("Dream-v0-Instruct-7B", "dream-tiny", "num_hidden_layers", "model.norm.weight"),
}
UNSURE = str(GOLDEN / "models" / "llada-tiny")  # takes many steps, so that traces show something
TABLE_1 = ("sweep", "paper-table1", "--model", "$LLADA", "--data", "$DATA")
BLOCKS = ("paper-block32", "paper-block32-dream", "paper-history", "paper-lambda-figure")


def rows():
    """Every row of the page's tables: the item, and its command as a list of words."""
    for line in PAGE.splitlines():
        cells = re.split(r"(?<!\\)\|", line)[1:-1]
        if cells and not set(line) <= set("|-") and cells[0].strip() != "in the paper":
            item, command, shown = (cell.strip().replace("\\|", "|") for cell in cells)
            (code,) = re.findall(r"`([^`]+)`", command)
            assert command == f"`{code}`", f"{item}: one command, and nothing else"
            assert shown, f"{item}: says nothing of what is shown"
            yield item, shlex.split(code)


def sweeps():
    """The sweeps of the page with their model."""
    for _, (_, command, *rest) in rows():
        if command == "sweep":
            yield rest[0], rest[2]


def small(folder: Path, name: str, golden: str, layers: str, norm: str) -> Path:
    """A tiny checkpoint with one layer; it is so sure that a rule commits many tokens at once."""
    target = folder / name
    shutil.copytree(
        GOLDEN / "models" / golden, target, ignore=shutil.ignore_patterns("golden*"),
        dirs_exist_ok=True,
    )  # fmt: skip
    config = json.loads((target / "config.json").read_text())
    (target / "config.json").write_text(json.dumps({**config, layers: 1}))
    tensors = load_file(target / "model.safetensors")
    kept = {
        name: tensor
        for name, tensor in tensors.items()
        if not re.search(r"\.(blocks|layers)\.[1-9]", name)
    }
    save_file({**kept, norm: kept[norm] * 30}, target / "model.safetensors", {"format": "pt"})
    return target


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """What stands for the variables of the page."""
    folder = tmp_path_factory.mktemp("paper")
    data = folder / "data"
    data.mkdir()
    models = {name: str(small(folder, *tiny)) for name, tiny in TINY.items()}
    return {**models, "$DATA": str(write(data))}


def shortened(words):
    """One example of few tokens; a block of 32 needs 32 of them.

    The report is of one task of Table 1: one of everything takes a minute.
    """
    if words[1] == "sweep":
        length = "32" if words[2] in BLOCKS else "4"
        return [*words, "--limit", "1", "--length", length]
    if words[1] == "theory":
        return [*words, "--cases", "200"]
    if words[1] == "report":
        return [*words[:2], "one.sqlite"]
    return [*words, "--length", "12"] if words[1] == "run" else words


def read_once(records):
    """Every file of the benchmarks is read and checked once, not for every sweep."""
    kept = {}
    return lambda file, folder: (
        kept.get(file.file) or kept.setdefault(file.file, records(file, folder))
    )


def in_one_batch(arguments, timed=False):
    """The options of a command; trials that are not timed are decoded together, as in `arena`."""
    return replace(options_of(arguments, timed), memo=not timed)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:swd.form=literal.:UserWarning")
def test_every_row_runs_from_start_to_end_on_a_tiny_checkpoint(
    places, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    tools = Tools(judge, Verifier(limit=60))
    monkeypatch.setattr(Tools, "of", lambda *_: nullcontext(tools))
    monkeypatch.setattr(DataFile, "records", read_once(DataFile.records))
    monkeypatch.setattr(sweep, "options_of", in_one_batch)
    kinds = []
    with tools:
        one = ("--task", "gsm8k", "--limit", "1", "--length", "4", "--store", "one.sqlite")
        table1 = [places.get(word, word) for word in (*TABLE_1, *one)]
        assert main(table1) == 0  # for the report
        capsys.readouterr()
        for item, words in rows():
            stand_in = {**places, "$LLADA": UNSURE} if words[1] == "run" else places
            command = [stand_in.get(word, word) for word in shortened(words)]
            assert main(command[1:]) == 0, item
            check(item, words, capsys.readouterr().out)
            kinds.append(words[1])
    assert {"run", "rules", "explain", "theory", "figure", "sweep", "report"} == set(kinds)


def check(item, words, out):
    """What the row promises is there."""
    if words[1] == "sweep":
        _, *lines = takewhile(bool, out.splitlines())
        tasks = {setting.task for setting in read_sweep(words[2], {}).settings}
        assert {line.split()[0] for line in lines} >= tasks, item
        assert "none graded" not in out, item
    elif words[1] == "figure":
        assert "<svg" in Path(words[-1]).read_text(), item
    elif words[1] == "report":
        report = Path("one-report/report.md").read_text()
        assert "LLaDA-8B-Instruct" in report
        assert "the paper's length is 512, ours 4" in report
    elif words[1] == "run":
        for file in (word for word in words if word.endswith(".trace")):
            assert Path(file).stat().st_size, item
    else:
        assert out.strip(), item


@pytest.mark.long
def test_the_sweeps_of_the_page_run_every_setting_that_has_a_published_figure(places):
    run = set()
    for name, model in sweeps():
        settings = read_sweep(name, {"model": [places[model]], "limit": 1}).settings
        for work in plan(settings, Path(places["$DATA"]), timing="any"):
            paper = counterpart(work.trial.model)
            run |= {(each.model, each.task, each.rule, each.block, each.length)
                    for each in figures(work.trial, paper)}  # fmt: skip
    printed = {(p.model, p.task, p.rule, p.block, p.length) for p in published()}
    assert printed <= run


def test_the_page_has_every_sweep_of_the_paper_and_says_what_it_shows():
    assert len(list(rows())) > 30
    ours = {name for name in named_sweeps() if name.startswith("paper-")}
    assert {name for name, _ in sweeps()} == ours
    for name, model in sweeps():
        assert ("dream" in name) == (model == "$DREAM")


def test_the_figures_that_the_page_quotes_are_the_papers():
    quoted = re.findall(r"(\d+\.\d) @ (\d+\.\d)", PAGE)
    assert len(quoted) > 5
    printed = {(p.accuracy, p.nfe) for p in published()}
    assert {(float(accuracy), float(nfe)) for accuracy, nfe in quoted} <= printed
