"""`unmask serve` as it is called: wrong calls are one line, and nothing heavy is imported early."""

import subprocess
import sys

import pytest

from unmask.cli import main
from unmask.server.run import listen


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--host", "0.0.0.0"], "can be reached from other machines; set UNMASK_API_KEY"),
        (["--host", "::"], "can be reached from other machines"),
        (["--host", "example.org"], "can be reached from other machines"),
        (["--host", "192.168.0.1"], "can be reached from other machines"),
        (["--batch-size", "0"], "--batch-size must be from 1 to 1048576, got 0"),
        (["--queue", "-1"], "--queue must be from 0 to 1048576, got -1"),
        (["--grace", "nan"], "--grace must be >= 0, got nan"),
        (["--port", "70000"], "--port must be 0..65535, got 70000"),
        (["--threads", "0"], "--threads must be >= 1, got 0"),
        (["--api-key", ""], "--api-key must not be empty"),
        (["--served-model-name", ""], "--served-model-name must not be empty"),
        (["--api-key", "secret "], "the key in --api-key has a blank or a character that is not"),
        (["--api-key", "schlüssel"], "not ASCII, which clients cannot send in a header"),
        (["--max-cost", "0"], "--max-cost must be > 0, got 0"),
        (["--max-seconds", "nan"], "--max-seconds must be > 0, got nan"),
        (["--step-timeout", "-1"], "--step-timeout must be > 0, got -1"),
        (["--rule", "conf"], "unknown rule or recipe 'conf'"),
        (["--model", "nowhere"], "'nowhere' is not a folder"),
        (["--max-length", "20"], "the default length of a request is 48, more than"),
        (["--max-prompt", "0"], "--max-prompt must be >= 1, got 0"),
    ],
)  # fmt: skip
def test_a_wrong_call_is_one_line_and_exit_2(capsys, monkeypatch, arguments, message):
    monkeypatch.delenv("UNMASK_API_KEY", raising=False)
    assert main(["serve", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("unmask serve: ")
    assert message in captured.err
    assert captured.err.count("\n") == 1


def test_a_port_that_is_taken_is_one_line(capsys):
    with listen("127.0.0.1", 0) as bound:
        bound.listen()
        port = bound.getsockname()[1]
        assert main(["serve", "--port", str(port)]) == 2
    assert capsys.readouterr().err == (
        f"unmask serve: port {port} is in use; choose another with --port\n"
    )


def test_without_the_extra_it_says_what_to_install():
    code = (
        "import sys; sys.modules['fastapi'] = None\n"
        "from unmask.cli import main; sys.exit(main(['serve']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (
        2,
        "unmask serve: the server needs fastapi, which is not installed; "
        "pip install 'unmask[serve]'\n",
    )


def test_the_core_and_the_help_do_not_import_the_server():
    code = (
        "import sys, unmask, unmask.cli\n"
        "try: unmask.cli.main(['serve', '--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'fastapi', 'uvicorn', 'pydantic', 'prometheus_client', 'starlette', 'torch'}\n"
        "print(heavy & set(sys.modules))\n"
        "unmask.load(); print({'fastapi', 'uvicorn', 'prometheus_client'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-2:] == ["set()", "set()"]
