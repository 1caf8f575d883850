"""Models from elsewhere: transformers classes, remote code, plain functions."""

import json
import sys

import pytest
import torch

import unmask
from tests.checkpoints import MASK, make_llada
from tests.paths import ROOT
from unmask.errors import ModelError
from unmask.models.transformers_model import TransformersModel, wrap
from unmask.models.via_transformers import load_carrier, load_remote

GOLDEN = ROOT / "tests" / "golden" / "models"
RULE = "confidence | swd(5) | eb(0.5)"
PROMPT = [11, 12, 13, 14, 15]

# A checkpoint's own code: its rotary buffer is filled in the constructor and never saved.
REMOTE = """
import torch
from types import SimpleNamespace
from transformers import PretrainedConfig, PreTrainedModel

class RemoteConfig(PretrainedConfig):
    model_type = "remote-llada"
    def __init__(self, d_model=32, rope_theta=10000.0, **more):
        self.d_model, self.rope_theta = d_model, rope_theta
        super().__init__(**more)

class LLaDAModelLM(PreTrainedModel):
    config_class = RemoteConfig
    def __init__(self, config):
        super().__init__(config)
        self.embed = torch.nn.Embedding(272, config.d_model)
        half = torch.arange(0, config.d_model, 2).float() / config.d_model
        turns = 1.0 / config.rope_theta ** half
        self.register_buffer("BUFFER", turns, persistent=False)
        self.post_init()
    def forward(self, input_ids, **_):
        place = torch.arange(input_ids.shape[-1])[:, None] * self.BUFFER
        x = self.embed(input_ids) + torch.cat([place.cos(), place.sin()], -1)
        return SimpleNamespace(logits=x.cumsum(1) @ self.embed.weight.T)
"""


@pytest.fixture
def transformers():
    return pytest.importorskip("transformers")


@pytest.fixture
def remote(tmp_path, transformers, monkeypatch):
    """A folder with the code of its model beside the weights."""
    monkeypatch.setenv("HF_MODULES_CACHE", str(tmp_path / "modules"))
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "m"))

    def make(buffer="inv_freq"):
        folder = make_llada(tmp_path / "remote")
        name = f"modeling_{tmp_path.name.replace('-', '_')}"
        (folder / f"{name}.py").write_text(REMOTE.replace("BUFFER", buffer))
        config = json.loads((folder / "config.json").read_text())
        config["model_type"] = "remote-llada"
        config["auto_map"] = {
            "AutoConfig": f"{name}.RemoteConfig",
            "AutoModel": f"{name}.LLaDAModelLM",
        }
        (folder / "config.json").write_text(json.dumps(config))
        torch.manual_seed(0)
        from safetensors.torch import save_file

        save_file({"embed.weight": torch.randn(272, 32)}, folder / "model.safetensors")
        return folder

    yield make
    for module in [name for name in sys.modules if name.startswith("transformers_modules")]:
        del sys.modules[module]


@pytest.mark.parametrize(
    "name", ["llada-tiny", "llada-tiny-gqa-sharded", "dream-tiny", "sdar-tiny"]
)
@pytest.mark.filterwarnings("ignore")
def test_a_carrier_decodes_the_same_tokens_as_our_own_implementation(name, transformers):
    carried, _ = load_carrier(GOLDEN / name, dtype=torch.float32)
    own = unmask.load(GOLDEN / name, dtype="float32").model
    a, b = (unmask.decode(model, PROMPT, RULE, length=16) for model in (carried, own))
    assert a.canvas.tolist() == b.canvas.tolist()
    assert a.nfe == b.nfe
    assert carried.spec == own.spec


@pytest.mark.filterwarnings("ignore")
def test_a_carrier_in_memory_can_be_wrapped(transformers):
    carried, _ = load_carrier(GOLDEN / "dream-tiny", dtype=torch.float32)
    wrapped = wrap(carried.model, mask_id=carried.spec.mask_id, shift=True)
    a, b = (unmask.decode(model, PROMPT, RULE, length=16) for model in (carried, wrapped))
    assert a.canvas.tolist() == b.canvas.tolist()


