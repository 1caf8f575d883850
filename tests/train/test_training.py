"""Training of the embedded model: batches, objective, checkpoints and interruptions."""

import io
import json
from collections import Counter
from dataclasses import asdict, replace
from math import log
from random import Random

import pytest
import torch
from tokenizers import Tokenizer
from torch import distributed

import unmask
from train import batches as batching
from train import loop, tokens
from train import model as networks
from train.batches import MIXTURE, WIDTHS, Batches
from train.loop import Plan, Training, objective
from train.tokens import ASSISTANT, EOS, EOT, MASK, SPECIAL, USER, prompt_text
from unmask.embedded import FOLDER
from unmask.embedded.tasks import TASKS, split_of

SHAPE = {"d_model": 16, "n_layers": 1, "n_heads": 2, "mlp_hidden_size": 24}
PLAN = Plan(workers=1, steps=4, warmup=2)


@pytest.fixture(scope="module")
def tokenizer():
    """Built from fewer problems than the shipped tokenizer: quick, and still with all words."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokens, "_ENOUGH", 600)
        return tokens.build()


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(networks, "SHAPE", SHAPE)
    monkeypatch.setattr(batching, "TOKENS", 512)
    monkeypatch.setattr(loop, "LOG_EVERY", 2)
    monkeypatch.setattr(loop, "SAVE_EVERY", 2)


@pytest.fixture
def alone(tmp_path):
    """A process group of one worker."""
    place = f"file://{tmp_path}/store"
    distributed.init_process_group("gloo", place, rank=0, world_size=1)
    yield
    distributed.destroy_process_group()


def same(first, second):
    return all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def fields(batch):
    return batch.clean, batch.noisy, batch.weight


def random_module(tokenizer, seed=0):
    """A network without zero parameters."""
    settings = networks.config(tokenizer)
    module = networks.create(settings, seed)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter += 0.1 * torch.randn(parameter.shape, generator=generator)
    return settings, module


# Tokens


def test_a_token_is_a_word_number_or_sign_with_the_space_before_it(tokenizer):
    text = f"{USER} Ann has 12 pens.{ASSISTANT}3 4\n_ 2{EOT}"
    pieces = [USER, " Ann", " has", " 12", " pens", ".", ASSISTANT, "3", " 4", "\n", "_", " 2", EOT]
    assert tokenizer.encode(text).tokens == pieces
    assert tokenizer.decode(tokenizer.encode(text).ids, skip_special_tokens=False) == text


def test_special_tokens_come_first_and_the_rest_in_order(tokenizer):
    names = [tokenizer.id_to_token(number) for number in range(tokenizer.get_vocab_size())]
    assert names[: len(SPECIAL)] == list(SPECIAL)
    assert names[len(SPECIAL) :] == sorted(names[len(SPECIAL) :])


# Batches


def test_a_batch_is_a_function_of_seed_step_and_worker(tokenizer, small):
    def at(seed=0, step=3, worker=0):
        return Batches(tokenizer, Plan(seed=seed, floor=0.1), worker).at(step)

    used = Batches(tokenizer, Plan(seed=0, floor=0.1), 0)
    used.at(7)
    assert same(fields(used.at(3)), fields(at()))
    for other in (at(seed=1), at(step=4), at(worker=1)):
        assert other.clean.shape != at().clean.shape or not torch.equal(other.clean, at().clean)


def test_workers_share_the_width_of_a_step(tokenizer, small):
    pair = [Batches(tokenizer, Plan(seed=0, floor=0.1), worker) for worker in range(2)]
    shapes = [[each.at(step).clean.shape for each in pair] for step in range(8)]
    assert all(first == second for first, second in shapes)
    widths = {first[1] for first, _ in shapes}
    assert len(widths) > 1
    assert widths <= set(WIDTHS)
    assert all(rows == 512 // width for (rows, width), _ in shapes)


def test_every_task_is_in_the_mixture():
    assert set(MIXTURE) == set(TASKS)


def test_held_out_content_never_comes_up(tokenizer):
    batches, count = Batches(tokenizer, Plan(seed=0, floor=0.1), 0), 70
    drawn = [p for step in range(300) for p in batches._drawn(Random(f"0/{step}/0"), count)]
    assert {split_of(problem.content) for problem in drawn} == {"train"}
    assert 0.9 < len(drawn) / (300 * count) < 0.95  # one in twenty, and one in forty, left out
    assert {problem.task for problem in drawn} == set(TASKS)
    held_out = {p.content for split in ("test", "calibration") for p in some_of(split)}
    assert held_out.isdisjoint(problem.content for problem in drawn)


def some_of(split):
    return [problem for task in TASKS.values() for problem in task.sample(split, 20)]


def test_rows_are_prompt_answer_end_of_turn_and_eos_to_the_end(tokenizer, small):
    eos, eot, assistant = (tokenizer.token_to_id(name) for name in (EOS, EOT, ASSISTANT))
    prompts = Counter()
    for step in range(4):
        for row in Batches(tokenizer, Plan(seed=0, floor=0.1), 0).at(step).clean.tolist():
            begin, end = row.index(assistant) + 1, row.index(eot)
            assert row[end + 1 :] == [eos] * (len(row) - end - 1)
            prompt = tokenizer.decode(row[:begin], skip_special_tokens=False)
            assert prompt.startswith(f"{USER} ")
            assert row[:begin] == tokenizer.encode(prompt).ids
            answer = tokenizer.decode(row[begin:end], skip_special_tokens=False)
            assert answer
            assert "<|" not in answer
            prompts[prompt] += 1
    assert max(prompts.values()) == 1


@pytest.mark.parametrize("floor", [0.0, 0.1])
def test_only_answers_are_masked_each_at_a_ratio_of_its_own(tokenizer, small, monkeypatch, floor):
    monkeypatch.setattr(batching, "BEGUN", 0.0)
    mask, assistant = tokenizer.token_to_id(MASK), tokenizer.token_to_id(ASSISTANT)
    batch = Batches(tokenizer, Plan(seed=0, floor=floor), 0).at(5)
    masked = batch.noisy == mask
    begin = (batch.clean == assistant).int().argmax(-1) + 1
    width, rows = batch.clean.shape[-1], len(batch.clean)
    assert masked.any()
    assert not (masked & (torch.arange(width) < begin[:, None])).any()
    assert torch.equal(batch.noisy[~masked], batch.clean[~masked])
    assert torch.equal(batch.weight > 0, masked)
    for row in range(rows):  # the ratios are spread evenly, so a row's is known to 1 / rows
        ratios = 1 / (batch.weight[row, masked[row]] * (width - begin[row]))
        least, most = (max(0.001 + 0.999 * (row + i) / rows, floor) for i in range(2))
        assert ((ratios > least - 1e-6) & (ratios < most + 1e-6)).all()
        assert len(set(ratios.tolist())) <= 1


def test_without_a_floor_the_weights_of_a_row_add_up_to_one_on_average(tokenizer):
    clean = torch.zeros((4000, 30), dtype=torch.int64)
    answer = torch.arange(30).expand(4000, -1) >= 10
    plain = Batches(tokenizer, Plan(seed=0, floor=0.0), 0)._masked(clean, answer, 0).weight.sum(-1)
    assert plain.mean().item() == pytest.approx(1, abs=0.04)
    assert plain[2000:].mean().item() == pytest.approx(1, abs=0.02)  # at any ratio
    cut = Batches(tokenizer, Plan(seed=0, floor=0.1), 0)._masked(clean, answer, 0).weight
    assert cut.max().item() == pytest.approx(10 / 20)
    assert cut.sum(-1).mean().item() == pytest.approx(0.95, abs=0.02)  # 0.9 + 0.1 / 2


# Network and objective


def test_a_fresh_network_depends_on_its_seed_and_says_nothing_yet(tokenizer, small):
    settings = networks.config(tokenizer)
    first, again, other = (networks.create(settings, seed) for seed in (0, 0, 1))
    assert same(first.parameters(), again.parameters())
    assert not torch.equal(first.embed.weight, other.embed.weight)
    assert not first.logits(first(torch.tensor([[5, 6, 7]]))).any()


def test_the_loss_weighs_the_cross_entropy_of_the_masked_tokens(tokenizer, small):
    batch = Batches(tokenizer, Plan(seed=0, floor=0.1), 0).at(1)
    fresh = networks.create(networks.config(tokenizer), 0)  # all tokens are equally likely
    uniform = log(tokenizer.get_vocab_size()) * batch.weight.sum().item() / len(batch.clean)
    assert objective(fresh, batch).item() == pytest.approx(uniform, rel=1e-5)
    _, module = random_module(tokenizer)
    changed = replace(batch, clean=torch.where(batch.weight > 0, batch.clean, 9))
    assert torch.equal(objective(module, changed), objective(module, batch))


def test_the_rates_rise_stay_and_fall_in_a_straight_line():
    plan = Plan(steps=1000, warmup=100, decay=0.6)
    assert [plan.rate(step) for step in (0, 49, 99, 250, 400)] == [0.01, 0.5, 1, 1, 1]
    assert plan.rate(700) == pytest.approx(0.5)
    assert plan.rate(999) == pytest.approx(1 / 600)
    rates = [plan.rate(step) for step in range(1000)]
    assert rates[:400] == sorted(rates[:400])
    assert rates[400:] == sorted(rates[400:], reverse=True)


# The folder


def test_the_folder_is_an_ordinary_checkpoint_with_the_same_logits(tokenizer, small, tmp_path):
    settings, module = random_module(tokenizer)
    networks.save(tmp_path / "new", dict(module.named_parameters()), settings, tokenizer)
    model, actual = unmask.load(tmp_path / "new", dtype="float32")
    assert unmask.load(tmp_path / "new").model.dtype == torch.float16  # as it is stored
    ids = torch.tensor([actual.encode_chat([{"role": "user", "content": "Repeat: pig, bee."}])])
    with torch.no_grad():
        loaded = model.module.logits(model.module(ids))
        trained = module.logits(module(ids))
        rounded = module.half().float()
        assert torch.equal(loaded, rounded.logits(rounded(ids)))
    torch.testing.assert_close(loaded, trained, rtol=0.01, atol=0.01)
    assert trained.std() > 0.1
    names = {"eos_id": EOS, "mask_id": MASK}
    assert all(getattr(model.spec, k) == actual.token_id(v) for k, v in names.items())
    assert model.spec.stop_ids == (actual.token_id(EOS), actual.token_id(EOT))


def test_the_shipped_folder_is_of_this_network_and_these_tokens(tokenizer):
    shipped = Tokenizer.from_file(str(FOLDER / "tokenizer.json"))
    assert set(tokenizer.get_vocab()) <= set(shipped.get_vocab())
    assert json.loads((FOLDER / "config.json").read_text()) == networks.config(shipped)
    prompt = TASKS["words"].sample("train", 1)[0].prompt
    rendered = unmask.Tokenizer.load(FOLDER).render([{"role": "user", "content": prompt}])
    assert rendered == prompt_text(prompt)


# Runs


def trained(folder, tokenizer, stop_at=None):
    """Run the plan, or the rest of it; stop before a given step."""
    training = Training(folder, PLAN, tokenizer, 0)
    training.resume()
    draw = training.batches.at

    def at(step):
        if step == stop_at:
            raise KeyboardInterrupt
        return draw(step)

    training.batches.at = at
    log = io.StringIO()
    if stop_at is None:
        training.run(log)
    else:
        with pytest.raises(KeyboardInterrupt):
            training.run(log)
    return training, [json.loads(line) for line in log.getvalue().splitlines()]


def test_an_interrupted_run_ends_with_the_same_weights(tokenizer, small, alone, tmp_path):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    whole.mkdir()
    cut.mkdir()
    one, log = trained(whole, tokenizer)
    assert not torch.equal(
        one.module.embed.weight, Training(whole, PLAN, tokenizer, 0).module.embed.weight
    )
    half, begun = trained(cut, tokenizer, stop_at=3)
    assert half.step == 3
    assert [file.name for file in cut.iterdir()] == ["training.pt"]  # of step 2
    other, rest = trained(cut, tokenizer)
    assert same(one.module.parameters(), other.module.parameters())
    steps = [[(line["step"], line["loss"]) for line in lines] for lines in (log, begun + rest)]
    assert steps[0] == steps[1]
    assert [step for step, _ in steps[0]] == [2, 4]
    weights = [(folder / "model.safetensors").read_bytes() for folder in (whole, cut)]
    assert weights[0] == weights[1]
    assert not (cut / "training.pt").exists()


def test_a_state_of_another_plan_is_refused_in_one_line(tokenizer, small, tmp_path):
    Training(tmp_path, PLAN, tokenizer, 0)._save_state()
    other = Training(tmp_path, replace(PLAN, seed=1), tokenizer, 0)
    with pytest.raises(SystemExit) as caught:
        other.resume()
    message = str(caught.value)
    assert message.startswith(
        f"{tmp_path / 'training.pt'} belongs to another plan, {asdict(PLAN)}; "
    )
    assert "\n" not in message
    assert other.step == 0


def test_a_worker_leaves_a_checkpoint_and_a_log(tokenizer, small, tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "build", lambda: tokenizer)
    loop.work(0, PLAN, tmp_path, str(tmp_path))
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [2, 4]
    assert all(0 < line["loss"] < 20 for line in lines)
    model, _ = unmask.load(tmp_path)
    assert (model.arch.hidden, model.arch.layers) == (16, 1)
    assert not distributed.is_initialized()


def test_half_of_the_answers_have_begun(tokenizer):
    batches = Batches(tokenizer, Plan(), 0)
    begun = [batches._begun(Random(i), 20) for i in range(200)]
    assert 60 < sum(size > 0 for size in begun) < 140
    assert max(begun) < 20
