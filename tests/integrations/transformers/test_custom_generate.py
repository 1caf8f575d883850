"""model.generate of the real transformers with an exported folder: tokens, streamers, refusals."""

from __future__ import annotations

import sys

import pytest
import torch

import unmask
from tests.in_memory import GOLDEN, KINDS, model_in_memory, tokenizer_in_memory
from unmask.errors import UnmaskError
from unmask.integrations.transformers.custom_generate import write

transformers = pytest.importorskip("transformers")
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("own_modules")]
RULE = "confidence | swd(5) | eb(0.5)"
PROMPT = [11, 12, 13, 14, 15]


@pytest.fixture(scope="module")
def llada():
    return model_in_memory("llada-tiny")


@pytest.fixture
def ask(llada, tmp_path):
    """generate of LLaDA with a folder that has these options."""

    def call(options=None, **arguments):
        folder = tmp_path / "exported"
        write(folder, {"rule": RULE, **(options or {})})
        given = {"input_ids": torch.tensor([PROMPT]), "max_new_tokens": 16, **arguments}
        return llada.generate(custom_generate=str(folder), trust_remote_code=True, **given)

    return call


def own(name="llada-tiny", prompt=PROMPT, rule=RULE, length=16, **settings):
    model = unmask.load(GOLDEN / name, dtype="float32").model
    return unmask.decode(model, prompt, rule, length=length, **settings)


class Recorder(transformers.TextDiffusionStreamer):
    """The streamer of transformers; it also records its calls."""

    def __init__(self, tokenizer, **more):
        super().__init__(tokenizer, **more)
        self.news = []

    def put(self, value):
        self.news.append(("put", value.tolist()))
        super().put(value)

    def put_draft(self, value, **more):
        self.news.append(("draft", value.tolist()))
        super().put_draft(value, **more)

    def end(self):
        self.news.append(("end", None))
        super().end()


@pytest.mark.parametrize("name", KINDS)
def test_generate_gives_the_tokens_of_unmasks_own_decode(name, tmp_path):
    write(tmp_path / "folder", {"rule": RULE})
    output = model_in_memory(name).generate(
        torch.tensor([PROMPT]),
        custom_generate=str(tmp_path / "folder"),
        trust_remote_code=True,
        max_new_tokens=14,
        tokenizer=tokenizer_in_memory(name),
    )
    expected = own(name, length=14)
    ended = len(expected.ids) < 14
    assert output.tolist() == [PROMPT + expected.answer.tolist()[: len(expected.ids) + ended]]


@pytest.mark.parametrize(("name", "more"), [("dream-tiny", {"shift": True}), ("sdar-tiny", {})])
def test_a_class_of_transformers_that_carries_weights_is_told_what_it_cannot_know(
    name, more, tmp_path
):
    from unmask.models.via_transformers import load_carrier

    hosted, _ = load_carrier(GOLDEN / name, dtype=torch.float32)
    options = {"rule": RULE, "mask_id": hosted.spec.mask_id, **more}
    if hosted.spec.block is not None:
        options["attention_block"] = hosted.spec.block
    write(tmp_path / "folder", options)
    output = hosted.model.generate(
        torch.tensor([PROMPT]),
        custom_generate=str(tmp_path / "folder"),
        trust_remote_code=True,
        max_new_tokens=12,
        eos_token_id=list(hosted.spec.stop_ids),
    )
    ids = own(name, length=12).ids
    assert output[0, len(PROMPT) :][: len(ids)].tolist() == ids


def test_rows_of_unequal_length_are_decoded_without_their_padding(ask):
    ids = torch.tensor([[0, 0, 0, 11, 12], PROMPT])
    mask = torch.tensor([[0, 0, 0, 1, 1], [1, 1, 1, 1, 1]])
    output = ask(input_ids=ids, attention_mask=mask)
    assert output[:, :5].tolist() == ids.tolist()
    assert output[0, 5:].tolist() == own(prompt=[11, 12]).answer.tolist()
    assert output[1, 5:].tolist() == own().answer.tolist()


