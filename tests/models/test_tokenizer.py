"""Text to ids and back, and chats to text."""

from __future__ import annotations

import json
import shutil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Regex, pre_tokenizers
from tokenizers import Tokenizer as Engine
from tokenizers.models import WordLevel

from tests.models.configs import (
    BOS,
    EOS,
    FAMILIES,
    MASK,
    TURN,
    VOCABULARY,
)
from tests.models.makers import change_json, write_json, write_tokenizer
from tests.paths import ROOT
from unmask import ModelError, RequestError, Tokenizer, UnmaskError

GOLDEN = ROOT / "tests" / "golden" / "models"
USER = {"role": "user", "content": "hello"}
TEXTS = [
    "",
    "hello world",
    "Hello, World! 12345 it's they're I'LL don't",
    "  two  spaces \n\n lines\r\n\ttab ",
    "naïve café e\u0301 \u1e9b\u0323 ｆｕｌｌ 你好 🙂🙃 \u200d",
    "<|endoftext|>hello<|im_end|><|mask|> <|start|>",
    "def f(x):\n    return x**2  # ok\n",
    "١٢٣ Ⅻ ½ #$%^&*()\n\n\n",
]


@pytest.fixture
def made(tmp_path):
    """A tokenizer from files that a test may change first."""

    def make(change=lambda folder: None, family="dream", slow=False):
        write_tokenizer(tmp_path, family, slow)
        change(tmp_path)
        return Tokenizer.load(tmp_path)

    return make


@pytest.fixture
def templated(made):
    """A tokenizer with this chat template."""

    def make(template, **config):
        return made(
            lambda folder: change_json(
                folder / "tokenizer_config.json", chat_template=template, **config
            )
        )

    return make


def one_line(caught):
    message = str(caught.value)
    assert "\n" not in message
    return message


# Ids


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("slow", [False, True])
def test_a_text_comes_back_from_its_ids(made, text, slow):
    import unicodedata

    tokenizer = made(slow=slow)
    assert tokenizer.decode(tokenizer.encode(text)) == unicodedata.normalize("NFC", text)


def test_special_tokens_in_a_text_are_single_ids(made):
    ids = made().encode("hello<|endoftext|><|mask|>")
    assert ids[1:] == [EOS, MASK]


def test_no_special_token_is_added(made):
    def bos_first(folder):
        processor = {
            "type": "TemplateProcessing",
            "single": [
                {"SpecialToken": {"id": "<|start|>", "type_id": 0}},
                {"Sequence": {"id": "A", "type_id": 0}},
            ],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}],
            "special_tokens": {"<|start|>": {"id": "<|start|>", "ids": [BOS], "tokens": ["x"]}},
        }
        change_json(folder / "tokenizer.json", post_processor=processor)

    assert BOS not in made(bos_first).encode("hello")


def test_merges_are_applied(made):
    tokenizer = made(slow=True)
    assert len(tokenizer.encode("hello world")) == 3  # hello, Ġwor, ld
    assert len(tokenizer.encode("olleh")) == 4  # o, ll, e, h


def test_digits_are_tokens_one_by_one(made):
    tokenizer = made(slow=True)
    assert tokenizer.token_id("12") is not None
    assert len(tokenizer.encode("12")) == 2


@pytest.mark.parametrize("text", TEXTS)
def test_vocabulary_and_merges_are_as_good_as_a_tokenizer_file(tmp_path, text):
    for folder, slow in (("fast", False), ("slow", True)):
        (tmp_path / folder).mkdir()
        write_tokenizer(tmp_path / folder, "dream", slow)
    fast, slow = (Tokenizer.load(tmp_path / folder) for folder in ("fast", "slow"))
    ids = fast.encode(text)
    assert slow.encode(text) == ids
    assert slow.decode(ids) == fast.decode(ids)


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """A golden tokenizer from its tokenizer.json, and from vocab.json with merges.txt."""
    folder = tmp_path_factory.mktemp("slow") / "dream"
    ignored = shutil.ignore_patterns("tokenizer.json", "*.safetensors", "golden_*")
    shutil.copytree(GOLDEN / "dream-tiny-sharded", folder, ignore=ignored)
    return Tokenizer.load(GOLDEN / "dream-tiny-sharded"), Tokenizer.load(folder)


@settings(max_examples=100)
@given(text=st.text(max_size=40))
def test_any_text_has_the_same_ids_from_either_kind_of_file(both, text):
    fast, slow = both
    ids = fast.encode(text)
    assert slow.encode(text) == ids
    assert slow.decode(ids) == fast.decode(ids)


@pytest.mark.parametrize("slow", [False, True])
def test_ids_without_a_token_are_left_out(made, slow):
    tokenizer = made(slow=slow)
    ids = tokenizer.encode("hello world")
    with_padding = [VOCABULARY - 1, *ids[:1], MASK + 1, *ids[1:], 10**6]
    assert tokenizer.decode(with_padding) == "hello world"


