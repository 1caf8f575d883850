"""The measurements run, compare equal results, and tell what they found; how long is not tested."""

from __future__ import annotations

import importlib
import json
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from bench import all as every
from bench import (
    batching,
    decision,
    forward,
    free_slot,
    growth,
    history,
    models,
    originals,
    packed,
    products,
    profile,
    recommended,
    startup,
    swd,
    upstream,
)
from bench.all import NAMES, merged
from bench.common import LLADA_MASK, Shape, llada_shaped
from bench.measure import Bench, Column, by_turns, least, main, ratio, side_by_side, table
from tests.paths import ROOT
from unmask.kernels.product import agrees
from unmask.lab.sweep.store import Store
from unmask.models.packed import PACKED, trouble

BENCHES = (decision, models, swd, batching, startup, growth, history, profile, forward)
TINY = {
    decision: decision.Size((2,), (512,), ("float32",), rounds=1, memory=False),
    profile: profile.Size(1, (1,), rounds=1),
    history: history.Size(2, (None, 4), rounds=1, rows=2, vocabulary=512),
    models: models.Size((Shape(1, 64, 2048),), prompt=4, length=8, block=4, steps=4, rounds=1,
                        memory=False),
    swd: swd.Size((Shape(1, 64, 512),), prompt=4, length=8, blocks=(None, 4), forwards=4,
                  rounds=1),
    batching: batching.Size(requests=4, batches=(2,), mixes=("mixed",), rounds=1),
    startup: startup.Size(1, False, processes=("import torch", "unmask --help")),
    forward: forward.Size(Shape(1, 64, 512), (20,), answer=32, block=16, rounds=1),
    growth: growth.Size(1, 64, prompt=4, lengths=(8, 16), blocks=(None, 4), forwards=2, rounds=1),
}  # fmt: skip


@pytest.mark.parametrize("module", BENCHES, ids=lambda module: module.BENCH.name)
def test_a_bench_fills_every_column_of_its_table(module, monkeypatch):
    monkeypatch.setattr("bench.methods.KERNELS", ("torch", "native"))  # compiling takes its time
    rows = module.run(size=TINY[module])
    optional = {"extra_megabytes", "plain_extra_mb", "unmask_extra_mb", "leaner"}
    for row in rows:
        assert {column.key for column in module.BENCH.columns} - optional <= row.keys()
    _, *lines = table(module.BENCH.columns, rows)
    assert len(lines) == len(rows) > 0
    assert json.loads(json.dumps(rows)) == rows
    assert module.BENCH.name == module.__name__.removeprefix("bench.")
    assert f"python -m {module.__name__}" in module.__doc__


def test_a_plain_loop_that_writes_other_tokens_is_an_error(monkeypatch):
    monkeypatch.setitem(models.METHODS, "plain", lambda *_: torch.zeros(12))
    with pytest.raises(AssertionError, match="the tokens differ"):
        models.run(size=TINY[models])


def test_swd_and_lam_0_must_compute_as_much(monkeypatch):
    plain = swd.steps

    def longer(model, size, block, lam, divided=None):
        return plain(model, replace(size, forwards=2 if lam else 4), block, lam, divided)

    monkeypatch.setattr(swd, "steps", longer)
    with pytest.raises(AssertionError, match="differ in what they compute"):
        swd.run(size=TINY[swd])


def test_a_way_of_batching_that_gives_other_results_is_an_error(monkeypatch):
    def wrong(model, todo, batch):
        for result in batching.continuous(model, todo, batch):
            yield replace(result, canvas=result.canvas + 1)

    monkeypatch.setitem(batching.WAYS, "waiting", wrong)
    with pytest.raises(AssertionError, match="other tokens"):
        batching.run(size=TINY[batching])


def test_rows_that_are_done_stay_in_the_forward_only_where_they_are_meant_to():
    model, tokenizer = batching.load("embedded")
    todo = batching.requests(model, tokenizer, replace(TINY[batching], requests=3), "mixed")
    forwards = {}
    for name, way in batching.WAYS.items():
        counting = Counting(model)
        nfe = [result.nfe for result in way(counting, todo, 3)]
        forwards[name] = counting.rows
    assert len(set(nfe)) > 1
    assert forwards["whole"] == [3] * max(nfe)
    for name in ("unmask", "continuous", "waiting"):
        assert sum(forwards[name]) == sum(nfe)


