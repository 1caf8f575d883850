"""`unmask serve`: a model behind OpenAI's API."""

from __future__ import annotations

import argparse
import os
import sys
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from unmask.cli.importing import import_all
from unmask.cli.run import add_decoding, add_model
from unmask.errors import RequestError

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from unmask.server.prepare import ServedModel
    from unmask.server.service import Service
    from unmask.text.job import Job

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
        "--ray", nargs="?", const="", metavar="ADDRESS",
        help="replicas on a Ray cluster: HOST:PORT, auto (the one of this machine), or nothing "
        "(RAY_ADDRESS, else one of its own)",
    )  # fmt: skip
    group.add_argument(
        "--replicas", type=int, metavar="N", help="with --ray, on a GPU or CPU each (1)"
    )
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
    from unmask.server.guard import is_loopback

    if not is_loopback(arguments.host) and key is None:
        raise RequestError(
            f"the host {arguments.host!r} can be reached from outside; set {KEY}, or serve on "
            "127.0.0.1"
        )
    if arguments.ray is not None:
        return _run_on_cluster(arguments, key)
    return _run_here(arguments, key)


def _run_here(arguments: argparse.Namespace, key: str | None) -> int:
    from unmask.server.run import listen, server_of
    from unmask.text.job import Job

    job = Job.of(arguments)
    served = _served(job, arguments)
    with listen(arguments.host, arguments.port) as bound:
        service, app = _service(job, served, key)
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


def _run_on_cluster(arguments: argparse.Namespace, key: str | None) -> int:
    from unmask.lab.ray.join import Cluster, address_of, joined
    from unmask.server.replicas import serve_on
    from unmask.text.job import Job

    count, threads = arguments.replicas or 1, arguments.threads or 1
    cluster = Cluster(address_of(arguments.ray), count, arguments.device, threads)
    options = {**vars(arguments), "run": None, "device": "cpu"}  # here nothing is decoded
    name = _served(Job.of(argparse.Namespace(**options)), arguments).name
    if Path(arguments.model).expanduser().is_dir():
        options["model"] = str(Path(arguments.model).expanduser().absolute())
    with joined(cluster) as slots:
        options["device"] = slots.device
        make = partial(service_of, argparse.Namespace(**options), key)
        serve_on(slots, make, arguments, lambda where: _say(f"unmask serve: {name} on {where}"))
    return 0


def service_of(arguments: argparse.Namespace, key: str | None) -> tuple[Service, ASGIApp]:
    """A whole server as these options have it, but for the port; not yet started."""
    from unmask.text.job import Job

    import_all(arguments)
    job = Job.of(arguments)
    return _service(job, _served(job, arguments), key)


def _service(job: Job, served: ServedModel, key: str | None) -> tuple[Service, ASGIApp]:
    from unmask.server.app import create_app
    from unmask.server.guard import is_loopback
    from unmask.server.service import Service

    options = job.options
    _use_threads(job, options.threads)
    service = Service(served, job.load(), options.batch_size, options.queue, job.tracer)
    hosts = options.allow_host if is_loopback(options.host) else None
    return service, create_app(service, key, hosts)


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
        f"--replicas must be >= 1, got {arguments.replicas}": arguments.replicas is not None
        and arguments.replicas < 1,
        "--replicas needs --ray": arguments.replicas is not None and arguments.ray is None,
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


def _served(job: Job, arguments: argparse.Namespace) -> ServedModel:
    """The model by the name that clients know it by."""
    from unmask.server.limits import RequestLimits
    from unmask.server.prepare import ServedModel

    limits = RequestLimits(length=arguments.max_length, prompt=arguments.max_prompt)
    if job.length > limits.length:
        raise RequestError(
            f"requests get {job.length} tokens where they do not say, and --max-length is "
            f"{limits.length}; give a smaller --length"
        )
    name = job.model_name
    if Path(name).expanduser().is_dir():
        name = job.shape.folder.resolve().name
    return ServedModel(name, job.shape, job.asked, limits, arguments.seed)


def _use_threads(job: Job, threads: int | None) -> None:
    import torch

    from unmask import embedded

    if threads is None and job.shape.folder == embedded.FOLDER:
        threads = 1  # far too small for more
    if threads is not None:
        torch.set_num_threads(threads)