def test_a_call_overrides_what_the_folder_says(ask):
    folder = {"length": 8, "block": 4, "seed": 3}
    assert ask(folder, max_new_tokens=None).tolist()[0][5:] == own(length=8, block=4).ids
    other = "entropy | top(2)"
    output = ask(folder, rule=other, block="full", length=12, return_dict_in_generate=True)
    expected = own(rule=other, length=12)
    assert output.sequences.tolist() == [expected.canvas.tolist()]
    assert output.nfe.tolist() == [expected.nfe] == [6]


def test_a_generation_config_is_read(ask):
    config = transformers.GenerationConfig(max_new_tokens=6, return_dict_in_generate=True)
    output = ask(max_new_tokens=None, generation_config=config)
    assert output.sequences.shape == (1, 11)
    assert ask(max_new_tokens=None, max_length=12).shape == (1, 12)
    config = transformers.GenerationConfig(max_length=12, rule="entropy | top(2)", pad_token_id=3)
    output = ask(max_new_tokens=None, generation_config=config)
    assert output.tolist() == [own(rule="entropy | top(2)", length=7).canvas.tolist()]


def test_behind_the_end_token_there_is_padding_and_the_cost_is_told(ask):
    ids = own().answer.tolist()
    end = ids[6]
    output = ask(eos_token_id=end, pad_token_id=7, return_dict_in_generate=True)
    place = ids.index(end)
    assert output.sequences[0].tolist() == PROMPT + ids[: place + 1]
    both = ask(input_ids=torch.tensor([PROMPT, PROMPT[::-1]]), eos_token_id=end, pad_token_id=7)
    assert set(both[0, 5 + place + 1 :].tolist()) <= {7}
    expected = own()
    steps = expected.commit_step[5 : 5 + place + 1].max() + 1
    assert output.nfe.tolist() == [expected.nfe]
    assert output.nfe_eos.tolist() == [int(steps)]
    assert output.tokens_per_forward.tolist() == pytest.approx([place / int(steps)])


def test_guidance_is_that_of_unmasks_own_decode(ask):
    output = ask({"guidance": 1.5})
    model = unmask.Guided(unmask.load(GOLDEN / "llada-tiny", dtype="float32").model, 1.5)
    expected = unmask.decode(model, PROMPT, RULE, length=16)
    ended = len(expected.ids) < 16
    assert output.tolist() == [PROMPT + expected.answer.tolist()[: len(expected.ids) + ended]]
    assert output.tolist() != ask().tolist()


def test_an_eos_policy_can_be_asked_for(ask):
    end = own().answer.tolist()[6]
    output = ask(eos="suppress", eos_token_id=end)
    assert end not in output[0, 5:].tolist()


