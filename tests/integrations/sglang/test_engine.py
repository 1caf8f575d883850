"""The real SGLang on the CPU serves tiny checkpoints with our rules, over its OpenAI endpoint."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.paths import ROOT

pytest.importorskip("sglang", reason="SGLang is not installed: make test-engines")
from tests.integrations.sglang.engine_checkpoints import FAMILIES, make_served
from tests.integrations.sglang.served import ON_THE_CPU, served
from unmask import decode
from unmask.models.load import load

SWD = "confidence | swd(5) | eb(0.1)"
PROMPTS = [
    "What-is-2+2?",
    "x",
    "A-prompt-that-is-longer-than-one-block-of-any-of-the-two-families,so-that-it-is-prefilled.",
    "def-f(x):",
    "(((((())))))",
    "Once-upon-a-time-there-was",
]
LENGTH = 40


@pytest.fixture(scope="module", params=list(FAMILIES))
def checkpoint(request, tmp_path_factory):
    folder = make_served(tmp_path_factory.mktemp(request.param) / "tiny", request.param)
    return load(folder, exact=True), folder


@pytest.fixture
def launch(checkpoint, tmp_path):
    """Starts a server of the checkpoint with a rule, or with an algorithm of SGLang."""

    def start(algorithm, options, *arguments, workers=1):
        file = tmp_path / f"{algorithm}.yaml"
        file.write_text("".join(f"{key}: {value}\n" for key, value in options.items()))
        chosen = ["--dllm-algorithm", algorithm, "--dllm-algorithm-config", str(file)]
        return served(
            checkpoint[1], tmp_path / f"{algorithm}-run", *chosen, *arguments, workers=workers
        )

    return start


def own(checkpoint, prompt, rule=SWD):
    """The text of `unmask.decode`, and the forwards that an engine needs for it."""
    (model, tokenizer), _ = checkpoint
    ids = tokenizer.encode(prompt)
    result = decode(model, ids, rule, length=LENGTH)
    block = model.spec.block
    written = -(-(len(ids) + LENGTH) // block) - len(ids) // block  # blocks that hold masks
    kept = written + len(ids) // block  # one forward each stores the final KV
    return tokenizer.decode(result.answer.tolist()), result.nfe + kept


def all_at_once(server):
    with ThreadPoolExecutor(len(PROMPTS)) as pool:
        return list(pool.map(lambda prompt: server.complete(prompt, LENGTH), PROMPTS))


def test_low_confidence_and_the_equal_rule_give_the_same_tokens_and_forwards(checkpoint, launch):
    outcomes = {}
    equal = {"rule": "confidence | threshold(0.9)", "allow_mask": "true"}
    for algorithm, options in (("LowConfidence", {"threshold": 0.9}), ("Unmask", equal)):
        with launch(algorithm, options) as server:
            texts, forwards = [], []
            for prompt in PROMPTS:
                before = server.forwards()
                texts.append(server.complete(prompt, LENGTH))
                forwards.append(server.forwards()[0] - (before or [0])[0])
            outcomes[algorithm] = texts, forwards
    assert outcomes["Unmask"] == outcomes["LowConfidence"]
    assert all(len(text) == LENGTH for text in outcomes["Unmask"][0])


def test_swd_in_the_engine_is_unmasks_own_decode_to_the_token_and_the_forward(checkpoint, launch):
    with launch("Unmask", {"rule": SWD}) as server:
        before = 0
        for prompt in PROMPTS:
            text, forwards = own(checkpoint, prompt)
            assert server.complete(prompt, LENGTH) == text
            assert server.forwards() == [before + forwards]
            before += forwards
        assert all_at_once(server) == [own(checkpoint, prompt)[0] for prompt in PROMPTS]
        chat = server.client.chat.completions.create(
            model="tiny",
            messages=[{"role": "user", "content": PROMPTS[0]}],
            max_tokens=LENGTH,
            temperature=0,
        )
        assert chat.choices[0].message.content == own(checkpoint, PROMPTS[0])[0]
        plain = [own(checkpoint, prompt, "confidence | eb(0.1)")[0] for prompt in PROMPTS]
        assert all_at_once(server) != plain  # the history changes the texts


def test_swd_in_synchronous_mode_is_the_same(checkpoint, launch):
    with launch("Unmask", {"rule": SWD}, "--no-dllm-fdfo") as server:
        assert all_at_once(server) == [own(checkpoint, prompt)[0] for prompt in PROMPTS]


@pytest.mark.parametrize("parallel", ["--tp-size", "--dp-size"])
def test_swd_on_two_workers_is_the_same(checkpoint, launch, parallel):
    with launch("Unmask", {"rule": SWD}, parallel, "2", workers=2) as server:
        assert all_at_once(server) == [own(checkpoint, prompt)[0] for prompt in PROMPTS]
        first, second = server.forwards()
        assert first
        assert second
        if parallel == "--tp-size":
            assert first == second


def test_a_wrong_rule_stops_the_launch_with_a_last_line_that_says_why(tmp_path, launch):
    said = "--dllm-algorithm-config: unknown rule part 'confidance'; did you mean 'confidence'?"
    with (
        pytest.raises(AssertionError, match="did not come up"),
        launch("Unmask", {"rule": "confidance | top(1)"}),
    ):
        pass
    assert said in (tmp_path / "Unmask-run" / "log").read_text().strip().splitlines()[-1]


def test_the_example_serves_asks_and_ends(checkpoint):
    root = ROOT
    words = [str(checkpoint[1]), PROMPTS[0], "--rule", SWD, "--length", str(LENGTH)]
    done = subprocess.run(
        [sys.executable, "examples/sglang_serve.py", *words, "--", *ON_THE_CPU],
        cwd=root,
        env={**os.environ, "SGLANG_USE_CPU_ENGINE": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines()[-1] == own(checkpoint, PROMPTS[0])[0]
