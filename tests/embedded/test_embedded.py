"""The model inside the package: an ordinary checkpoint that can do what is said of it."""

from itertools import islice

import pytest
import torch

import unmask
from unmask.embedded import DTYPE, FOLDER, LENGTH, NAME
from unmask.embedded.tasks import TASKS
from unmask.lab.stats import paired
from unmask.models.describe import describe, require_folder
from unmask.models.load import find_folder

MEGABYTE = 2**20
SPECIAL = ("<|endoftext|>", "<|mdm_mask|>", "<|eot_id|>", "<|user|>", "<|assistant|>")


@pytest.fixture(scope="module")
def loaded():
    return unmask.load()


@pytest.fixture
def tokenizer(loaded):
    return loaded.tokenizer


def test_it_is_what_load_gives_where_nothing_is_asked_for(loaded):
    named, folder = unmask.load(NAME), unmask.load(FOLDER)
    for other in (named, folder):
        assert other.model.spec == loaded.model.spec
        for name, tensor in loaded.model.module.state_dict().items():
            assert torch.equal(other.model.module.state_dict()[name], tensor)
    assert find_folder(NAME) == require_folder(NAME) == FOLDER


def test_it_computes_in_float32_unless_told(loaded):
    assert DTYPE == "float32"
    assert loaded.model.dtype == torch.float32
    assert unmask.load(dtype="bfloat16").model.dtype == torch.bfloat16


def test_it_is_small(loaded):
    assert sum(file.stat().st_size for file in FOLDER.iterdir()) <= 8 * MEGABYTE
    assert 100_000 < loaded.model.parameters < 4_000_000


def test_its_folder_is_an_ordinary_checkpoint():
    shape = describe(FOLDER)
    assert sorted(file.name for file in FOLDER.iterdir()) == [
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    ]
    assert (shape.family.name, shape.arch.block, shape.mask_from) == ("llada", None, "config")
    assert shape.context == 128
    assert shape.tokenizer.size == shape.arch.vocab_size


def test_its_special_tokens_are_those_of_its_tokenizer(loaded):
    eos, mask, turn, *_ = (loaded.tokenizer.token_id(name) for name in SPECIAL)
    spec = loaded.model.spec
    assert (spec.mask_id, spec.eos_id, spec.stop_ids) == (mask, eos, (eos, turn))
    assert (spec.name, spec.block) == (NAME, None)


def test_a_chat_is_rendered_as_it_was_trained(tokenizer):
    user = {"role": "user", "content": " Repeat: pig, bee. "}
    assert tokenizer.render([user]) == "<|user|> Repeat: pig, bee.<|assistant|>"
    chat = [user, {"role": "assistant", "content": "pig, bee"}]
    assert tokenizer.render(chat, add_generation_prompt=False) == (
        "<|user|> Repeat: pig, bee.<|assistant|>pig, bee<|eot_id|>"
    )
    with pytest.raises(unmask.RequestError, match="the embedded model knows no role system"):
        tokenizer.render([{"role": "system", "content": "Be brief."}, user])


@pytest.mark.parametrize("task", TASKS.values(), ids=list(TASKS))
@pytest.mark.parametrize("split", ["train", "test"])
def test_every_text_of_its_tasks_comes_back_to_the_letter(tokenizer, task, split):
    for problem in islice(task.problems(split), 60):
        chat = tokenizer.render([{"role": "user", "content": problem.prompt}])
        assert chat == f"<|user|> {problem.prompt}<|assistant|>"
        for text in (chat, problem.answer):
            assert tokenizer.unknown(text) == []
            assert tokenizer.decode(tokenizer.encode(text)) == text


@pytest.mark.parametrize("task", TASKS.values(), ids=list(TASKS))
def test_answers_fit_the_usual_length_and_prompts_the_context(tokenizer, task):
    for problem in islice(task.problems("test"), 100):
        size = len(tokenizer.encode_chat([{"role": "user", "content": problem.prompt}]))
        assert len(tokenizer.encode(problem.answer)) < LENGTH  # an end of turn follows
        assert size + LENGTH <= 128


def solved(rule, limit, **options):
    """Which of the held-out problems each rule solves."""
    comparison = unmask.compare([rule], limit=limit, eos="keep", **options)
    return [summary.solved() for summary in comparison.summaries]


@pytest.mark.long
@pytest.mark.parametrize(("task", "floor"), [("words", 0.85), ("code", 0.7), ("copy", 0.9)])
def test_one_token_per_forward_in_blocks_solves_the_bulk_of_held_out_problems(task, floor):
    (right,) = solved("confidence | top(1)", 20, task=task, length=32, block=16)
    assert sum(right) >= floor * len(right)


@pytest.mark.long
def test_swd_gains_over_the_full_window_beyond_chance():
    rule = "entropy | swd({0,5}) | threshold(-0.4)"
    assert paired(*solved(rule, 60, task="words", length=24, block="full")).interval.low > 0
