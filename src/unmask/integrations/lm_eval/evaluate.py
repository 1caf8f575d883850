"""Evaluation by lm_eval, with the number of forwards added to samples and results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

from lm_eval import evaluator

from unmask.integrations.lm_eval.generation import CountedText
from unmask.integrations.lm_eval.model import UnmaskLM

NAME = "unmask"
COSTS = ("nfe", "tokens")


def simple_evaluate(model: str | Any, *args: Any, **options: Any) -> dict[str, Any] | None:
    """Run `lm_eval.simple_evaluate` and add the costs of texts that `unmask` generated.

    Each sample gets `nfe` and `tokens`, nested like its `resps`; a task's results get the means.
    """
    ours = model == NAME or isinstance(model, UnmaskLM)
    keep_samples = options.pop("log_samples", True)
    results: dict[str, Any] | None = evaluator.simple_evaluate(
        model, *args, **options, log_samples=ours or keep_samples
    )
    if not ours or results is None:  # of several processes only the first gets results
        return results
    for task, samples in results["samples"].items():
        add_costs(samples)
        results["results"][task].update(_means(samples))
        results["higher_is_better"].setdefault(task, {})["nfe"] = False
    if not keep_samples and not options.get("predict_only", False):
        del results["samples"]
    return results


def add_costs(samples: Sequence[dict[str, Any]]) -> None:
    """Add the costs of its texts to each sample; samples of likelihoods get none."""
    for sample in samples:
        texts = [text for texts in sample["resps"] for text in texts]
        if texts and all(isinstance(text, CountedText) for text in texts):
            for name in COSTS:
                sample[name] = [[getattr(t, name) for t in texts] for texts in sample["resps"]]


def _means(samples: Sequence[Mapping[str, Any]]) -> dict[str, float | str]:
    """Mean costs over the documents; a document counts once, not once per filter."""
    documents = {sample["doc_id"]: sample for sample in samples if "nfe" in sample}
    means: dict[str, float | str] = {}
    for name in COSTS if documents else ():
        values = [fmean(n for row in sample[name] for n in row) for sample in documents.values()]
        error = stdev(values) / len(values) ** 0.5 if len(values) > 1 else "N/A"
        means |= {f"{name},none": fmean(values), f"{name}_stderr,none": error}
    return means
