"""The command line as a person meets it: fast help, one-line errors, honest exit codes."""

import argparse
import json
import shlex
import subprocess
import sys

import pytest

from tests.forked import Fork
from tests.paths import ROOT
from unmask.cli import COMMANDS, demo, main, parser

GOLDEN = ROOT / "tests" / "golden" / "decoders"


def python(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout


def test_help_answers_without_importing_torch():
    out = python(
        "import sys\nfrom unmask.cli import COMMANDS, main\n"
        "for command in ([], *([name] for name in COMMANDS)):\n"
        "    try: main([*command, '--help'])\n"
        "    except SystemExit as end: print('exit', end.code)\n"
        "    print('torch' in sys.modules, 'numpy' in sys.modules)"
    )
    lines = out.splitlines()
    assert lines.count("exit 0") == lines.count("False False") == len(COMMANDS) + 1


def test_rules_lists_every_part_and_recipe(capsys):
    from unmask.rules.recipes import RECIPES
    from unmask.rules.registry import kinds

    assert main(["rules"]) == 0
    out = capsys.readouterr().out
    for kind in kinds():
        assert kind.usage in out
        assert kind.summary.split(".")[0][:40] in out
    for name in RECIPES:
        assert name in out


def test_rules_explains_one_rule_in_words(capsys):
    assert main(["rules", "confidence | swd(5) | eb(0.1)"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("confidence | swd(5) | eb(0.1)\n")
    assert "exp(-5 D)" in out
    assert "at most 0.1 nats" in " ".join(out.split())


def test_rules_explains_every_rule_of_a_sweep(capsys):
    assert main(["rules", "--json", "margin | swd({0,1,5}) | eb({0.05,0.1})"]) == 0
    rules = json.loads(capsys.readouterr().out)
    assert [rule["rule"] for rule in rules][:2] == [
        "margin | swd(0) | eb(0.05)",
        "margin | swd(0) | eb(0.1)",
    ]
    assert len(rules) == 6


def test_rules_knows_the_recipes_by_name(capsys):
    assert main(["rules", "swd-block32"]) == 0
    assert capsys.readouterr().out.startswith("confidence | swd(1) | eb(0.1)")


def test_rules_says_what_belongs_to_a_recipe_and_where_its_parts_come_from(capsys):
    assert main(["rules", "daedal"]) == 0
    assert "block 32; length auto; DAEDAL" in capsys.readouterr().out
    assert main(["rules", "less"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "less: LESS Is More, for LLaDA. Equal to the authors' code" in out


def test_rules_prints_a_part_by_its_name(capsys):
    assert main(["rules", "edit"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("  edit(tau=0, steps=16)\n")
    assert "Published for LLaDA2.1" in " ".join(out.split())
    assert main(["rules", "--json", "p2_back"]) == 0
    assert "belongs to `p2`" in json.loads(capsys.readouterr().out)["note"]


def test_every_part_of_the_field_says_what_is_known_of_its_published_results():
    from unmask.rules.registry import kind_named

    field = "less less_dream localleap adablock prophet saber slowfast wino upstream frontier edit"
    for name in [*field.split(), "p2", "vote", "even", "narrow", "backtrack", "penalty", "p2_back"]:
        assert kind_named(name).note, name


def test_the_table_is_there_as_json(capsys):
    assert main(["rules", "--json"]) == 0
    table = json.loads(capsys.readouterr().out)
    swd = next(part for part in table["parts"] if part["name"] == "swd")
    assert swd["arguments"]["lam"] == "5"
    assert swd["formula"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("conf | eb(0.1)", "did you mean 'confidence'?"),
        ("confidence | swd(lamda=1) | eb", "did you mean 'lam'?"),
        ("confidence | eb(-0.1)", "eb: gamma must be >= 0, got -0.1"),
        ("confidence | swd(5)", "the rule has no selection"),
        ("eb(0.1) | confidence", "'confidence' stands too late"),
        ("confidence | | eb", "an empty part"),
    ],
)
def test_a_wrong_rule_is_one_line_on_stderr_and_exit_2(text, message, capsys):
    assert main(["rules", text]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err
    assert captured.err.count("\n") == 1


def test_conformance_ends_with_the_count_and_exit_0(tmp_path, capsys):
    _copy_one(tmp_path, spoil=False)
    assert main(["conformance", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "2 passed, 0 failed"


def test_conformance_exits_1_on_a_failure(tmp_path, capsys):
    _copy_one(tmp_path, spoil=True)
    assert main(["conformance", str(tmp_path), "--dtype", "float64"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "0 passed, 1 failed"
    assert lines[-2].startswith("failed  fastdllm/")


def test_conformance_of_a_missing_folder_is_one_line(capsys):
    assert main(["conformance", "nowhere"]) == 2
    assert capsys.readouterr().err == (
        "unmask conformance: nowhere is not a folder; give the folder of the golden cases\n"
    )


def test_the_demo_shows_both_rules_and_counts_the_seeds(capsys):
    assert main(["demo", "--oracle", "--seeds", "4", "--colour", "never"]) == 0
    out = capsys.readouterr().out
    assert "confidence | eb(0.1)" in out
    assert "log p = -inf: no such sentence" in out
    assert "log p = -2.77" in out
    assert "\x1b[" not in out


def test_the_demo_paints_on_request(capsys):
    assert main(["demo", "--oracle", "--seeds", "3", "--colour", "always"]) == 0
    assert "\x1b[32;1m" in capsys.readouterr().out


SMALL_DEMO = """
task = "words"
length = 24
[[grid]]
block = ["full", 16]
eos = ["keep", "suppress"]
rule = "confidence | swd({0,5}) | eb(0.1)"
[[grid]]
block = "full"
rule = "confidence | swd({0,5}) | eb({0.1,1})"
[[grid]]
task = ["words", "code"]
length = 32
block = 16
rule = "confidence | top(1)"
"""


@pytest.mark.long
def test_the_demo_compares_rules_on_held_out_problems(
    monkeypatch, tmp_path, capsys, forked_workers
):
    small = tmp_path / "small.toml"
    small.write_text(SMALL_DEMO)
    monkeypatch.setattr(demo, "SWEEP", str(small))
    asked = ["demo", "--problems", "4", "--output", str(tmp_path / "demo"), "--colour", "never"]
    assert main(asked) == 0
    out = capsys.readouterr().out
    assert "What it can do: one token per forward in blocks of 16" in out
    assert "4 held-out problems, 24 tokens each" in out
    assert "full window, EOS suppressed" in out
    assert "blocks of 16, EOS kept" in out
    assert "gamma sweep" in out
    assert "At equal cost" in out
    assert (tmp_path / "demo" / "results.json").is_file()
    assert (tmp_path / "demo" / "accuracy-forwards.svg").is_file()


@pytest.mark.parametrize("count", [1, 201])
def test_the_demo_takes_2_to_200_problems(capsys, count):
    assert main(["demo", "--problems", str(count)]) == 2
    told = f"unmask demo: --problems must be from 2 to 200, got {count}\n"
    assert capsys.readouterr().err == told


@pytest.mark.long
def test_a_reader_that_leaves_early_is_no_error():
    process = Fork("-m", "unmask", "rules")
    process.stdout.close()
    assert process.communicate(60)[1] == ""
    assert process.returncode == 0


def _copy_one(folder, spoil):
    (folder / "denoiser_a.npz").write_bytes((GOLDEN / "denoiser_a.npz").read_bytes())
    case = json.loads((GOLDEN / "upstream_fastdllm.jsonl").read_text().splitlines()[0])
    if spoil:
        case["steps"][0]["tok"][0] ^= 1
    (folder / "upstream_fastdllm.jsonl").write_text(json.dumps(case))


def told(capsys, *arguments):
    """What a wrong call prints."""
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 2
    return capsys.readouterr().err


def test_an_unknown_argument_points_to_the_help_of_its_command(capsys):
    assert told(capsys, "run", "x", "--wach") == (
        "unmask run: unknown argument '--wach'; did you mean '--watch'? see 'unmask run --help'\n"
    )
    assert told(capsys, "run", "x", "--zzz=1").endswith(" '--zzz=1'; see 'unmask run --help'\n")
    assert told(capsys, "--zzz", "rules").endswith("see 'unmask --help'\n")


def test_a_mistyped_command_or_choice_gets_the_nearest(capsys):
    assert "unknown 'rn'; did you mean 'run'? known: demo, run," in told(capsys, "rn")
    assert "--eos: unknown 'kep'; did you mean 'keep'? known" in told(capsys, "run", "--eos", "kep")
    assert "unknown 'zzz'; known: demo," in told(capsys, "zzz")


def test_a_demo_that_cannot_write_computes_nothing(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(demo, "_show_one", lambda *_: pytest.fail("it computes"))
    (tmp_path / "file").touch()
    folder = tmp_path / "file" / "demo"
    assert main(["demo", "--output", str(folder)]) == 2
    assert capsys.readouterr().err == (
        f"unmask demo: --output {folder} cannot be written: Not a directory; give another folder\n"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--verison"], "unknown argument '--verison'; did you mean '--version'?"),
        ([], "a COMMAND is missing"),
        (["run", "hi", "--seed", str(10**23)], f"--seed must be at most {2**63 - 1}, got 1000"),
        (["run", "hi", "--length", str(2**21)], f"--length must be at most {2**20}, got 2097152"),
    ],
)
def test_a_slip_is_answered_with_what_was_meant_or_is_allowed(arguments, message, capsys):
    try:
        code = main(arguments)
    except SystemExit as error:
        code = error.code
    assert code == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    "rule", ["{rule} | " * 2000, "confidence | swd(5) | " * 2000, "x" * 10**5, "top(1)}" * 2000]
)
def test_a_very_long_rule_is_not_repeated_whole(rule, capsys):
    assert main(["run", "hi", "--rule", rule]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert len(error) < 2000


def test_ctrl_c_while_the_command_line_is_read_is_one_line(monkeypatch, capsys):
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", interrupted)
    assert main(["run", "hi"]) == 130
    assert capsys.readouterr().err == "unmask: interrupted\n"


def test_the_examples_of_every_help_text_stand_on_lines_of_their_own_and_are_accepted():
    top = parser()
    commands = next(action for action in top._actions if action.dest == "command").choices
    lines = [line for each in commands.values() for line in (each.epilog or "").splitlines()]
    shown = [line for line in lines if line.startswith("  ")]
    assert len(shown) > 35
    for line in shown:
        program, *arguments = shlex.split(line.replace("UNMASK_API_KEY=KEY ", ""))
        assert (program, ";" in line) == ("unmask", False), line
        assert top.parse_args(arguments).command == arguments[0]
