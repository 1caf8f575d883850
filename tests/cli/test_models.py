"""`unmask models`: the families, and a folder described without its weights."""

import json

import pytest

from tests.checkpoints import BOS, EOS, EOT, MASK, make_llada, make_sdar
from tests.paths import ROOT
from unmask.cli import main
from unmask.embedded import FOLDER
from unmask.models.families import FAMILIES
from unmask.models.known import KNOWN
from unmask.models.load import load


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_llada(tmp_path_factory.mktemp("models") / "tiny")


def described(capsys, folder, *more):
    assert main(["models", str(folder), "--json", *more]) == 0
    return json.loads(capsys.readouterr().out)


def test_every_family_is_listed_with_how_it_attends(capsys):
    assert main(["models", "--families", "--json"]) == 0
    families = {family["family"]: family for family in json.loads(capsys.readouterr().out)}
    assert list(families) == [family.name for family in FAMILIES]
    shifted = {name for name, family in families.items() if family["shift"]}
    assert shifted == {"dream", "open-dcoder", "fast-dllm-v2", "diffugpt"}
    blocks = {name: family["block"] for name, family in families.items() if family["block"]}
    from_zero = {"llada2": 32, "sdar": 4, "fast-dllm-v2": 32}
    from_the_prompts_end = {"a2d-qwen3-bd3lm": 32, "opdlm": 4, "a2d-qwen2-bd3lm": 32}
    assert blocks == from_zero | from_the_prompts_end
    named = {name for name, family in families.items() if family["from_prompt_end"]}
    assert named == set(from_the_prompts_end)
    assert families["llada"]["mask_id"] == 126336
    assert main(["models", "--families"]) == 0
    out = capsys.readouterr().out
    for family in FAMILIES:
        assert family.examples in " ".join(out.split())
        assert ", ".join(family.architectures) in out


