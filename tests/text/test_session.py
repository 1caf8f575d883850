"""Session: text in, text out, as a program or a notebook uses it."""

import subprocess
import sys
from itertools import pairwise

import pytest
import torch

import unmask
from tests.checkpoints import make_llada, make_sdar
from tests.in_memory import GOLDEN, model_in_memory, tokenizer_in_memory
from unmask import DecodingOptions, RequestError, Session, UnknownName
from unmask.trace import Trace

PENS = "Ann has 12 pens. She buys 3, then loses 5. How many now?"
CUPS = "Tom has 4 coins. He finds 7. How many now?"


@pytest.fixture(scope="module")
def session():
    return Session(length=24)


def test_five_lines_answer_ten_prompts_and_print_texts_with_their_nfe(capsys):
    exec(
        "import unmask\n"
        "session = unmask.Session(rule='confidence | swd(5) | eb(0.1)', length=16)\n"
        "prompts = [f'Ann has {n} pens. She buys 3. How many now?' for n in range(2, 12)]\n"
        "for answer in session.generate(prompts):\n"
        "    print(answer.text, answer.nfe)\n",
        {},
    )
    assert len(capsys.readouterr().out.splitlines()) == 10


def test_a_list_gives_what_single_prompts_give_in_order(session):
    prompts = [PENS, CUPS, PENS + " " + CUPS]
    alone = [session.generate(prompt, seed=n) for n, prompt in enumerate(prompts)]
    together = session.generate(prompts, batch_size=2)
    keep = ("text", "ids", "nfe", "nfe_eos", "commit_steps")
    assert [[getattr(a, name) for name in keep] for a in together] == [
        [getattr(a, name) for name in keep] for a in alone
    ]


def test_an_answer_is_that_of_decode(session):
    model, tokenizer = unmask.load()
    prompt = tokenizer.encode_chat([{"role": "user", "content": PENS}])
    result = unmask.decode(model, prompt, length=24)
    answer = session.chat([{"role": "user", "content": PENS}])
    assert (answer.ids, answer.nfe, answer.nfe_eos) == (result.ids, result.nfe, result.nfe_eos)
    assert answer.commit_steps == result.commit_step.tolist()
    assert answer.seconds.total > 0


def test_options_are_the_sessions_unless_a_call_changes_them(session):
    shorter = session.generate(PENS, length=8, rule="confidence | top(1)")
    assert (shorter.written, shorter.nfe) == (8, 8)
    assert session.generate(PENS).written == 24
    assert session.options == DecodingOptions(length=24)


def test_infill_fills_the_masks_of_a_text(session):
    answer = session.infill("[MASK*2] pens", rule="confidence | top(1)")
    assert (answer.nfe, answer.written) == (2, 2)
    assert answer.text.endswith(" pens")
    assert "[MASK]" not in answer.text


def test_a_stream_ends_with_the_answer_and_its_settled_text_only_grows(session):
    snapshots = list(session.stream(PENS, block=8))
    answer = snapshots[-1].answer
    assert answer.text == session.generate(PENS, block=8).text
    assert [each.step for each in snapshots] == list(range(1, answer.nfe + 1))
    assert all(each.answer is None for each in snapshots[:-1])
    for before, after in pairwise(snapshots):
        assert after.settled.startswith(before.settled)
        assert after.canvas.count("[MASK]") < before.canvas.count("[MASK]")
    assert snapshots[-1].settled == answer.text


def test_a_model_in_memory_answers_as_its_folder_does():
    name = "llada-tiny"
    messages = [{"role": "user", "content": "Hello"}]
    own = Session(GOLDEN / name, dtype="float32", length=16).chat(messages)
    loaded = Session(unmask.load(GOLDEN / name, dtype="float32"), length=16).chat(messages)
    hosted = Session(model_in_memory(name), tokenizer_in_memory(name), length=16).chat(messages)
    assert own.ids == loaded.ids == hosted.ids
    assert own.text == loaded.text == hosted.text


def test_a_single_answer_carries_its_trace_and_shows_it_in_a_notebook(session):
    answer = session.generate(PENS)
    html = answer._repr_html_()
    assert html.startswith("<iframe srcdoc=")
    assert "<script" not in html  # the page stands inside an attribute, escaped
    assert len(Trace.of(answer.trace, "answer").moments) == answer.nfe
    plain = session.generate([PENS])[0]
    assert plain.trace is None
    assert "forward passes" in plain._repr_html_()


def test_an_answer_without_a_trace_escapes_its_text(session):
    from dataclasses import replace

    answer = replace(session.generate([PENS])[0], text="<b>")
    assert "&lt;b&gt;" in answer._repr_html_()


def test_a_cache_and_guidance_are_options_of_a_call(tmp_path):
    session = Session(make_llada(tmp_path), length=16)
    plain = session.generate("Hello")
    cached = session.generate("Hello", cache="prefix", block=8)
    guided = session.generate("Hello", guidance=1.5)
    assert plain.written == cached.written == guided.written == 16


