"""Log-probabilities are those of the tokens that stand in the answer."""

from __future__ import annotations

import torch

from tests.helpers import MASK, canvas_of, logits_of, random_lookup
from unmask import Rule, Settings, prompt_request
from unmask.decoding.loop import decode_steps
from unmask.text.logprobs import CommitLogprobs

RULES = [
    "entropy | timesteps(10) | vote(linear)",
    "confidence | swd(1) | threshold(0.4) | revoke(0.2, times=2)",
    "confidence | top(3)",
]


def test_a_log_probability_is_that_of_the_last_token_written_by_the_forward_that_wrote_it():
    compared, missing = 0, 0
    for seed, rule in enumerate(RULES * 4):
        model = random_lookup(seed, dtype=torch.float64, eos=3.0)
        eos = ("keep", "fill", "stop", "last")[seed // 3]
        request = prompt_request(model.spec, [1, 2], 9, Settings(Rule.parse(rule), eos=eos))
        seen, canvas, before = CommitLogprobs(), request.canvas, []
        for step in decode_steps(model, [request], keep_logits=True):
            before.append(canvas.tolist())
            seen.see(step, 0)
            canvas = step.tokens[0]
        entries = seen.of(request, MASK, 9)
        for place, (entry, token) in enumerate(zip(entries, canvas[2:].tolist(), strict=True), 2):
            if entry is None:
                missing += 1
                continue
            logits = logits_of(model, canvas_of(before[entry.forward]))[0, place].clone()
            logits[MASK] = -torch.inf
            assert entry.token == token
            assert abs(entry.logprob - float(logits.log_softmax(-1)[token])) < 1e-9
            compared += 1
    assert compared > 70
    assert missing