@pytest.mark.filterwarnings("ignore")
def test_rows_of_unequal_length_are_decoded_as_if_alone_by_a_hosted_model(transformers):
    model, _ = load_carrier(GOLDEN / "llada-tiny", dtype=torch.float32)
    prompts = [PROMPT, PROMPT[:2], [*PROMPT, 20, 21, 22]]
    many = unmask.decode_many(model, prompts, RULE, length=8, batch_size=3)
    for prompt, result in zip(prompts, many, strict=True):
        alone = unmask.decode(model, prompt, RULE, length=8)
        assert result.canvas.tolist() == alone.canvas.tolist()


def test_a_family_that_nobody_carries_is_named(transformers):
    with pytest.raises(ModelError, match="no class for llada-moe, only for llada, dream"):
        load_carrier(GOLDEN / "llada-moe-tiny")


@pytest.mark.filterwarnings("ignore")
def test_a_tensor_that_transformers_would_make_up_is_an_error(tmp_path, transformers):
    from safetensors.torch import load_file, save_file

    folder = make_llada(tmp_path)
    tensors = load_file(folder / "model.safetensors")
    del tensors["model.transformer.blocks.1.attn_out.weight"]
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match=r"missing keys: model.layers.1.self_attn.o_proj.weight"):
        load_carrier(folder)


def test_remote_code_must_be_allowed_by_name(remote):
    with pytest.raises(ModelError, match="give trust_remote_code=True"):
        load_remote(remote())


@pytest.mark.filterwarnings("ignore")
def test_remote_code_computes_with_right_rotary_frequencies_under_any_transformers(remote):
    model, _ = load_remote(remote(), trust_remote_code=True, dtype=torch.float32)
    frequencies = 1.0 / 10000.0 ** (torch.arange(0, 32, 2).float() / 32)
    torch.testing.assert_close(model.model.inv_freq, frequencies)
    assert model.spec.mask_id == MASK
    assert unmask.decode(model, PROMPT, "confidence | top(4)", length=8).nfe == 2


@pytest.mark.filterwarnings("ignore")
def test_a_remote_model_with_spoilt_frequencies_is_not_wrapped(remote, transformers):
    if int(transformers.__version__.split(".")[0]) < 5:
        pytest.skip("transformers 4 fills such buffers itself")
    hosted, _ = load_remote(remote(), trust_remote_code=True, dtype=torch.float32)
    hosted.model.inv_freq.fill_(0.5)
    with pytest.raises(ModelError, match=r"'inv_freq' does not hold rotary frequencies"):
        wrap(hosted.model)


@pytest.mark.filterwarnings("ignore")
def test_a_remote_model_with_an_unknown_unsaved_buffer_is_refused_under_transformers_5(
    remote, transformers
):
    if int(transformers.__version__.split(".")[0]) < 5:
        pytest.skip("transformers 4 fills such buffers itself")
    with pytest.raises(ModelError, match=r"leaves the buffer 'secret' uninitialised"):
        load_remote(remote("secret"), trust_remote_code=True)


def test_a_denoiser_is_wrapped_as_it_is(tmp_path):
    model = unmask.load(make_llada(tmp_path)).model
    assert wrap(model) is model


def test_a_plain_function_is_wrapped_with_its_mask_and_vocabulary():
    def flat(ids):
        return torch.zeros(*ids.shape, 5)

    model = wrap(flat, mask_id=4, vocab_size=5)
    assert unmask.decode(model, [1], "confidence | top(1)", length=3).answer.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("model", "knobs", "message"),
    [
        (lambda ids: ids, {}, "needs mask_id and vocab_size"),
        (lambda ids: ids, {"mask_id": 1, "vocab_size": 2, "block": 4}, "block is for transformers"),
        ("nonsense", {}, "cannot wrap str"),
    ],
)
def test_what_cannot_be_wrapped_is_said_in_one_line(model, knobs, message):
    with pytest.raises(ModelError, match=message) as error:
        wrap(model, **knobs)
    assert "\n" not in str(error.value)


def test_without_transformers_the_carriers_say_what_to_do(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ModelError, match="needs the package transformers; install it, or use"):
        load_carrier(GOLDEN / "llada-tiny")


def test_a_transformers_model_without_a_mask_token_must_be_told(transformers):
    config = transformers.LlamaConfig(
        vocab_size=32,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
    )
    model = transformers.LlamaForCausalLM(config)
    with pytest.raises(ModelError, match="names no mask token; give mask_id"):
        wrap(model)
    wrapped = wrap(model, mask_id=31)
    assert isinstance(wrapped, TransformersModel)
    assert wrapped.spec.vocab_size == 32
