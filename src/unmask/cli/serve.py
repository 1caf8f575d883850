"""`unmask serve`: a model behind OpenAI's API."""

from __future__ import annotations

import argparse
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from unmask.cli.run import add_decoding, add_model
from unmask.errors import RequestError

if TYPE_CHECKING:
    from unmask.cli.job import Job
    from unmask.server.prepare import Served

KEY = "UNMASK_API_KEY"


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    command = subparsers.add_parser(
        "serve",
        help="serve a model over HTTP, as OpenAI's API has it",
        description="Answers /v1/chat/completions, /v1/completions and /v1/models, with /health "
        "and /metrics beside them, until it is interrupted; then it finishes what it has begun. "
        "Needs the extra 'serve'.",
        epilog="""examples: unmask serve; unmask serve --model FOLDER --rule swd-block32;
        UNMASK_API_KEY=... unmask serve --host 0.0.0.0""",
    )
    add_model(command.add_argument_group("model"))
    add_decoding(command.add_argument_group("decoding, where a request says nothing"))
    _add_serving(command.add_argument_group("serving"))
    _add_limits(command.add_argument_group("limits"))
    command.set_defaults(run=run, chat=None, system=None, infill=False)


def _add_serving(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--host", default="127.0.0.1", metavar="NAME", help="(127.0.0.1)")
    group.add_argument("--port", type=int, default=8000, metavar="N", help="0: any free one (8000)")
    group.add_argument(
        "--api-key", metavar="KEY", help=f"what clients must know; better given in {KEY}"
    )
    group.add_argument(
        "--allow-host", action="append", default=[], metavar="NAME",
        help="another name that requests may call a loopback server by, such as a proxy's",
    )  # fmt: skip
    group.add_argument("--batch-size", type=int, default=8, metavar="N", help="rows at once (8)")
    group.add_argument("--queue", type=int, default=64, metavar="N", help="rows that wait (64)")
    group.add_argument(
        "--grace", type=float, default=30.0, metavar="S",
        help="seconds to finish in when interrupted (30)",
    )  # fmt: skip
    group.add_argument(
        "--threads", type=int, metavar="N", help="of torch (embedded: 1, else torch's choice)"
    )


def _add_limits(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--max-length", type=int, default=1024, metavar="N", help="tokens to write (1024)"
    )
    group.add_argument(
        "--max-prompt", type=int, default=4096, metavar="N", help="tokens of a prompt (4096)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Serve until a signal comes."""
    key = arguments.api_key or os.environ.get(KEY) or None
    _check(arguments)
    _require_packages()
    from unmask.cli.job import Job
    from unmask.server.app import create_app
    from unmask.server.guard import is_loopback
    from unmask.server.run import listen, server_of
    from unmask.server.service import Service

    local = is_loopback(arguments.host)
    if not local and key is None:
        raise RequestError(
            f"the host {arguments.host!r} can be reached from outside; set {KEY}, or serve on "
            "127.0.0.1"
        )
    job = Job.of(arguments)
    served = _served(job, arguments)
    with listen(arguments.host, arguments.port) as bound:
        _use_threads(job, arguments.threads)
        model, size = job.load(), arguments.batch_size
        service = Service(served, model, size, arguments.queue, job.tracer)
        app = create_app(service, key, arguments.allow_host if local else None)
        host, port = bound.getsockname()[:2]
        where = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        ready = f"unmask serve: {served.name} on {where}"
        server = server_of(app, service, arguments.grace, lambda: _say(ready))
        service.start()
        try:
            server.run([bound])
        finally:
            service.stop()
    return 0


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _check(arguments: argparse.Namespace) -> None:
    wrong = {
        f"--batch-size must be >= 1, got {arguments.batch_size}": arguments.batch_size < 1,
        f"--queue must be >= 0, got {arguments.queue}": arguments.queue < 0,
        f"--grace must be >= 0, got {arguments.grace}": not arguments.grace >= 0,
        f"--port must be 0..65535, got {arguments.port}": not 0 <= arguments.port <= 65535,
        f"--seed must be >= 0, got {arguments.seed}": arguments.seed < 0,
        f"--threads must be >= 1, got {arguments.threads}": arguments.threads is not None
        and arguments.threads < 1,
        "--api-key must not be empty": arguments.api_key == "",
    }
    for message, holds in wrong.items():
        if holds:
            raise RequestError(message)


def _require_packages() -> None:
    for name in ("fastapi", "prometheus_client", "uvicorn"):
        if find_spec(name) is None:
            raise RequestError(
                f"the server needs {name}, which is not installed; pip install 'unmask[serve]'"
            )


def _served(job: Job, arguments: argparse.Namespace) -> Served:
    """The model by the name that clients know it by."""
    from unmask.server.limits import Limits
    from unmask.server.prepare import Served

    limits = Limits(length=arguments.max_length, prompt=arguments.max_prompt)
    if job.length > limits.length:
        raise RequestError(
            f"requests get {job.length} tokens where they do not say, and --max-length is "
            f"{limits.length}; give a smaller --length"
        )
    name = job.model_name
    if Path(name).expanduser().is_dir():
        name = job.shape.folder.resolve().name
    return Served(name, job.shape, job.asked, limits, arguments.seed)


def _use_threads(job: Job, threads: int | None) -> None:
    import torch

    from unmask import embedded

    if threads is None and job.shape.folder == embedded.FOLDER:
        threads = 1  # far too small for more
    if threads is not None:
        torch.set_num_threads(threads)
