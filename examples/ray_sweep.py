"""Runs a sweep on a Ray cluster from Python: two rules, two workers, one table.

    python examples/ray_sweep.py [STORE]

It joins the cluster at RAY_ADDRESS, or starts one. A second run decodes nothing twice. A run that
was killed continues, and so does a run that lost a worker.
"""

from __future__ import annotations

import sys
from pathlib import Path

from unmask.cli.lab_options import progress
from unmask.lab.grading import Tools
from unmask.lab.ray.join import Cluster, address_of
from unmask.lab.sweep.grid import sweep_of
from unmask.lab.sweep.plan import plan
from unmask.lab.sweep.run import run
from unmask.lab.sweep.run_options import RunOptions
from unmask.lab.sweep.tables import plain_table

SWEEP = {
    "task": "words",
    "rule": "confidence | swd({0,5}) | eb(0.1)",
    "block": "full",
    "length": 24,
    "limit": 20,
}


def main(store: Path) -> None:
    """Decode on two workers, grade here, and print the results."""
    works = plan(sweep_of(SWEEP, "example", {}, "this example").settings, data=None)
    options = RunOptions(store, cluster=Cluster(address_of(""), workers=2))
    with Tools() as tools, progress() as bars:
        run(works, options, tools, bars)
    print("\n".join(plain_table(store, [work.trial for work in works])))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "ray-example.sqlite"))