def test_sampling_follows_the_seed(ask):
    drawn = [ask(do_sample=True, temperature=2.0, seed=seed).tolist() for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    several = ask(do_sample=True, temperature=2.0, seed=1, num_return_sequences=2)
    assert several.tolist() == [drawn[0][0], drawn[2][0]]


@pytest.mark.parametrize("options", [{}, {"block": 4}, {"rule": "confidence | top(2) | revoke(1)"}])
def test_a_streamer_gets_every_token_once_and_drafts_between(ask, options, capsys):
    streamer = Recorder(tokenizer_in_memory("llada-tiny"))
    output = ask(options, streamer=streamer)
    put = [value for kind, value in streamer.news if kind == "put"]
    assert put[0] == [PROMPT]
    assert [token for ((*ids,),) in put for token in ids] == output[0].tolist()
    assert streamer.news[-1] == ("end", None)
    result = own(rule=options.get("rule", RULE), block=options.get("block"))
    drafts = [value for kind, value in streamer.news if kind == "draft"]
    assert 1 <= len(drafts) <= result.nfe
    assert all(len(draft) == 1 and 0 < len(draft[0]) <= 16 for draft in drafts)
    mask = unmask.load(GOLDEN / "llada-tiny").model.spec.mask_id
    masks = any(mask in draft[0] for draft in drafts)
    assert masks == ("rule" in options)  # only a revoked token is a mask
    assert "\033[33m" in capsys.readouterr().out


def test_a_plain_streamer_prints_the_text(ask, capsys):
    tokenizer = tokenizer_in_memory("llada-tiny")
    output = ask(streamer=transformers.TextStreamer(tokenizer, skip_prompt=True))
    assert capsys.readouterr().out == tokenizer.decode(output[0, 5:].tolist()) + "\n"


def test_a_text_can_be_read_while_it_is_written(ask):
    from threading import Thread

    tokenizer = tokenizer_in_memory("llada-tiny")
    streamer = transformers.TextIteratorStreamer(tokenizer, skip_prompt=True, timeout=60)
    thread = Thread(target=ask, kwargs={"streamer": streamer})
    thread.start()
    text = "".join(streamer)
    thread.join()
    assert text == tokenizer.decode(own().answer.tolist())


class TakesLogits(transformers.generation.streamers.BaseStreamer):
    _takes_logits = True


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rule": "confidenze | top(1)"}, "did you mean 'confidence'"),
        ({"blokc": 4}, "unknown argument of generate 'blokc'; did you mean 'block'"),
        ({"block": 0}, "block must be a whole number >= 1 or 'full', got 0"),
        ({"eos": "never"}, "eos must be one of keep, suppress"),
        ({"seed": "x"}, "seed must be a whole number >= 0, got 'x'"),
        ({"shift": 1}, "shift must be true or false, got 1"),
        ({"num_beams": 4}, "decoding by a rule does not support num_beams"),
        ({"repetition_penalty": 1.2}, "does not support repetition_penalty"),
        (
            {"generation_config": transformers.GenerationConfig(num_beams=2)},
            "decoding by a rule does not support num_beams",
        ),
        ({"logits_processor": [print]}, "does not support logits_processor"),
        ({"temperature": 0.5}, "temperature has no effect without do_sample=True"),
        ({"input_ids": None}, "needs the token ids of its prompts"),
        ({"attention_mask": torch.ones(1, 2)}, r"attention_mask must have the shape .* \(1, 5\)"),
        (
            {"max_new_tokens": None, "max_length": 5},
            "max_length 5 leaves no room after a prompt of 5",
        ),
        ({"streamer": TakesLogits()}, "the streamer asks for the logits"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(ask, arguments, message):
    with pytest.raises(UnmaskError, match=message) as error:
        ask(**arguments)
    assert "\n" not in str(error.value)


def test_a_streamer_shows_one_row_only(ask):
    streamer = transformers.TextStreamer(tokenizer_in_memory("llada-tiny"))
    with pytest.raises(UnmaskError, match="a streamer shows one row, got 2 rows"):
        ask(input_ids=torch.tensor([PROMPT, PROMPT]), streamer=streamer)


def test_code_in_a_folder_must_be_trusted_as_transformers_wants_it(llada, tmp_path):
    write(tmp_path, {"rule": RULE})
    with pytest.raises(ValueError, match="trust_remote_code=True"):
        llada.generate(
            torch.tensor([PROMPT]), custom_generate=str(tmp_path), trust_remote_code=False
        )


def test_without_transformers_the_module_names_the_extra(monkeypatch):
    monkeypatch.delitem(sys.modules, "unmask.integrations.transformers.generate", raising=False)
    monkeypatch.setitem(sys.modules, "transformers.utils", None)
    with pytest.raises(UnmaskError, match=r"pip install 'unmask\[transformers\]'"):
        import unmask.integrations.transformers.generate  # noqa: F401
