"""Wrong calls of --ray are one line, before a cluster is looked for; none is started here."""

from __future__ import annotations

import sys
from contextlib import closing

import pytest

from tests.lab.ray.commands import done, start
from unmask.cli import main
from unmask.errors import LabError
from unmask.lab.ray.join import Cluster, address_of
from unmask.server.run import listen


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["sweep", "--ray", "embedded"], "got 'embedded'; write other arguments before --ray"),
        (["sweep", "embedded", "--ray", "127.0.0.1"], "--ray takes HOST:PORT, auto, or nothing"),
        (["sweep", "embedded", "--ray", "ray://head:1"], "run the command on a machine of the"),
        (["sweep", "embedded", "--ray", "--device", "cuda:0"], "--device is cuda or cpu, got"),
        (["sweep", "embedded", "--ray", "--workers", "0"], "--workers must be from 1 to 256"),
        (["eval", "--task", "words", "--ray", "x"], "--ray takes HOST:PORT, auto, or nothing"),
        (["serve", "--ray", "x"], "--ray takes HOST:PORT, auto, or nothing"),
        (["serve", "--replicas", "2"], "--replicas needs --ray"),
        (["serve", "--ray", "--replicas", "0"], "--replicas must be >= 1, got 0"),
        (["serve", "--ray", "--rule", "conf"], "unknown rule or recipe 'conf'"),
        (["serve", "--ray", "--host", "0.0.0.0"], "can be reached from other machines"),
    ],
)  # fmt: skip
def test_a_wrong_call_is_one_line_and_exit_2(capsys, monkeypatch, arguments, message):
    monkeypatch.delenv("UNMASK_API_KEY", raising=False)
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"unmask {arguments[0]}: ")
    assert message in captured.err
    assert captured.err.count("\n") == 1


def test_an_address_is_what_was_given_then_the_environments_then_a_cluster_of_its_own(monkeypatch):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    assert address_of("") == "local"
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:6379")
    assert address_of("") == "10.0.0.1:6379"
    assert address_of("auto") == "auto"


def test_a_cluster_has_at_least_one_worker():
    with pytest.raises(LabError, match="the number of workers must be >= 1, got 0"):
        Cluster(workers=0)


@pytest.mark.long
def test_an_address_where_nobody_listens_is_told_of_at_once(tmp_path):
    with closing(listen("127.0.0.1", 0)) as bound:  # bound, so that nobody else takes it
        address = f"127.0.0.1:{bound.getsockname()[1]}"
        store = tmp_path / "store.sqlite"
        given = ("--task", "words", "--rule", "confidence | top(1)", "--limit", 1, "--store", store)
        command = start("eval", *given, "--ray", address)
        code, _, told = done(command, 60)
    assert code == 2
    assert told.startswith(f"unmask eval: no Ray cluster at {address}: ")
    assert told.count("\n") == 1


def test_without_the_extra_it_says_what_to_install(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "ray", None)
    store = str(tmp_path / "store.sqlite")
    assert (
        main(
            [
                "eval",
                "--task",
                "words",
                "--rule",
                "confidence | top(1)",
                "--limit",
                "1",
                "--store",
                store,
                "--ray",
            ]
        )
        == 2
    )
    assert capsys.readouterr().err == (
        "unmask eval: a cluster needs ray, which is not installed; pip install 'unmask[ray]'\n"
    )
