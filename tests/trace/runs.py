"""Random runs with their traces, for the tests of this folder."""

from __future__ import annotations

import random
from io import BytesIO
from typing import Any, get_args

from tests.helpers import EOS, MASK, random_lookup
from unmask import Rule, Sampling, Settings, decode_steps, infill_request, prompt_request
from unmask.decoding.options import Eos
from unmask.decoding.request import Request
from unmask.decoding.results import Step
from unmask.models.denoiser import Denoiser
from unmask.trace import Tracer

SAMPLINGS = [Sampling(), Sampling(), Sampling(0.8), Sampling(0.5, top_p=0.8, tempered=True)]


def anything(text: str, seed: int) -> tuple[Denoiser, Request]:
    """A model and any request to it under this rule."""
    pick = random.Random(f"{text} {seed}")
    model = random_lookup(seed, eos=2.0)
    settings = Settings(
        Rule.parse(text),
        pick.choice([None, 3, 4]),
        pick.choice(get_args(Eos)),
        pick.choice(SAMPLINGS),
        pick.choice([None, None, None, 6]),
    )
    ids = [pick.randrange(EOS) for _ in range(pick.randint(1, 10))]
    if pick.random() < 0.3:
        canvas = [pick.choice([MASK, MASK, pick.randrange(EOS)]) for _ in range(12)]
        return model, infill_request(model.spec, [*ids, MASK, *canvas, MASK], settings, seed)
    return model, prompt_request(model.spec, ids, pick.randint(5, 12), settings, seed)


def traced(model: Denoiser, request: Request, **tracer: Any) -> tuple[bytes, list[Step]]:
    """A run's trace and its steps."""
    out = BytesIO()
    writer = Tracer(out, model.spec, request, **tracer)
    steps = []
    for step in decode_steps(model, [request], keep_logits=True):
        steps.append(step)
        writer.see(step)
    writer.close(steps[-1].finished[0], "text")
    return out.getvalue(), steps
