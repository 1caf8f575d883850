"""Serves a checkpoint with SGLang and a rule of unmask, and sends it a prompt.

    python examples/sglang_serve.py MODEL "PROMPT" --rule "confidence | swd(5) | eb(0.1)"

MODEL is the folder of a LLaDA2 or SDAR checkpoint. Arguments after -- go to SGLang:
`-- --tp-size 2` shards the model over two GPUs, `-- --dp-size 2` serves two copies of it.
"""

from __future__ import annotations

import argparse
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from openai import APIConnectionError, OpenAI

from unmask.cli import main as unmask


def main() -> None:
    """Start the server, print its answer, and stop it."""
    arguments, to_sglang = _arguments()
    with TemporaryDirectory() as scratch:
        file = Path(scratch) / "rule.yaml"
        if unmask(
            [
                "export",
                "sglang",
                "--rule",
                arguments.rule,
                "--model",
                arguments.model,
                "-o",
                str(file),
            ]
        ):
            sys.exit(2)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = [sys.executable, "-m", "sglang.launch_server", "--model-path", arguments.model]
        command += ["--trust-remote-code", "--dllm-algorithm", "Unmask", "--port", str(port)]
        command += ["--dllm-algorithm-config", str(file), *to_sglang]
        server = subprocess.Popen(command, stdout=sys.stderr)
        try:
            client = OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none", max_retries=0)
            name = _when_up(client, server)
            stream = client.completions.create(
                model=name, prompt=arguments.prompt, max_tokens=arguments.length, stream=True
            )
            for chunk in stream:  # one block at a time
                print(chunk.choices[0].text, end="", flush=True)
            print()
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(timeout=60)


def _arguments() -> tuple[argparse.Namespace, list[str]]:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("prompt")
    parser.add_argument("--rule", default="confidence | swd(5) | eb(0.1)")
    parser.add_argument("--length", type=int, default=64)
    words = sys.argv[1:]
    cut = words.index("--") if "--" in words else len(words)
    return parser.parse_args(words[:cut]), words[cut + 1 :]


def _when_up(client: OpenAI, server: subprocess.Popen[bytes]) -> str:
    """Wait until the server answers; returns the name of its model."""
    while server.poll() is None:
        try:
            return client.models.list().data[0].id
        except APIConnectionError:
            time.sleep(1)
    sys.exit("SGLang did not start; see its messages above")


if __name__ == "__main__":
    main()
