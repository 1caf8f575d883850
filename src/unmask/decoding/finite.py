"""Says why no token can be chosen by the logits of a model."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from unmask.models.denoiser import ModelSpec


def why_no_token(logits: Tensor, spec: ModelSpec, suppressed: Sequence[int], where: str) -> str:
    """Why no token can be chosen by these logits, [V], before any is suppressed."""
    finite = logits.isfinite().nonzero()[:, 0].tolist()
    if finite and set(finite) <= {*suppressed} and bool((logits < torch.inf).all()):
        kinds = {spec.mask_id: "mask", spec.eos_id: "EOS"}
        names = " and ".join(f"the {kinds[token]} token {token}" for token in finite)
        return (
            f"a finite logit only to {names} {where}, which these settings never predict; "
            "check the mask id and the weights"
        )
    return (
        f"NaN, +inf or only -inf logits {where}; check the weights and the dtype (float16 "
        "overflows where bfloat16 does not)"
    )