def test_the_block_of_a_block_causal_model_is_chosen_when_it_is_loaded(tmp_path):
    session = Session(make_sdar(tmp_path), block=8, length=16)
    assert session.spec.block == 8
    with pytest.raises(RequestError, match="attends in blocks of 8"):
        session.generate("Hello", block=4)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Session(lenght=3), "unknown option 'lenght'; did you mean 'length'"),
        (lambda: Session(quantize="int8", pack=True), "quantize and pack do not work together"),
        (lambda: Session(temperature=-1), "temperature must be a number >= 0, got -1"),
        (lambda: Session(eos="stopp"), "did you mean 'stop'"),
        (lambda: Session("no/such/folder"), "is not a folder"),
        (lambda: Session(tokenizer=object()), "its own tokenizer"),
        (lambda: Session(torch.nn.Linear(1, 1)), "needs its tokenizer"),
        (lambda: Session().generate(PENS, dtype="float16"), "fixed when a session is made"),
        (lambda: Session().infill("[MASK] pens", length=3), "takes no length"),
        (lambda: Session().generate(PENS, rule="confidnce | top(1)"), "did you mean 'confidence'"),
        (lambda: Session().generate(PENS, max_tokens=3), "'max_tokens'; did you mean 'length'"),
        (lambda: Session(""), "'' is not a folder"),
        (lambda: Session(options={"length": 8}), "options must be a DecodingOptions"),
        (lambda: Session(context=0), "context must be a whole number >= 1, got 0"),
    ],
)
def test_a_wrong_call_is_one_line(make, message):
    with pytest.raises((RequestError, UnknownName, unmask.UnmaskError), match=message) as error:
        make()
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("wrong", [None, 5, b"text", {"prompt": "text"}, [1], [None], [["text"]]])
def test_only_texts_are_prompts(session, wrong):
    for answer in (session.generate, session.infill, session.stream):
        with pytest.raises(RequestError, match=r"got|empty"):
            answer(wrong)


@pytest.mark.parametrize(
    "wrong",
    [None, "text", ["text"], {"role": "user", "content": "text"}, [{"content": "text"}],
     [{"role": "user"}], [{"role": "user", "content": 5}], [{"role": "user", "content": [5]}]],
)  # fmt: skip
def test_a_chat_is_a_list_of_messages_with_a_role_and_a_text(session, wrong):
    for answer in (session.chat, session.stream):
        if not (wrong == "text" and answer == session.stream):  # which is a prompt
            with pytest.raises(RequestError, match="role"):
                answer(wrong)


def test_nothing_gives_nothing_and_one_shot_iterables_are_read_once(session):
    assert session.generate([]) == session.chat(()) == session.infill(iter(())) == []
    messages = [{"role": "user", "content": CUPS}]
    texts = [answer.text for answer in session.chat(messages for _ in range(2))]
    assert texts == [session.generate(CUPS).text, session.generate(CUPS, seed=1).text]


def test_parts_of_text_in_a_message_are_joined(session):
    parts = [{"type": "text", "text": CUPS[:9]}, {"type": "text", "text": CUPS[9:]}]
    joined = session.chat([{"role": "user", "content": parts}])
    assert joined.ids == session.chat([{"role": "user", "content": CUPS}]).ids


def test_a_stream_refuses_wrong_arguments_when_it_is_made(session):
    with pytest.raises(UnknownName, match="'lenght'"):
        session.stream(PENS, lenght=3)


@pytest.mark.parametrize("size", [0, -1, 2.5, "3", None])
def test_a_batch_size_is_a_whole_number(session, size):
    with pytest.raises(RequestError, match="batch_size must be a whole number from 1"):
        session.generate([PENS], batch_size=size)


def test_numbers_of_numpy_are_numbers(session):
    import numpy as np

    answer = session.generate(CUPS, length=np.int64(8), temperature=np.float32(0), seed=np.int8(1))
    assert answer.ids == session.generate(CUPS, length=8, seed=1).ids


def test_a_loaded_checkpoint_has_the_length_and_the_context_of_its_folder():
    own, loaded = Session(), Session(unmask.load())
    assert loaded.context == own.context
    assert loaded.resolve().length == own.resolve().length == 48


@pytest.mark.parametrize(
    "option", [{"dtype": "float16"}, {"family": "sdar"}, {"device": "cpu"}, {"mask_id": 3}]
)
def test_a_model_in_memory_refuses_what_belongs_to_loading(option):
    with pytest.raises(RequestError, match=r"model is in memory|as it was loaded"):
        Session(unmask.load(), **option)


def test_a_rule_is_parsed_and_resolved_once_for_all_prompts(monkeypatch):
    from unmask.rules import rule

    texts, parse = [], rule.parse
    monkeypatch.setattr(rule, "parse", lambda text: texts.append(text) or parse(text))
    session = Session(rule="confidence | top(2)", length=8)
    session.generate([PENS, CUPS])
    assert texts == ["confidence | top(2)"]
    session.generate([PENS, CUPS], rule="margin | top(4)")
    assert texts == ["confidence | top(2)", "margin | top(4)"]


def test_a_part_that_is_registered_again_is_used_at_once():
    def register(count):
        def mine(view, scores):
            order = unmask.best_first(scores.key, view.masked)
            return unmask.first_in(order, torch.tensor([count]), view.masked)

        unmask.selection(mine)

    register(2)
    session = Session(rule="confidence | mine", length=8)
    assert session.generate(PENS).nfe == 4
    register(4)
    assert session.generate(PENS).nfe == 2


def test_a_session_says_what_it_is():
    assert repr(Session(rule="swd", length=8, device="cpu")) == (
        "Session('embedded', device='cpu', rule='swd', length=8)"
    )


def test_options_are_checked_before_the_weights_are_read(tmp_path):
    folder = make_llada(tmp_path)
    (folder / "model.safetensors").write_bytes(b"broken")
    with pytest.raises(unmask.UnmaskError, match="cache"):
        Session(folder, cache="block")


def test_the_options_of_the_command_line_do_not_import_torch():
    code = "import sys, unmask.cli.options; assert 'torch' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_settings_of_an_answer_file_hold_every_resolved_option():
    session = Session(rule="swd-block32", length=40, history=8, temperature=0.5, seed=3)
    record = session.settings_record(session.format())
    assert session.resolve().record().items() <= record.items()
