"""Arguments of the command line that stand for decoding options."""

from __future__ import annotations

import pytest

from unmask.cli import main, parser
from unmask.cli.options import given_lists, given_options
from unmask.cli.sweep import changes_of
from unmask.lab.sweep.grid import sweep_of

COMMANDS = ("run hello", "serve", "eval --task words", "tune --task words", "doctor")


def given(line):
    return given_options(parser().parse_args(line.split()))


@pytest.mark.parametrize("command", COMMANDS)
def test_a_switch_that_is_not_off_by_default_can_be_turned_off(command):
    assert "pack" not in given(command)
    assert given(f"{command} --pack")["pack"] is True
    assert given(f"{command} --no-pack")["pack"] is False
    assert given(f"{command} --pack --no-pack")["pack"] is False  # the last one holds


def test_a_switch_that_is_off_by_default_has_one_form(capsys):
    assert given("run hello --tempered")["tempered"] is True
    with pytest.raises(SystemExit):
        given("run hello --no-tempered")
    assert "unknown argument '--no-tempered'" in capsys.readouterr().err


@pytest.mark.parametrize("value", [" false", "=false", " No", "=on", "=", "=3"])
def test_a_switch_with_a_value_says_how_to_write_it(capsys, value):
    for flag, how in (("pack", "write --pack, or --no-pack"), ("tempered", "or leave it out")):
        with pytest.raises(SystemExit) as stopped:
            given(f"run --{flag}{value}")
        (line,) = capsys.readouterr().err.splitlines()
        assert stopped.value.code == 2
        assert f"takes no value, got {value[1:]!r}" in line
        assert how in line


def test_a_prompt_behind_a_switch_or_two_dashes_is_a_prompt():
    for line in ("run --pack hello", "run --pack -- hello"):
        assert parser().parse_args(line.split()).prompt == "hello"
    assert parser().parse_args(["run", "--pack", "--", "no"]).prompt == "no"


def swept(*arguments):
    read = parser().parse_args(["sweep", "--task", "words", "--rule", "swd", *arguments])
    return [each.options for each in sweep_of({}, "", changes_of(read), "the options").settings]


def test_a_sweep_takes_arguments_of_a_template_once_for_each_setting():
    options = swept("--template-args", "x=true,y=1", "--template-args", '{"x": false}')
    assert [each.template_args for each in options] == ['{"x": true, "y": 1}', '{"x": false}']


def test_a_sweep_does_not_take_two_values_of_an_argument_for_one(capsys):
    sweep = ["sweep", "--task", "words", "--rule", "swd", "--template-args", "x=true,x=false"]
    assert main([*sweep, "--dry-run"]) == 2
    assert capsys.readouterr().err == (
        "unmask sweep: --template-args: 'x' is given more than once; give it one value, and in a "
        "sweep each value in an option of its own\n"
    )


def test_a_sweep_takes_values_of_a_switch_with_commas():
    read = parser().parse_args(["sweep", "--pack", "on,no,true"])
    assert given_lists(read) == {"pack": [True, False, True]}