def test_the_size_is_one_more_than_the_largest_id(made):
    assert made().size == MASK + 1


def test_special_tokens_are_skipped_on_request(made):
    tokenizer = made()
    ids = [BOS, *tokenizer.encode("hello"), EOS, MASK, TURN]
    assert tokenizer.decode(ids) == "<|start|>hello<|endoftext|><|mask|><|im_end|>"
    assert tokenizer.decode(ids, skip_special=True) == "hello"


def test_a_slow_tokenizer_skips_only_the_tokens_that_have_a_name(made):
    """As in the original: a special token without a role stays in the text."""

    def unnamed_turn(folder):
        change_json(folder / "tokenizer_config.json", additional_special_tokens=[])

    tokenizer = made(unnamed_turn, slow=True)
    ids = [BOS, *tokenizer.encode("hello"), TURN, EOS]
    assert tokenizer.decode(ids, skip_special=True) == "hello<|im_end|>"


def test_added_tokens_may_stand_in_a_file_of_their_own(made):
    def move(folder):
        change_json(folder / "tokenizer_config.json", added_tokens_decoder=...)
        write_json(folder / "added_tokens.json", {"<|endoftext|>": EOS, "<|start|>": BOS})

    tokenizer = made(move, slow=True)
    assert tokenizer.encode("<|endoftext|><|start|>") == [EOS, BOS]


def test_an_added_token_that_would_get_another_id_is_an_error(made):
    def gap(folder):
        change_json(folder / "tokenizer_config.json", added_tokens_decoder=...)
        write_json(folder / "added_tokens.json", {"<|endoftext|>": EOS + 5})

    with pytest.raises(ModelError) as caught:
        made(gap, slow=True)
    assert f"'<|endoftext|>' has id {EOS + 5}" in one_line(caught)
    assert f"would get {EOS}" in one_line(caught)


# Roles


@pytest.mark.parametrize("family", FAMILIES)
def test_a_role_has_the_id_of_its_token(made, family):
    tokenizer = made(family=family)
    assert tokenizer.token_id("eos_token") == tokenizer.token_id("<|endoftext|>") == EOS
    assert tokenizer.token_id("bos_token") == BOS
    assert tokenizer.token_id("mask_token") == (None if family == "llada" else MASK)


def test_a_role_may_be_a_token_with_flags(made):
    def flagged(folder):
        token = {"__type": "AddedToken", "content": "<|im_end|>", "special": True}
        change_json(folder / "tokenizer_config.json", eos_token=token)

    assert made(flagged).token_id("eos_token") == TURN


@pytest.mark.parametrize("name", ["sep_token", "no such token"])
def test_a_role_or_token_that_is_not_there_has_no_id(made, name):
    assert made().token_id(name) is None


# Words without a token


@pytest.fixture
def of_words(tmp_path):
    """A tokenizer that knows whole words only; each has its space before it."""
    engine = Engine(WordLevel({"<unk>": 0, "pig": 1, " pig": 2, " bee": 3}, unk_token="<unk>"))
    engine.pre_tokenizer = pre_tokenizers.Split(Regex(r" ?\w+|\s+"), "isolated")
    engine.add_special_tokens(["<unk>", "<|end|>"])
    engine.save(str(tmp_path / "tokenizer.json"))
    write_json(tmp_path / "tokenizer_config.json", {"unk_token": "<unk>"})
    return Tokenizer.load(tmp_path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("pig bee pig<|end|>", []),
        ("", []),
        ("pig cow bee Grüße", ["cow", "Grüße"]),
        ("cow pig cow cow", ["cow"]),
        ("bee", ["bee"]),  # it has a token only after a space
        ("pig\tbee  pig", ["\t", "bee", "  "]),
        ("pig<unk> cow", ["cow"]),  # the text contains the token itself
    ],
)
def test_unknown_words_are_told_once_and_in_order(of_words, text, words):
    assert of_words.unknown(text) == words


def test_a_tokenizer_of_bytes_knows_every_word(made):
    assert made().unknown("zyzzyva 你好 \t") == []


# Chats


@pytest.mark.parametrize("family", FAMILIES)
def test_a_chat_is_rendered_by_the_models_own_template(made, family):
    tokenizer = made(family=family)
    chat = [{"role": "system", "content": "be brief"}, USER]
    assert tokenizer.render(chat) == (
        "<|start|>system:be brief<|endoftext|><|start|>user:hello<|endoftext|><|start|>assistant:"
    )
    without = tokenizer.render(chat, add_generation_prompt=False)
    assert without.endswith("user:hello<|endoftext|>")
    assert tokenizer.encode_chat(chat) == tokenizer.encode(tokenizer.render(chat))


def test_a_template_knows_the_special_tokens_by_role(templated):
    assert templated("{{ bos_token }}|{{ eos_token }}|{{ mask_token }}").render([USER]) == (
        "<|start|>|<|endoftext|>|<|mask|>"
    )


