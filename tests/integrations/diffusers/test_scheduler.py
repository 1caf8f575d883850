"""Our scheduler in the real LLaDA2Pipeline gives the tokens of its own scheduler and of unmask."""

from __future__ import annotations

import sys
from itertools import cycle

import pytest
import torch

import unmask
from tests.in_memory import GOLDEN, tokenizer_in_memory
from unmask.errors import UnmaskError

diffusers = pytest.importorskip("diffusers")
pytestmark = pytest.mark.filterwarnings("ignore")
BLOCK, MASK = 8, 445
PROMPT = [11, 12, 13, 14, 15]
THRESHOLD = {"rule": "confidence | threshold(0.5)", "allow_mask": True}
SWD = "confidence | swd(5) | eb(0.5)"
RULES = (
    SWD,
    "entropy | swd(30) | threshold(-0.7)",
    "margin | top(2)",
    "credit(0.65) | confidence | threshold(0.9)",
    "confidence | swd(1) | klass(0.9, kl=0.001)",
    "confidence | top(2) | revoke(1)",
)


@pytest.fixture(scope="module")
def model():
    return unmask.load(GOLDEN / "llada2-tiny", dtype="float32", block=BLOCK).model


@pytest.fixture
def run(model):
    """The pipeline with a scheduler: its tokens and the number of its forwards."""
    from unmask.integrations.diffusers.model import PipelineModel

    class Counted(PipelineModel):
        forwards = 0

        def forward(self, *arguments, **more):
            self.forwards += 1
            return super().forward(*arguments, **more)

    def call(scheduler, prompts=(PROMPT,), gen_length=19, **more):
        pipe = diffusers.LLaDA2Pipeline(model=Counted(model), scheduler=scheduler)
        pipe.set_progress_bar_config(disable=True)
        plain = {"editing_threshold": None, "eos_early_stop": False, "threshold": 0.5}
        output = pipe(
            input_ids=torch.tensor(prompts),
            gen_length=gen_length,
            mask_token_id=MASK,
            output_type="seq",
            **plain | more,
        )
        return output.sequences.tolist(), pipe.model.forwards

    return call


def theirs():
    return diffusers.BlockRefinementScheduler(block_length=BLOCK)


def ours(**options):
    from unmask.integrations.diffusers.scheduler import UnmaskScheduler

    return UnmaskScheduler.from_config(theirs().config, **options)


@pytest.mark.long
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"gen_length": 11},
        {"editing_threshold": 0.3},
        {"editing_threshold": 0.3, "max_post_steps": 2},
        {"eos_early_stop": True, "eos_token_id": 438},
        {"prompts": (PROMPT, PROMPT[::-1], [7] * 5)},
        {
            "prompts": (PROMPT, PROMPT[::-1]),
            "eos_early_stop": True,
            "eos_token_id": 438,
            "editing_threshold": 0.4,
        },
    ],
    ids=str,
)
def test_the_equal_rule_gives_the_tokens_of_the_pipelines_own_scheduler(run, more):
    expected, most = run(theirs(), **more)
    rows, forwards = run(ours(**THRESHOLD), **more)
    assert _until_end(rows, more) == _until_end(expected, more)
    assert forwards <= most


def test_a_filled_block_takes_no_further_forward(run):
    forwards = [run(scheduler)[1] for scheduler in (theirs(), ours(**THRESHOLD))]
    assert forwards[0] - forwards[1] == 3  # one for each block of 5 + 19 positions


@pytest.mark.parametrize(("rule", "length"), [*zip(RULES, cycle([19, 16]))])
def test_a_rule_gives_the_tokens_and_forwards_of_unmasks_own_decode(run, model, rule, length):
    rows, forwards = run(ours(rule=rule), gen_length=length)
    expected = unmask.decode(model, PROMPT, rule, length=length)
    assert rows == [expected.answer.tolist()]
    assert forwards == expected.nfe


def test_rows_of_a_batch_are_decided_as_if_alone(run):
    prompts = (PROMPT, PROMPT[::-1], [7] * 5)
    together, _ = run(ours(rule=SWD), prompts=prompts)
    assert together == [run(ours(rule=SWD), prompts=(prompt,))[0][0] for prompt in prompts]


def test_an_end_token_stops_a_row_where_unmasks_own_policy_would(run, model):
    ids = unmask.decode(model, PROMPT, SWD, length=19).answer.tolist()
    end = ids[8]
    rows, forwards = run(ours(rule=SWD), eos_early_stop=True, eos_token_id=end)
    place = ids.index(end)
    assert rows[0][: place + 1] == ids[: place + 1]
    assert forwards < run(ours(rule=SWD))[1]


def test_a_block_takes_no_more_forwards_than_the_pipeline_is_asked_for(run):
    rows, forwards = run(ours(rule="confidence | top(1)"), num_inference_steps=3)
    assert forwards == 9  # three for each of the three blocks; the first has three masks
    assert MASK not in rows[0]


def test_draws_follow_the_generator_and_change_with_it(run):
    def drawn(seed, **more):
        generator = torch.Generator().manual_seed(seed)
        return run(ours(rule=SWD), temperature=1.5, generator=generator, **more)[0]

    assert drawn(1) == drawn(1) != drawn(2)
    assert drawn(1, sampling_method="greedy") == run(ours(rule=SWD))[0]


