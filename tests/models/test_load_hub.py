"""Where a checkpoint comes from: folders and hub ids."""

from __future__ import annotations

import sys

import pytest

from tests.models.common import one_line
from tests.models.makers import make
from unmask import ModelError, load
from unmask.models.load import find_folder

# Folders and hub ids


@pytest.fixture
def hub(monkeypatch):
    """A hub that records the calls, and returns a folder or raises an error."""
    huggingface_hub = pytest.importorskip("huggingface_hub")
    asked = {}

    def answer(result):
        def snapshot_download(name, **knobs):
            asked.update(knobs, name=name)
            if isinstance(result, Exception):
                raise result
            return str(result)

        monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
        return asked

    return answer


def test_a_folder_may_be_a_string_or_a_path(folder):
    assert load(str(folder)).folder == load(folder).folder == folder


def test_a_folder_below_the_home_folder_may_begin_with_a_tilde(folder, monkeypatch):
    monkeypatch.setenv("HOME", str(folder.parent))
    assert find_folder("~/tiny") == folder


def test_a_folder_is_never_looked_up_on_the_hub(folder, hub):
    asked = hub(AssertionError("the hub was asked"))
    load(folder)
    assert asked == {}


def test_a_relative_folder_that_looks_like_a_hub_id_is_the_folder(tmp_path, hub, monkeypatch):
    make(tmp_path / "some" / "model", "llada")
    asked = hub(AssertionError("the hub was asked"))
    monkeypatch.chdir(tmp_path)
    assert load("some/model").family.name == "llada"
    assert asked == {}


def test_a_hub_id_is_fetched_with_its_revision_and_token(folder, hub):
    asked = hub(folder)
    loaded = load("GSAI-ML/LLaDA-8B-Instruct", revision="abc123", token="secret")
    assert loaded.folder == folder
    assert asked["name"] == "GSAI-ML/LLaDA-8B-Instruct"
    assert (asked["revision"], asked["token"]) == ("abc123", "secret")


def test_only_weights_configs_and_tokenizers_are_fetched(folder, hub):
    from fnmatch import fnmatch

    asked = hub(folder)
    load("GSAI-ML/LLaDA-8B-Instruct")
    wanted = [
        *(file.name for file in folder.iterdir()),
        "model-00001-of-00002.safetensors",
        "model.safetensors.index.json",
        "merges.txt",
        "chat_template.jinja",
    ]
    patterns = asked["allow_patterns"]
    assert all(any(fnmatch(name, pattern) for pattern in patterns) for name in wanted)
    for other in ("modeling_llada.py", "pytorch_model.bin", "assets/figure.png", "model.gguf"):
        assert not any(fnmatch(other, pattern) for pattern in patterns)


@pytest.mark.parametrize(
    "error",
    [
        ConnectionError("no route to the hub"),
        OSError("no route to the hub\nsecond line\nthird line"),
        RuntimeError("\n  no route to the hub\n"),
    ],
)
def test_a_hub_that_cannot_be_reached_says_what_to_do(hub, error):
    hub(error)
    with pytest.raises(ModelError) as caught:
        load("GSAI-ML/LLaDA-8B-Instruct")
    message = one_line(caught)
    assert "'GSAI-ML/LLaDA-8B-Instruct' is not a folder" in message
    assert "no route to the hub" in message
    assert "check the name and the network, or download it elsewhere" in message


def test_an_error_without_words_is_named_by_its_kind(hub):
    hub(TimeoutError())
    with pytest.raises(ModelError, match="TimeoutError"):
        load("some/model")


def test_a_token_is_never_part_of_a_message(hub):
    hub(OSError("refused"))
    with pytest.raises(ModelError) as caught:
        load("some/model", token="hf_secret")
    assert "hf_secret" not in one_line(caught)


def test_a_hub_id_without_the_hub_library_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ModelError) as caught:
        load("some/model")
    assert "install the package huggingface_hub" in one_line(caught)


@pytest.mark.parametrize("name", ["llada", "/no/such/folder", "./some/model", "a/b/c", "../x"])
def test_what_is_neither_a_folder_nor_a_hub_id_never_reaches_the_hub(hub, name):
    asked = hub(AssertionError("the hub was asked"))
    with pytest.raises(ModelError) as caught:
        load(name)
    assert repr(name) in one_line(caught)
    assert "hub id like" in one_line(caught)
    assert asked == {}


@pytest.mark.parametrize("gone", ["tokenizer.json", "vocab.json", "merges.txt"])
def test_missing_tokenizer_files_are_named(tmp_path, gone):
    folder = make(tmp_path, "dream", slow_tokenizer=gone != "tokenizer.json")
    (folder / gone).unlink()
    with pytest.raises(ModelError) as caught:
        load(folder)
    message = one_line(caught)
    assert str(folder) in message
    assert "tokenizer.json" in message
    assert gone in message
