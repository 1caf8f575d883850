"""`unmask run` on a tiny model, and files of prompts."""

import json

import pytest

from tests.checkpoints import make_llada
from tests.cli.running import RULE
from unmask.cli import main


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_llada(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture
def run(folder, capsys):
    def call(*arguments, model=folder, length=16):
        size = () if length is None or "--infill" in arguments else ("--length", str(length))
        code = main(["run", *arguments, "--model", str(model), "--rule", RULE, *size])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.fixture
def in_file(tmp_path):
    def write(*lines, name="in.jsonl"):
        file = tmp_path / name
        file.write_text("".join(x if isinstance(x, str) else json.dumps(x) + "\n" for x in lines))
        return str(file)

    return write
