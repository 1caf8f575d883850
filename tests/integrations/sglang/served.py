"""Runs the real SGLang on the CPU in its own process, and counts its forwards."""

from __future__ import annotations

import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from openai import OpenAI

PATIENCE = 400  # seconds until it is up, on a busy machine
ON_THE_CPU = shlex.split(
    "--device cpu --dtype float32 --attention-backend torch_native --sampling-backend pytorch "
    "--grammar-backend none --disable-cuda-graph --disable-radix-cache --chunked-prefill-size -1 "
    "--max-total-tokens 2048 --mem-fraction-static 0.3 --max-running-requests 4 "
    "--skip-server-warmup --trust-remote-code --log-level warning"
)
COUNTER = '''"""Appends to a file of each process for every forward of SGLang's model runner."""
import os
from pathlib import Path


def register():
    from sglang.srt.plugins.hook_registry import HookRegistry

    target = "sglang.srt.model_executor.model_runner.ModelRunner.forward"
    HookRegistry.register(target, count)


def count(result, *_, **__):
    with (Path(os.environ["COUNTED_IN"]) / str(os.getpid())).open("a") as file:
        file.write(".")
'''


@dataclass(frozen=True)
class Served:
    """A server that is up."""

    client: OpenAI
    counted: Path

    def forwards(self) -> list[int]:
        """How many forwards each worker process has made."""
        return [file.stat().st_size for file in sorted(self.counted.iterdir())]

    def complete(self, prompt: str, length: int) -> str:
        """A text continued through the OpenAI endpoint."""
        answer = self.client.completions.create(
            model="tiny", prompt=prompt, max_tokens=length, temperature=0
        )
        return answer.choices[0].text


@contextmanager
def served(folder: Path, scratch: Path, *arguments: str, workers: int = 1) -> Iterator[Served]:
    """Launch SGLang as a user does, with these further arguments."""
    counted, port = scratch / "counted", _free_port()
    counted.mkdir(parents=True)
    _install_counter(scratch)
    command = [sys.executable, "-m", "sglang.launch_server", "--model-path", str(folder)]
    command += [*ON_THE_CPU, "--port", str(port), "--served-model-name", "tiny", *arguments]
    with (scratch / "log").open("w") as log:
        process = subprocess.Popen(
            command,
            env=_environment(scratch, counted, workers),
            stdout=log,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    try:
        _wait(process, port, scratch / "log")
        base = f"http://127.0.0.1:{port}/v1"
        with OpenAI(base_url=base, api_key="none", max_retries=0, timeout=300) as client:
            yield Served(client, counted)
    finally:
        _stop(process)


def _environment(scratch: Path, counted: Path, workers: int) -> dict[str, str]:
    paths = [str(scratch), *filter(None, [os.environ.get("PYTHONPATH")])]
    cores = sorted(os.sched_getaffinity(0))
    bound = "|".join(str(cores[worker % len(cores)]) for worker in range(workers))
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "COUNTED_IN": str(counted),
        "SGLANG_USE_CPU_ENGINE": "1",
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        **({"SGLANG_CPU_OMP_THREADS_BIND": bound} if workers > 1 else {}),
    }


def _install_counter(scratch: Path) -> None:
    """Install a second plug-in, which SGLang finds through its entry point."""
    (scratch / "forward_counter.py").write_text(COUNTER)
    info = scratch / "forward_counter-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: forward-counter\nVersion: 1\n")
    (info / "entry_points.txt").write_text(
        "[sglang.srt.plugins]\nforward_counter = forward_counter:register\n"
    )


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if process.poll() is not None:
            break
        try:
            with urlopen(f"http://127.0.0.1:{port}/v1/models", timeout=5):
                return
        except (URLError, OSError):
            time.sleep(0.5)
    raise AssertionError(f"SGLang did not come up: {log.read_text()[-3000:]}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End the server and the workers of its session."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, sign)
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            continue
        except ProcessLookupError:
            break
    process.wait(timeout=20)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port