def test_a_role_without_a_token_is_nothing_in_a_template(templated):
    assert templated("[{{ sep_token }}]{% if sep_token %}x{% endif %}").render([USER]) == "[]"


def test_lines_of_a_template_leave_no_blanks(templated):
    template = "{% for m in messages %}\n  {% if m.role == 'user' %}\n{{ m.content }}\n"
    template += "  {% endif %}\n{% endfor %}"
    assert templated(template).render([USER, USER]) == "hello\nhello\n"


def test_json_in_a_template_is_not_escaped(templated):
    template = "{{ messages[0] | tojson }}"
    chat = [{"role": "user", "content": "<a> & é"}]
    assert json.loads(templated(template).render(chat)) == chat[0]
    assert "<a> & é" in templated(template).render(chat)


def test_a_template_file_comes_before_the_config(made):
    tokenizer = made(lambda folder: (folder / "chat_template.jinja").write_text("from the file"))
    assert tokenizer.render([USER]) == "from the file"


def test_of_several_templates_the_default_is_used(templated):
    several = [{"name": "tools", "template": "t"}, {"name": "default", "template": "d"}]
    assert templated(several).render([USER]) == "d"


def test_a_template_may_refuse_a_chat(templated):
    template = "{{ raise_exception('roles must alternate') }}"
    with pytest.raises(RequestError) as caught:
        templated(template).render([USER])
    assert one_line(caught) == "the chat template rejects the messages: roles must alternate"


def test_a_chat_is_rendered_anew_each_time(made):
    tokenizer = made()
    first = tokenizer.render([USER])
    assert tokenizer.render([{"role": "user", "content": "bye"}]) != first
    assert tokenizer.render([USER]) == first


def test_a_tokenizer_without_a_template_says_what_to_do(templated, tmp_path):
    with pytest.raises(RequestError) as caught:
        templated(...).render([USER])
    assert f"{tmp_path} has no chat template" in one_line(caught)
    assert "--raw" in one_line(caught)


@pytest.mark.parametrize("message", [{"role": "user"}, {"content": "x"}, {}])
def test_a_message_needs_a_role_and_a_content(made, message):
    with pytest.raises(RequestError, match="a message needs 'role' and 'content'"):
        made().render([message])


@pytest.mark.parametrize("template", ["{% for %}", "{{ unclosed", "{% endfor %}"])
def test_a_broken_template_is_named(templated, tmp_path, template):
    with pytest.raises(ModelError) as caught:
        templated(template).render([USER])
    assert f"{tmp_path}: broken chat template" in one_line(caught)


@pytest.mark.parametrize(
    "template",
    [
        "{{ messages[0].content.nothing.more }}",
        "{{ messages[5]['content'] }}",
        "{{ 1 + messages[0].content }}",
        "{{ 1 / 0 }}",
        "{{ messages | no_such_filter }}",
        "{{ ''.__class__.__mro__ }}",
    ],
)
def test_a_template_that_fails_on_a_chat_is_one_line(templated, template):
    with pytest.raises(UnmaskError, match="chat template") as caught:
        templated(template).render([USER])
    one_line(caught)


def test_a_template_cannot_reach_the_interpreter(templated):
    template = "{{ messages.__class__.__base__.__subclasses__() }}"
    with pytest.raises(Exception, match="unsafe"):
        templated(template).render([USER])


# Files


@pytest.mark.parametrize("text", ["", "{", "{}", "[]", '{"model": {"type": "Nothing"}}'])
def test_a_broken_tokenizer_file_is_named(made, tmp_path, text):
    with pytest.raises(ModelError) as caught:
        made(lambda folder: (folder / "tokenizer.json").write_text(text))
    assert str(tmp_path / "tokenizer.json") in one_line(caught)


@pytest.mark.parametrize("file", ["vocab.json", "merges.txt"])
@pytest.mark.parametrize("text", ["{", "#version: 0.2\na b c d\n", "x y\n"])
def test_a_broken_vocabulary_is_named(made, tmp_path, file, text):
    with pytest.raises(ModelError) as caught:
        made(lambda folder: (folder / file).write_text(text), slow=True)
    assert str(tmp_path) in one_line(caught)


@pytest.mark.parametrize("file", ["vocab.json", "merges.txt"])
def test_a_missing_vocabulary_is_named(made, tmp_path, file):
    with pytest.raises(ModelError) as caught:
        made(lambda folder: (folder / file).unlink(), slow=True)
    assert one_line(caught) == f"{tmp_path} has neither tokenizer.json nor {file}"


def test_a_folder_without_a_tokenizer_config_has_ids_but_no_roles(made):
    tokenizer = made(lambda folder: (folder / "tokenizer_config.json").unlink())
    assert tokenizer.encode("<|endoftext|>") == [EOS]
    assert tokenizer.token_id("eos_token") is None
    assert tokenizer.template is None
