"""`unmask dissect` on the embedded model."""

import json

from unmask.cli import main
from unmask.lab.sweep.store import Store

SMALL = ["--task", "copy", "--length", "16", "--block", "full"]
RULE = ["--rule", "entropy | swd(5) | eb(0.1)"]


def dissect(*arguments):
    return main(["dissect", *SMALL, *arguments])


def test_all_variants_are_decoded_and_read_and_a_second_call_decodes_no_more(tmp_path, capsys):
    store, file = tmp_path / "lab.sqlite", tmp_path / "out.json"
    common = [*RULE, "--limit", "2", "--store", str(store), "--batch-size", "18"]
    assert dissect(*common, "--json", str(file)) == 0
    first = capsys.readouterr().out
    assert "swd on end tokens only" in first
    assert "without swd, EOS last" in first
    assert "No gain of swd is shown" in first
    names = [each["name"] for each in json.loads(file.read_text())["variants"]]
    assert names[:2] == ["base", "whole"]
    assert len(names) == 9
    with Store(store, create=False) as found:
        trials = found.trials()
        assert len(trials) == 9
        before = [row.answer for trial in trials for row in found.rows(trial)]
    assert dissect(*common) == 0
    with Store(store, create=False) as found:
        assert [row.answer for trial in trials for row in found.rows(trial)] == before


def test_a_dry_run_lists_every_variant_and_decodes_nothing(tmp_path, capsys):
    store = tmp_path / "lab.sqlite"
    assert dissect(*RULE, "--limit", "2", "--dry-run", "--store", str(store)) == 0
    out = capsys.readouterr().out
    assert "9 trials, 18 examples" in out
    assert "swd(5) | only(others)" in out
    assert not store.exists()


def test_a_modulator_of_ones_own_is_taken_apart(tmp_path, capsys):
    file = tmp_path / "my_lean.py"
    file.write_text(
        "import unmask\n\n\n"
        "@unmask.modulator\n"
        "def my_lean(view, scores, rate: float = 0.1):\n"
        '    """Favours early positions."""\n'
        "    place = view.progress.offset.new_tensor(range(view.masked.shape[-1]))\n"
        "    return scores - rate * place.double()\n"
    )
    store = ["--store", str(tmp_path / "lab.sqlite")]
    rule = ["--rule", "confidence | my_lean(0.2) | eb(0.1)", "--import", str(file)]
    assert dissect(*rule, *store, "--limit", "1", "--batch-size", "9") == 0
    assert "my_lean on end tokens only" in capsys.readouterr().out


def test_a_rule_without_a_modulator_is_refused_in_one_line(capsys):
    assert dissect("--rule", "confidence | top(1)") == 2
    assert capsys.readouterr().err == (
        "unmask dissect: confidence | top(1) has no modulator to take apart; give a rule such as "
        "'confidence | swd(5) | eb(0.1)'\n"
    )