class Counting:
    """A model that notes how many rows each forward has."""

    def __init__(self, model):
        self.model, self.spec, self.device, self.rows = model, model.spec, model.device, []

    def trunk(self, canvas):
        self.rows.append(len(canvas.tokens))
        return self.model.trunk(canvas)

    def head(self, *cells):
        return self.model.head(*cells)


def test_methods_take_turns_and_the_first_round_is_not_counted():
    calls = []
    taken = by_turns({name: lambda name=name: calls.append(name) for name in "ab"}, 2)
    assert calls == ["b", "a", "a", "b", "b", "a"]
    assert [len(seconds) for seconds in taken.values()] == [2, 2]
    assert ratio({"a": [2.0, 9.0, 4.0], "b": [1.0, 3.0, 1.0]}, "a", "b") == 3.0


def test_runs_side_by_side_are_advanced_by_turns_to_their_ends():
    seen = []

    def counted(name, steps):
        for step in range(steps):
            seen.append(f"{name}{step}")
            yield step

    shown = []
    taken = side_by_side(
        {"a": counted("a", 2), "b": counted("b", 3)}, lambda *step: shown.append(step)
    )
    assert {name: len(steps) for name, steps in taken.items()} == {"a": 2, "b": 3}
    assert seen == ["a0", "b0", "b1", "a1", "b2"]
    assert shown == [("a", 0), ("b", 0), ("b", 1), ("a", 1), ("b", 2)]
    assert least([[3.0, 1.0], [2.0, 5.0]]) == 3.0


def test_a_bench_prints_a_table_and_writes_its_figures_with_the_machine(
    tmp_path: Path, monkeypatch, capsys
):
    rows = [{"name": "one", "share": 0.014, "times": 3.26}, {"name": "other", "times": 12.0}]
    columns = (Column("name", "which"), Column("share", "share", ".1%"),
               Column("times", "faster", ".1f", "x"))  # fmt: skip
    file = tmp_path / "results.json"
    monkeypatch.setattr(sys, "argv", ["bench", "--short", "--json", str(file)])
    threads = torch.get_num_threads()
    try:
        main(Bench("some", "A title", columns, lambda short: rows if short else []))
    finally:
        torch.set_num_threads(threads)
    assert capsys.readouterr().out == (
        "A title\nwhich  share  faster\none     1.4%    3.3x\nother          12.0x\n"
    )
    record = json.loads(file.read_text())
    assert record["rows"] == rows
    assert record["command"] == "python -m bench.some --short"
    assert record["environment"]["threads"] == 1


def test_the_page_of_benchmarks_shows_what_was_measured_last():
    docs = ROOT / "docs"
    sys.path.insert(0, str(docs.parent / "tools"))
    try:
        from benchmarks import benchmarks
    finally:
        sys.path.pop(0)
    page = (docs / "benchmarks-tables.md").read_text()
    assert benchmarks(page, docs / "benchmarks.json") == page
    for module in BENCHES:
        assert f"`python -m {module.__name__} --short`" in page
    assert "`python -m bench.originals --originals FOLDER --short`" in page


def test_one_command_runs_them_all_but_those_that_need_clones():
    alone = [f"bench.{name}" for name in NAMES if name != "originals"]
    assert alone == [module.__name__ for module in BENCHES]


def test_measurements_that_are_not_made_again_stay_in_the_file(tmp_path: Path):
    file = tmp_path / "benchmarks.json"
    new = [{"name": "models", "rows": 1}]
    assert merged(new, file) == new
    before = [{"name": "decision", "rows": 2}, {"name": "models", "rows": 2}]
    file.write_text(json.dumps({"benches": [*before, {"name": "swd", "rows": 2}]}))
    assert merged(new, file) == [before[0], new[0], {"name": "swd", "rows": 2}]


def test_measurements_that_cannot_be_made_are_refused_before_the_first(monkeypatch, capsys):
    cases = {"swd,speed": "unknown: speed; known: decision", "originals": "--originals FOLDER"}
    for names, message in cases.items():
        assert refused(["--only", names], monkeypatch, every.main) == 2
        assert message in capsys.readouterr().err