def test_public_checkpoints_are_listed_with_those_for_a_laptop_first(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    assert main(["models", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [each["hub_id"] for each in listed] == [known.hub_id for known in KNOWN]
    sizes = [each["laptop"] for each in listed]
    assert sizes == sorted(sizes, reverse=True)
    assert main(["models"]) == 0
    out = capsys.readouterr().out
    rows = {line.split()[0]: line for line in out.splitlines() if "/" in line}
    sdar = rows["JetLM/SDAR-1.7B-Chat"].split()
    assert sdar[1:6] == ["2.03B", "8.13GB", "4.06GB", "2.65GB", "2.04GB"]
    assert sdar[6:8] == ["not", "seen"]  # its licence
    assert "Apache-2.0" in rows["fredzzp/open-dcoder-0.5B"]
    assert rows["inclusionAI/LLaDA2.0-mini"].split()[2:6] == ["65GB", "32.5GB", "-", "-"]  # experts
    assert out.index("for a laptop") < out.index("JetLM/SDAR-1.7B-Chat")
    assert out.index("for a larger machine") < out.index("GSAI-ML/LLaDA-8B-Instruct")


@pytest.mark.parametrize("columns", [80, 120])
def test_the_list_of_checkpoints_fits_into_the_window(capsys, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    assert main(["models"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= columns
    for known in KNOWN:
        assert sum(known.hub_id in line for line in lines) == 1 + bool(known.note)


def test_the_numbers_of_a_folder_are_those_of_the_loaded_model(capsys, folder):
    record = described(capsys, folder)
    model, tokenizer = load(folder)
    count = sum(parameter.numel() for parameter in model.module.parameters())
    assert record["parameters"] == record["active_parameters"] == count
    memory = record["memory"]
    assert (memory["float32"], memory["bfloat16"]) == (4 * count, 2 * count)
    inner = sum(parameter.numel() for parameter in model.module.layers.parameters())
    assert memory["int8"] == 2 * count - inner
    assert 2 * (count - inner) < memory["int4"] < memory["int8"]
    assert record["size"] == (folder / "model.safetensors").stat().st_size
    expected = {
        "family": "llada",
        "layers": 2,
        "hidden": 32,
        "heads": 4,
        "kv_heads": 4,
        "vocab_size": 272,
        "tokenizer_size": tokenizer.size,
        "chat_template": True,
        "attention": "full",
        "block": None,
        "shift": False,
        "experts": None,
        "mask_id": MASK,
        "mask_token": "<|mdm_mask|>",
        "mask_from": "config",
        "eos_id": EOS,
        "stop_ids": [EOS, EOT],
        "tokenizer": "BPE",
        "dtypes": ["float32"],
        "files": ["model.safetensors"],
    }
    assert {key: record[key] for key in expected} == expected


def test_the_description_reads_no_weights(capsys, folder, monkeypatch):
    monkeypatch.setattr("unmask.models.checkpoint.Checkpoint.fill", None)
    assert described(capsys, folder)["family"] == "llada"


def test_a_block_causal_folder_says_so(capsys, tmp_path):
    sdar = make_sdar(tmp_path / "sdar", template=None)
    assert main(["models", str(sdar)]) == 0
    out = capsys.readouterr().out
    assert "attention   block-causal in blocks of 4\n" in out
    assert "heads       4, 2 for keys and values\n" in out
    assert "no chat template" in out


def test_the_mask_is_told_with_who_named_it(capsys, tmp_path, folder):
    assert described(capsys, folder, "--mask-id", str(BOS))["mask_from"] == "user"
    nameless = make_llada(tmp_path / "nameless", mask_token_id=None)
    assert main(["models", str(nameless)]) == 2
    assert "mask token 126336 lies outside the vocabulary" in capsys.readouterr().err
    roles = json.loads((nameless / "tokenizer_config.json").read_text())
    roles["mask_token"] = "<|mdm_mask|>"
    (nameless / "tokenizer_config.json").write_text(json.dumps(roles))
    record = described(capsys, nameless)
    assert (record["mask_from"], record["mask_id"]) == ("tokenizer", MASK)
    wide = make_llada(
        tmp_path / "wide",
        mask_token_id=None,
        embedding_size=126400,
        d_model=4,
        n_heads=1,
        n_kv_heads=1,
    )
    record = described(capsys, wide)
    assert (record["mask_from"], record["mask_id"], record["mask_token"]) == (
        "family",
        126336,
        None,
    )


def test_a_missing_tensor_is_found_without_loading(capsys, tmp_path):
    folder = make_llada(tmp_path / "short")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "n_layers": 3}))
    assert main(["models", str(folder)]) == 2
    err = capsys.readouterr().err
    assert "the tensor 'model.transformer.blocks.2.attn_norm.weight' is missing" in err
    assert err.count("\n") == 1


def test_the_embedded_model_is_described_by_its_name(capsys):
    record = described(capsys, "embedded")
    assert record == described(capsys, FOLDER)
    model, _ = load()
    expected = {
        "folder": str(FOLDER),
        "family": "llada",
        "parameters": model.parameters,
        "dtypes": ["float16"],
        "attention": "full",
        "mask_token": "<|mdm_mask|>",
        "stop_tokens": ["<|endoftext|>", "<|eot_id|>"],
        "tokenizer": "WordLevel",
        "chat_template": True,
    }
    assert {key: record[key] for key in expected} == expected
    assert main(["models", "embedded"]) == 0
    assert f"folder      {FOLDER}\n" in capsys.readouterr().out


def test_what_is_no_folder_is_one_line(capsys):
    assert main(["models", "GSAI-ML/LLaDA-8B-Instruct"]) == 2
    assert capsys.readouterr().err == (
        "unmask models: 'GSAI-ML/LLaDA-8B-Instruct' is not a folder; "
        "give the folder of a checkpoint\n"
    )


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--family", "sdar"], "--family is for describing a folder; give its PATH"),
        (["--mask-id", "5"], "--mask-id is for describing a folder; give its PATH"),
        (["--families", "--family", "sdar"], "--family is for describing a folder; give its PATH"),
        (["embedded", "--families"], "--families lists all families, so it takes no PATH"),
        ([""], "PATH must not be empty; give the folder of a checkpoint"),
        (["embedded", "--mask-id", "1.5"], "--mask-id must be a whole number >= 0, got '1.5'"),
    ],
)
def test_an_argument_that_would_not_be_used_or_read_is_one_line(capsys, arguments, told):
    assert main(["models", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith(f"unmask models: {told}")
    assert (captured.err.count("\n"), captured.out) == (1, "")


def spoiled_template(folder):
    roles = json.loads((folder / "tokenizer_config.json").read_text())
    roles["chat_template"] = "{% if %}"
    (folder / "tokenizer_config.json").write_text(json.dumps(roles))
    return "broken chat template"


def spoiled_context(folder):
    config = json.loads((folder / "config.json").read_text())
    config["max_position_embeddings"] = "big"
    config.pop("max_sequence_length", None)
    (folder / "config.json").write_text(json.dumps(config))
    return "max_position_embeddings must be a whole number >= 1, got 'big'"


def spoiled_layers(folder):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "n_layers": 1}))
    return "have no place in the model that config.json describes; check its number of layers"


@pytest.mark.parametrize("spoil", [spoiled_template, spoiled_context, spoiled_layers])
def test_a_folder_that_cannot_be_loaded_is_not_approved(capsys, tmp_path, spoil):
    folder = make_llada(tmp_path / "spoiled")
    said = spoil(folder)
    assert main(["models", str(folder)]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1


def test_local_layers_are_told(capsys):
    folder = ROOT / "tests" / "golden" / "models-2" / "modernbert-chat-tiny"
    record = described(capsys, folder)
    assert (record["attention"], record["local_layers"], record["local_reach"]) == ("full", 2, 4)
    assert main(["models", str(folder)]) == 0
    line = "attention   full, but local in 2 of 4 layers (4 tokens each way)\n"
    assert line in capsys.readouterr().out
    assert main(["models", "--families"]) == 0
    local = "  attention      full, and local layers (64 tokens each way by default)\n"
    assert capsys.readouterr().out.count(local) == 1


def test_a_family_against_the_config_is_one_line(capsys, folder):
    assert main(["models", str(folder), "--family", "sdar"]) == 2
    err = capsys.readouterr().err
    assert "architectures says LLaDAModelLM, which is family 'llada', not 'sdar'" in err
    assert err.count("\n") == 1
