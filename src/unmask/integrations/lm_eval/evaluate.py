"""lm_eval's evaluation with the forwards of every text beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

from lm_eval import evaluator

from unmask.integrations.lm_eval.generation import Generation
from unmask.integrations.lm_eval.model import UnmaskLM

NAME = "unmask"
COSTS = ("nfe", "tokens")


def simple_evaluate(model: str | Any, *args: Any, **options: Any) -> dict[str, Any] | None:
    """`lm_eval.simple_evaluate`, to which NFE is added where texts come from `unmask`.

    A sample has `nfe` and `tokens`, nested as its `resps` are; a task's results have their means.
    """
    if model != NAME and not isinstance(model, UnmaskLM):
        found: dict[str, Any] | None = evaluator.simple_evaluate(model, *args, **options)
        return found
    wanted = options.pop("log_samples", True) or options.get("predict_only", False)
    results: dict[str, Any] | None = evaluator.simple_evaluate(
        model, *args, **options, log_samples=True
    )
    if results is None:  # one of several processes; the first has the results of all
        return None
    for task, samples in results["samples"].items():
        add_costs(samples)
        results["results"][task].update(_means(samples))
        results["higher_is_better"].setdefault(task, {})["nfe"] = False
    if not wanted:
        del results["samples"]
    return results


def add_costs(samples: Sequence[dict[str, Any]]) -> None:
    """Write into each sample what its texts cost; likelihoods have no such figures."""
    for sample in samples:
        texts = [text for texts in sample["resps"] for text in texts]
        if texts and all(isinstance(text, Generation) for text in texts):
            for name in COSTS:
                sample[name] = [[getattr(t, name) for t in texts] for texts in sample["resps"]]


def _means(samples: Sequence[Mapping[str, Any]]) -> dict[str, float | str]:
    """Over the documents, each once, however many filters looked at it."""
    documents = {sample["doc_id"]: sample for sample in samples if "nfe" in sample}
    found: dict[str, float | str] = {}
    for name in COSTS if documents else ():
        values = [fmean(n for row in sample[name] for n in row) for sample in documents.values()]
        error = stdev(values) / len(values) ** 0.5 if len(values) > 1 else "N/A"
        found |= {f"{name},none": fmean(values), f"{name}_stderr,none": error}
    return found
