"""`unmask serve`: serve a model over OpenAI's API."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from unmask.cli.options import examples, import_all, refuse, session_of
from unmask.cli.run import add_control, add_decoding, add_model, say_rule
from unmask.decoding.options import MOST
from unmask.embedded import NAME
from unmask.errors import RequestError

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from unmask.server.prepare import ServedModel
    from unmask.server.service import Service
    from unmask.text.session import Session

KEY = "UNMASK_API_KEY"


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    command = subparsers.add_parser(
        "serve",
        help="serve a model over OpenAI's HTTP API",
        description="Serves /v1/chat/completions, /v1/completions, /v1/models, /health, /metrics "
        "and a playground at / until it is interrupted. It then finishes the requests it has. "
        "Needs the extra 'serve'.",
        epilog=examples(
            "unmask serve",
            "unmask serve --model FOLDER --rule swd-block32",
            "UNMASK_API_KEY=KEY unmask serve --host 0.0.0.0",
        ),
    )
    add_model(command.add_argument_group("model"))
    add_decoding(command.add_argument_group("decoding (defaults of a request)"))
    _add_serving(command.add_argument_group("serving"))
    add_control(command.add_argument_group("prompts"))
    _add_limits(command.add_argument_group("limits of a request"))
    command.set_defaults(run=run)


def _add_serving(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--host", default="127.0.0.1", metavar="NAME", help="listen here (default: 127.0.0.1)")
    add("--port", type=int, default=8000, metavar="N", help="0 picks a free port (default: 8000)")
    add("--api-key", metavar="KEY", help=f"clients must send this key; safer: set {KEY}")
    add(
        "--allow-host", action="append", default=[], metavar="NAME",
        help="accept this name in the Host header of requests to a loopback server, such as a "
        "proxy's; may be repeated",
    )  # fmt: skip
    name = "id of the model in the API (default: the model's own name)"
    add("--served-model-name", metavar="NAME", help=name)
    log = "print no line for each answered request; with --ray none is printed"
    add("--no-access-log", dest="access_log", action="store_false", help=log)
    add("--batch-size", type=int, default=8, metavar="N", help="rows at once (default: 8)")
    add("--queue", type=int, default=64, metavar="N", help="rows that may wait (default: 64)")
    grace = "end within this many seconds after a signal, at least 3 (default: 30)"
    add("--grace", type=float, default=30.0, metavar="S", help=grace)
    add(
        "--ray", nargs="?", const="", metavar="ADDRESS",
        help="run replicas on the Ray cluster at HOST:PORT, or auto for this machine's cluster; "
        "without ADDRESS, on RAY_ADDRESS or a new cluster",
    )  # fmt: skip
    add("--replicas", type=int, metavar="N", help="with --ray: number of replicas (default: 1)")
    threads = "torch threads (default: 1 for the embedded model, else torch's own)"
    add("--threads", type=int, metavar="N", help=threads)


def _add_limits(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    max_length = "most tokens that a request may write (default: 1024)"
    add("--max-length", type=int, default=1024, metavar="N", help=max_length)
    cost = "most forwards times positions of a request, over all its choices (default: 1e7)"
    add("--max-cost", type=float, default=1e7, metavar="X", help=cost)
    seconds = "most seconds that a request may decode (default: 1800)"
    add("--max-seconds", type=float, default=1800.0, metavar="S", help=seconds)
    step = "refuse all requests with 503 once a step takes longer than this (default: 120)"
    add("--step-timeout", type=float, default=120.0, metavar="S", help=step)
    max_prompt = "most tokens of a prompt (default: the model's context, at most 4096)"
    add("--max-prompt", type=int, metavar="N", help=max_prompt)


def run(arguments: argparse.Namespace) -> int:
    """Serve until a signal."""
    key = arguments.api_key or os.environ.get(KEY) or None
    _check(arguments)
    if key is not None and not (key.isascii() and key.isprintable() and " " not in key):
        raise RequestError(
            f"the key in {'--api-key' if arguments.api_key else KEY} has a blank or a character "
            "that is not ASCII, which clients cannot send in a header; choose another"
        )
    _require_packages()
    from unmask.server.guard import is_loopback

    if not is_loopback(arguments.host) and key is None:
        raise RequestError(
            f"the host {arguments.host!r} can be reached from other machines; set {KEY}, or use "
            "127.0.0.1"
        )
    if arguments.ray is not None:
        return _run_on_cluster(arguments, key)
    return _run_here(arguments, key)


def _run_here(arguments: argparse.Namespace, key: str | None) -> int:
    from unmask.server.alarm import Alarm
    from unmask.server.run import listen, server_of

    served = served_model(arguments)
    with listen(arguments.host, arguments.port) as bound:
        say_rule("serve", served.session)
        service, app = _service(served, arguments, key)
        service.engine.alarm = Alarm(arguments.step_timeout + 5)
        host, port = bound.getsockname()[:2]
        where = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        ready = f"unmask serve: {served.name} on {where}"
        log_to_stderr(arguments.access_log)
        server = server_of(app, service, arguments.grace, lambda: _say(ready))
        service.start()
        try:
            server.run([bound])
        finally:
            stopped = service.stop(min(5.0, server.seconds_left / 2))
        if not stopped:  # its thread may keep the interpreter from ending
            _say("unmask serve: a step did not end; its requests were answered with 503")
            os._exit(1)
    return 0


def _run_on_cluster(arguments: argparse.Namespace, key: str | None) -> int:
    from unmask.lab.ray.join import Cluster, address_of, joined
    from unmask.server.replicas import serve_on

    count, threads = arguments.replicas or 1, arguments.threads or 1
    cluster = Cluster(address_of(arguments.ray), count, arguments.device, threads)
    options = {**vars(arguments), "run": None, "device": "cpu"}  # this process decodes nothing
    name = served_model(argparse.Namespace(**options)).name
    if Path(arguments.model).expanduser().is_dir():
        options["model"] = str(Path(arguments.model).expanduser().absolute())
    with joined(cluster) as slots:
        options["device"] = slots.device
        make = partial(service_of, argparse.Namespace(**options), key)
        serve_on(slots, make, arguments, lambda where: _say(f"unmask serve: {name} on {where}"))
    return 0


def service_of(arguments: argparse.Namespace, key: str | None) -> tuple[Service, ASGIApp]:
    """A server with these options that is not started and has no port."""
    import_all(arguments)
    return _service(served_model(arguments), arguments, key)


def _service(
    served: ServedModel, arguments: argparse.Namespace, key: str | None
) -> tuple[Service, ASGIApp]:
    from unmask.server.app import create_app
    from unmask.server.guard import is_loopback
    from unmask.server.service import Service

    session = served.session
    _use_threads(session, arguments.threads)
    size, queue = arguments.batch_size, arguments.queue
    service = Service(served, session.model(), size, queue, session.tracer)
    hosts = arguments.allow_host if is_loopback(arguments.host) else None
    return service, create_app(service, key, hosts)


def log_to_stderr(requests: bool) -> None:
    """Print what the server logs; with `requests` also a line for each answered request."""
    from unmask.server.engine import LOG
    from unmask.server.metrics import REQUESTS

    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("unmask serve: %(message)s"))
    LOG.handlers, LOG.propagate = [handler], False
    LOG.setLevel(logging.INFO)
    REQUESTS.setLevel(logging.INFO if requests else logging.WARNING)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _check(arguments: argparse.Namespace) -> None:
    wrong = {
        f"--batch-size must be from 1 to {MOST}, got {arguments.batch_size}": (
            not 1 <= arguments.batch_size <= MOST
        ),
        f"--queue must be from 0 to {MOST}, got {arguments.queue}": (
            not 0 <= arguments.queue <= MOST
        ),
        f"--grace must be >= 0, got {arguments.grace}": not arguments.grace >= 0,
        f"--port must be 0..65535, got {arguments.port}": not 0 <= arguments.port <= 65535,
        f"--threads must be >= 1, got {arguments.threads}": arguments.threads is not None
        and arguments.threads < 1,
        f"--replicas must be >= 1, got {arguments.replicas}": arguments.replicas is not None
        and arguments.replicas < 1,
        "--replicas needs --ray": arguments.replicas is not None and arguments.ray is None,
        "--api-key must not be empty": arguments.api_key == "",
        "--served-model-name must not be empty": arguments.served_model_name == "",
    }
    refuse(wrong)


def _require_packages() -> None:
    for name in ("fastapi", "prometheus_client", "uvicorn"):
        if find_spec(name) is None:
            raise RequestError(
                f"the server needs {name}, which is not installed; pip install 'unmask[serve]'"
            )


def served_model(arguments: argparse.Namespace) -> ServedModel:
    """The model with its public name, the defaults of a request and its limits."""
    from unmask.server.limits import RequestLimits
    from unmask.server.prepare import ServedModel

    session = session_of(arguments)
    limits = RequestLimits(
        length=arguments.max_length,
        prompt=_max_prompt(arguments.max_prompt, session.context),
        cost=arguments.max_cost,
        decode_seconds=arguments.max_seconds,
        step_seconds=arguments.step_timeout,
    )
    length = session.resolve().length
    if length > limits.length:
        raise RequestError(
            f"the default length of a request is {length}, more than --max-length "
            f"{limits.length}; give a smaller --length"
        )
    is_folder = Path(session.name).expanduser().is_dir()
    own_name = session.spec.name if is_folder else session.name
    return ServedModel(arguments.served_model_name or own_name, session, limits)


def _max_prompt(given: int | None, context: int | None) -> int:
    """The tokens that a prompt may have: never more than the model's context."""
    if given is None:
        return min(4096, context or 4096)
    if context is not None and given > context:
        raise RequestError(f"--max-prompt must be <= {context}, the model's context, got {given}")
    return given


def _use_threads(session: Session, threads: int | None) -> None:
    import torch

    if threads is None and session.name == NAME:
        threads = 1  # the embedded model is too small for more
    if threads is not None:
        torch.set_num_threads(threads)