def test_a_call_remembers_nothing_of_the_last_one(run):
    scheduler = ours(rule=SWD)
    first = run(scheduler)
    run(scheduler, prompts=([7] * 5, PROMPT), gen_length=11, num_inference_steps=2)
    assert run(scheduler) == first


def test_edits_do_not_make_a_block_forget_its_history(run):
    """Blocks whose tokens were edited between two forwards are compared with the forward before."""
    from unmask.integrations.diffusers.scheduler import UnmaskScheduler

    scheduler, seen = UnmaskScheduler(block_length=BLOCK, rule="confidence | swd(50) | top(1)"), []
    scheduler.set_timesteps(BLOCK, block_length=BLOCK)
    torch.manual_seed(0)
    block = torch.full((1, BLOCK), MASK)
    for step in range(3):
        logits = torch.randn(1, BLOCK, 512) * 4
        block = scheduler.step(
            logits, step, block, mask_token_id=MASK, editing_threshold=1e-6
        ).prev_sample
        (state,) = scheduler._states
        seen.append((state.key, int(state.rows.state.nfe[0])))
    assert [nfe for _, nfe in seen] == [1, 2, 3]
    assert len({key for key, _ in seen}) == 1


def test_it_is_saved_and_loaded_with_its_rule(tmp_path, run):
    from unmask.integrations.diffusers.scheduler import UnmaskScheduler

    scheduler = ours(rule=SWD)
    scheduler.save_pretrained(tmp_path)
    again = UnmaskScheduler.from_pretrained(tmp_path)
    assert again.config.rule == SWD
    assert again.config.block_length == BLOCK
    assert run(again) == run(scheduler)


def test_a_model_of_transformers_itself_can_sit_in_the_pipeline():
    """The scheduler works with any model, and with the pipeline's padding."""
    from unmask.models.via_transformers import load_carrier

    hosted, _ = load_carrier(GOLDEN / "llada-tiny", dtype=torch.float32)
    ids = torch.tensor([[0, 0, 11, 12], PROMPT[:4]])
    mask = torch.tensor([[0, 0, 1, 1], [1, 1, 1, 1]])

    def tokens(scheduler):
        pipe = diffusers.LLaDA2Pipeline(model=hosted.model, scheduler=scheduler)
        pipe.set_progress_bar_config(disable=True)
        return pipe(
            input_ids=ids,
            attention_mask=mask,
            gen_length=20,
            mask_token_id=hosted.spec.mask_id,
            output_type="seq",
            threshold=0.5,
        ).sequences.tolist()

    assert tokens(ours(**THRESHOLD)) == tokens(theirs())


def test_a_chat_goes_in_and_text_comes_out(model):
    from unmask.integrations.diffusers.model import PipelineModel

    tokenizer = tokenizer_in_memory("llada2-tiny")
    pipe = diffusers.LLaDA2Pipeline(PipelineModel(model), ours(rule=SWD), tokenizer)
    pipe.set_progress_bar_config(disable=True)
    chat = [{"role": "user", "content": "How many?"}]
    output = pipe(messages=chat, gen_length=24, editing_threshold=None)
    prompt = tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_dict=False)
    result = unmask.decode(model, prompt, SWD, length=24)
    ids = result.answer.tolist()
    end = ids.index(tokenizer.eos_token_id) if tokenizer.eos_token_id in ids else len(ids)
    assert output.texts == [tokenizer.decode(ids[:end], skip_special_tokens=True)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rule": "confidenze | top(1)"}, "did you mean 'confidence'"),
        ({"rule": 5}, "rule must be a Rule or its notation, got 5"),
        ({"rule": SWD, "eos": "stop"}, "needs the id of the end token; give eos_id"),
    ],
)
def test_bad_options_are_one_line(options, message):
    with pytest.raises(UnmaskError, match=message) as error:
        ours(**options)
    assert "\n" not in str(error.value)


def test_what_the_pipeline_asks_and_cannot_have_is_one_line(run):
    with pytest.raises(
        UnmaskError, match=r"attends in blocks of 8, .*call the pipeline with block_length=8"
    ):
        run(ours(rule=SWD), block_length=6)
    with pytest.raises(UnmaskError, match="give the pipeline prompts of equal length"):
        run(ours(rule=SWD), attention_mask=torch.tensor([[0, 1, 1, 1, 1]]))
    with pytest.raises(UnmaskError, match="mask_token_id is missing"):
        ours(rule=SWD).step(torch.zeros(1, BLOCK, 9), 0, torch.zeros(1, BLOCK).long())


def test_without_diffusers_the_module_names_the_extra(monkeypatch):
    monkeypatch.delitem(sys.modules, "unmask.integrations.diffusers.scheduler", raising=False)
    monkeypatch.setitem(sys.modules, "diffusers", None)
    with pytest.raises(UnmaskError, match=r"pip install 'unmask\[diffusers\]'"):
        import unmask.integrations.diffusers.scheduler  # noqa: F401


def _until_end(rows, more):
    """Rows up to their end token; the tokens after it are undefined."""
    end = more.get("eos_token_id")
    return [row[: row.index(end) + 1] if end in row else row for row in rows]