def refused(options: list[str], monkeypatch, main=originals.main) -> str | int | None:
    monkeypatch.setattr(sys, "argv", ["bench", *options])
    with pytest.raises(SystemExit) as exit:
        main()
    return exit.value.code


def test_a_folder_without_clones_is_refused_in_one_line(tmp_path: Path, monkeypatch):
    message = refused(["--originals", str(tmp_path)], monkeypatch)
    assert isinstance(message, str)
    assert "\n" not in message
    assert str(tmp_path) in message
    for original in upstream.ORIGINALS:
        assert original.place in message
    assert "clone their repositories into it" in message


def test_sizes_of_no_model_are_refused(tmp_path: Path, monkeypatch, capsys):
    cases = {
        "--layers 2": "give all three or none",
        "--layers 0 --width 64 --vocab 2048": "--layers must be >= 1, got 0",
        "--layers 1 --width 100 --vocab 2048": "--width must be a multiple of 64, got 100",
        "--layers 1 --width 64 --vocab 126400": "2048 to 126336, or LLaDA's 126464, got 126400",
    }
    for options, message in cases.items():
        assert refused(["--originals", str(tmp_path), *options.split()], monkeypatch) == 2
        assert message in capsys.readouterr().err


def test_a_file_of_a_clone_is_loaded_without_the_packages_that_load_checkpoints(tmp_path: Path):
    (tmp_path / "LLaDA").mkdir()
    (tmp_path / "LLaDA" / "generate.py").write_text(
        "from transformers import AutoModel\n"
        "def generate(model, prompt, steps, gen_length, block_length):\n"
        "    return prompt + steps\n"
    )
    (tmp_path / "KLASS" / "src" / "model").mkdir(parents=True)
    (tmp_path / "KLASS" / "src" / "model" / "llada_klass.py").write_text("import no_such_module")
    before = sys.modules.get("transformers")
    (llada,), left_out = upstream.load_all(tmp_path)
    assert sys.modules.get("transformers") is before
    assert "dllm" not in sys.modules
    assert (llada.original.name, llada.commit) == ("LLaDA", "")
    work = upstream.Work(prompt=2, steps=5)
    assert llada.decode(upstream.HostedModel(TOY), work).tolist() == [1005, 1006]
    assert [reason.split()[0] for reason in left_out] == ["Fast-dLLM", "dllm", "KLASS"]
    assert "no_such_module" in left_out[-1]


TOY = llada_shaped(Shape(1, 64, 2048))


def test_an_original_sees_the_mask_of_the_model_under_the_id_that_llada_gives_it():
    hosted, mask_id = upstream.HostedModel(TOY), TOY.spec.mask_id
    tokens = torch.tensor([[5, LLADA_MASK, mask_id]])
    logits = hosted(tokens, attention_mask=torch.ones(1, 3)).logits
    expected = TOY.module.logits(TOY.module(torch.tensor([[5, mask_id, mask_id]])))
    expected[..., mask_id] = -torch.inf
    assert torch.equal(logits, expected)
    assert tokens.tolist() == [[5, LLADA_MASK, mask_id]]
    assert (hosted.forwards, hosted.config.vocab_size) == (1, 2048)


def stand_in(changed: int = 0, more: int = 0) -> upstream.Loaded:
    """A decoder in the place of an original: unmask itself, with tokens or forwards changed."""

    def decode(hosted, work):
        written = originals.ours(hosted.model, "confidence | static(4)", work)
        hosted.forwards = written.forwards + more
        return written.canvas + changed

    return upstream.Loaded(upstream.ORIGINALS[0], decode, "0123abc")


@pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="peaks of memory are measured on Linux"
)
def test_the_table_of_the_originals_has_a_row_for_each_model_with_every_column():
    work = upstream.Work(prompt=4, length=8, block=4, steps=4)
    size = originals.Size((Shape(1, 64, 2048), Shape(1, 128, 2048)), work, rounds=1)
    rows = originals.run([stand_in()], size)
    assert [row["shape"] for row in rows] == ["1 x 64", "1 x 128"]
    for row in rows:
        assert {column.key for column in originals.BENCH.columns} == row.keys()
        assert (row["original"], row["nfe"]) == ("LLaDA 0123abc", 4)
    assert json.loads(json.dumps(rows)) == rows
    with pytest.raises(AssertionError, match="the tokens differ from those of LLaDA"):
        originals.run([stand_in(changed=1)], size)
    with pytest.raises(AssertionError, match="LLaDA made 5 forwards, unmask 4"):
        originals.run([stand_in(more=1)], size)


