"""The README's three lines: a model and its tokenizer in memory write a text."""

from __future__ import annotations

import re

import pytest
import torch

import unmask
from tests.checkpoints import EOS, EOT, MASK, make_llada
from tests.in_memory import GOLDEN, KINDS, model_in_memory, tokenizer_in_memory
from tests.paths import ROOT
from unmask.text.session import Session

pytest.importorskip("transformers")
pytestmark = pytest.mark.filterwarnings("ignore")
README = ROOT / "README.md"
MESSAGES = [{"role": "user", "content": "How many apples are left?"}]


def three_lines():
    (block,) = re.findall(r"```py\n(.*?)```", README.read_text(), re.DOTALL)
    assert block.count("\n") == 3
    return block


def printed(model, tokenizer, capsys, lines):
    names = {"unmask": unmask, "model": model, "tokenizer": tokenizer, "messages": MESSAGES}
    exec(lines, names)
    return capsys.readouterr().out


@pytest.mark.parametrize("name", KINDS)
def test_the_three_lines_print_what_unmask_makes_of_the_same_checkpoint(name, capsys):
    model, tokenizer = model_in_memory(name), tokenizer_in_memory(name)
    lines = three_lines().replace("length=256", "length=64")
    shown = printed(model, tokenizer, capsys, lines)
    session = Session(GOLDEN / name, dtype="float32", rule="swd-block32", length=64)
    answer = session.chat(MESSAGES)
    assert shown == f"{answer.text} {answer.nfe}\n"
    assert answer.tokens


@pytest.mark.parametrize("name", KINDS)
def test_wrap_knows_of_a_model_and_its_tokenizer_what_load_knows_of_their_folder(name):
    wrapped = unmask.wrap(model_in_memory(name), tokenizer_in_memory(name)).spec
    loaded = unmask.load(GOLDEN / name).model.spec
    for what in ("mask_id", "vocab_size", "eos_id", "stop_ids", "block"):
        assert getattr(wrapped, what) == getattr(loaded, what), what


def test_a_tokenizer_names_the_mask_that_no_config_names(tmp_path):
    import transformers

    tokenizer = transformers.PreTrainedTokenizerFast.from_pretrained(make_llada(tmp_path))
    config = transformers.LlamaConfig(
        vocab_size=272,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        eos_token_id=5,
    )
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(config).eval()
    tokenizer.mask_token = "<|mdm_mask|>"
    spec = unmask.wrap(model, tokenizer).spec
    assert spec.mask_id == MASK
    assert spec.stop_ids == (5, EOS, EOT)  # of an unknown class: what ends a turn in any family
    assert unmask.wrap(model, tokenizer, mask_id=5, eos_id=6).spec.stop_ids == (6,)
