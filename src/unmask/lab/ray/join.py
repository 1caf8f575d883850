"""Join a Ray cluster, or start one on this machine. Needs the extra `ray`."""

from __future__ import annotations

import logging
import os
import re
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from unmask.errors import LabError

OWN = "local"
LOOPBACK = "127.0.0.2"  # with 127.0.0.1 Ray listens on all interfaces
PATIENCE = 10.0  # seconds to wait for the head of a cluster
SHELVES = 80 * 2**20  # bytes of Ray's object store; our messages are small
_ADDRESS = re.compile(r"(\[[0-9a-fA-F:.]+\]|[\w.-]+):\d{1,5}")
_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    # Ray prints these on stdout, where results belong; we report the first ourselves
    "RAY_DEDUP_LOGS_SKIP_REGEX": "A worker died or was killed|ServeController.graceful_shutdown",
}
_SLOTS = {"cuda": "GPU", "cpu": "CPU"}


@dataclass(frozen=True)
class Cluster:
    """Which cluster to use, and how much of it.

    Args:
        address: HOST:PORT of its head, `auto` for the one that runs on this machine, or `local`
            for one of our own that ends with us.
        workers: processes that each hold a model; None: one for every GPU, else every CPU.
        device: cuda or cpu; None: cuda where the cluster has GPUs.
        cpus: for each of them.
    """

    address: str = OWN
    workers: int | None = None
    device: str | None = None
    cpus: int = 1

    def __post_init__(self) -> None:
        if self.address.startswith("ray://"):
            raise LabError(
                f"{self.address} is an address of Ray's client, which is not supported; run the "
                "command on a machine of the cluster with --ray auto"
            )
        if self.address not in (OWN, "auto") and not _ADDRESS.fullmatch(self.address):
            raise LabError(
                f"--ray takes HOST:PORT, auto, or nothing (a cluster of its own), got "
                f"{self.address!r}; write other arguments before --ray"
            )
        if self.device is not None and self.device not in _SLOTS:
            raise LabError(
                f"on a cluster --device is {' or '.join(_SLOTS)}, got {self.device!r}; Ray "
                "chooses the device of each worker"
            )
        if self.workers is not None and self.workers < 1:
            raise LabError(f"the number of workers must be >= 1, got {self.workers}")


@dataclass(frozen=True)
class Slots:
    """The room that a joined cluster has for models."""

    ray: Any  # the module
    device: str
    count: int
    cpus: int = 1

    @property
    def needs(self) -> dict[str, float]:
        """The resources that Ray reserves for each worker."""
        return {"num_cpus": self.cpus, "num_gpus": 1 if self.device == "cuda" else 0}


def address_of(given: str) -> str:
    """The given address, else RAY_ADDRESS, else `local` for a cluster of our own."""
    return given or os.environ.get("RAY_ADDRESS") or OWN


@contextmanager
def joined(cluster: Cluster) -> Iterator[Slots]:
    """Join the cluster and leave it afterwards, unless this program had joined before."""
    ray = _ray()
    if ray.is_initialized():
        here = ray.get_runtime_context().gcs_address
        if cluster.address not in (OWN, "auto", here):
            raise LabError(f"this program has joined the Ray cluster at {here} already")
        yield _slots(ray, cluster)
        return
    try:
        _join(ray, cluster)
        yield _slots(ray, cluster)
    finally:
        ray.shutdown()


def first_line(error: Exception) -> str:
    """The first line of an error of Ray."""
    lines = str(error).strip().splitlines()
    return lines[0].strip() if lines else type(error).__name__


def _ray() -> Any:
    for name, value in _QUIET.items():  # Ray reads them when it is imported
        os.environ.setdefault(name, value)
    try:
        import ray
    except ImportError:
        raise LabError(
            "a cluster needs ray, which is not installed; pip install 'unmask[ray]'"
        ) from None
    return ray


def _join(ray: Any, cluster: Cluster) -> None:
    if _ADDRESS.fullmatch(cluster.address):
        _check_reachable(cluster.address)
    try:
        ray.init(**_arguments(cluster))
    except (ConnectionError, OSError, RuntimeError, ValueError) as error:
        raise LabError(f"no Ray cluster at {cluster.address}: {first_line(error)}") from None


def _check_reachable(address: str) -> None:
    """Raise at once if nothing listens there; Ray would wait for minutes."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=PATIENCE).close()
    except (OSError, OverflowError) as error:
        raise LabError(f"no Ray cluster at {address}: {error}") from None


def _arguments(cluster: Cluster) -> dict[str, Any]:
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    if cluster.address != OWN:
        return {"address": cluster.address, **quiet}
    arguments = {
        "address": OWN,
        "include_dashboard": False,
        "object_store_memory": SHELVES,
        **quiet,
    }
    if sys.platform == "linux":
        arguments["_node_ip_address"] = LOOPBACK
    if cluster.workers is not None and cluster.device != "cuda":
        arguments["num_cpus"] = cluster.workers * cluster.cpus
    return arguments


def _slots(ray: Any, cluster: Cluster) -> Slots:
    has = ray.cluster_resources()
    device = cluster.device or ("cuda" if has.get("GPU") else "cpu")
    count = int(has.get(_SLOTS[device], 0) / (1 if device == "cuda" else cluster.cpus))
    if count < 1:
        raise LabError(
            f"the Ray cluster has no {_SLOTS[device]} for a worker; it has {_counts(has)}"
        )
    return Slots(ray, device, cluster.workers or count, cluster.cpus)


def _counts(has: dict[str, float]) -> str:
    return ", ".join(f"{has.get(kind, 0):g} {kind}s" for kind in _SLOTS.values())