@pytest.mark.skipif(not agrees(), reason="no product kernel with torch's bits here")
def test_products_are_measured_for_every_dtype_of_a_weight():
    rows = products.run(size=products.Size(((384, 350),), (5,), layers=1, rounds=1))
    assert [row["dtype"] for row in rows] == ["float32", "bfloat16", "int8"]
    assert len(table(products.BENCH.columns, rows)) == 4


def test_packed_products_are_measured_for_every_dtype_that_can_be_packed():
    rows = packed.run(size=packed.Size(((64, 50),), (5,), layers=1, rounds=1))
    dtypes = [dtype for dtype in PACKED if trouble(dtype, torch.device("cpu")) is None]
    assert [row["dtype"] for row in rows] == [str(dtype).removeprefix("torch.") for dtype in dtypes]
    assert rows[0]["kernel"] > 0
    assert all(row["int8"] > 0 and row["int4"] > 0 for row in rows[1:])
    assert len(table(packed.BENCH.columns, rows)) == 1 + len(rows)


def test_every_bench_can_be_imported():
    names = [file.stem for file in (ROOT / "bench").glob("*.py")]
    for name in names:
        importlib.import_module(f"bench.{name}")
    assert len(names) > 20


def test_the_free_slot_is_chosen_on_one_split_and_reported_on_the_other(tmp_path, capsys):
    few = ["--tasks", "copy", "--calibration", "2", "--test", "2", "--only", "eb,fast-dllm"]
    free_slot.main([*few, "--folder", str(tmp_path)])
    out = capsys.readouterr().out
    assert out.startswith("On the calibration split, against plain EB at equal forwards:")
    assert out.count("4 comparisons in 2 fields.") == 2
    assert "eb(0.1, free=order): 4 comparisons in 2 fields." in out


def test_the_recommended_rule_is_chosen_on_one_split_and_judged_on_unused_problems(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(recommended, "GRID", recommended.GRID[:3])
    few = ["--tasks", "copy,sort", "--calibration", "2", "--test", "1", "--folder", str(tmp_path)]
    recommended.main(few)
    out = capsys.readouterr().out
    assert out.count("\n| `") == 12  # every candidate has its line
    assert "of 12 may be chosen. The leader: `" in out
    assert out.endswith(("The rule before stays.\n", "The rule before gives way.\n"))
    with Store(tmp_path / "test.sqlite") as store:
        (name,) = {row.ask.example for trial in store.trials() for row in store.rows(trial)
                   if trial.task == "sort"}  # fmt: skip
    assert name == "sort/200"  # the lab has those before it


def outcomes(solved, forwards):
    return SimpleNamespace(solved=lambda: solved, values=lambda name: forwards)


def tabled(**rules):
    """Outcomes of rules on 200 problems, given how many each solves and its forwards."""
    return {
        recommended.BEFORE if name == "before" else recommended.Candidate(name, *window):
        recommended.Measured((outcomes([i < right for i in range(200)], [nfe] * 200),))
        for name, (right, nfe, *window) in rules.items()
    }  # fmt: skip


def test_the_cheapest_rule_that_is_not_worse_than_the_leader_is_recommended():
    table = tabled(best=(180, 9.0), near=(178, 5.0), far=(150, 2.0), kept=(199, 1.0, "full"))
    ps, good = recommended.choose(table)
    assert [each.rule for each in good] == ["near", "best"]
    assert [ps[each] < 0.05 for each in table] == [False, False, True, True]


@pytest.mark.parametrize(
    ("right", "nfe", "way"),
    [(190, 9.0, True), (180, 4.0, True), (180, 5.0, False), (150, 1.0, False)],
)
def test_a_rule_gives_way_to_one_that_solves_more_or_as_many_with_fewer_forwards(right, nfe, way):
    table = tabled(before=(180, 5.0), new=(right, nfe))
    assert recommended.gives_way(table, recommended.Candidate("new")) is way
