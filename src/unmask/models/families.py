"""The families of released checkpoints, and which of them a config belongs to."""

from __future__ import annotations

from functools import partial

from unmask.errors import ModelError, UnknownName
from unmask.models.config import Config
from unmask.models.family import Family
from unmask.models.gpt2 import Gpt2
from unmask.models.modernbert import ModernBert
from unmask.models.readers.bert_gpt import (
    gpt2_tensors,
    modernbert_tensors,
    read_gpt2,
    read_modernbert,
)
from unmask.models.readers.experts import llada2_tensors, read_llada2, read_llada_moe
from unmask.models.readers.llada import llada_tensors, read_llada
from unmask.models.readers.qwen import (
    qwen_tensors,
    read_a2d_qwen2,
    read_a2d_qwen2_blocks,
    read_a2d_qwen3,
    read_a2d_qwen3_blocks,
    read_dream,
    read_fast_dllm,
    read_sdar,
)

FULL_ATTENTION = "mdlm"  # in a folder's name, where other models of the class attend in blocks
_A2D_QWEN3, _A2D_QWEN2 = ("A2DQwen3LMHeadModel",), ("A2DQwen2LMHeadModel",)

FAMILIES: tuple[Family, ...] = (
    Family(
        "llada",
        ("LLaDAModelLM",),
        (),
        "LLaDA-8B-Base, LLaDA-8B-Instruct, LLaDA-1.5, iLLaDA-8B",
        read_llada,
        llada_tensors,
        mask_id=126336,
        end_tokens=("<|eot_id|>",),
    ),
    Family(
        "dream",
        ("DreamModel", "DreamForCausalLM"),
        ("Dream", "dream"),
        "Dream-v0-Base-7B, Dream-v0-Instruct-7B, Dream-Coder-v0, DiffuCoder-7B",
        read_dream,
        qwen_tensors,
        mask_id=151666,
        end_tokens=("<|im_end|>",),
    ),
    Family(
        "llada-moe",
        ("LLaDAMoEModelLM", "LLaDAMoEModel"),
        (),
        "LLaDA-MoE-7B-A1B-Base, LLaDA-MoE-7B-A1B-Instruct",
        read_llada_moe,
        qwen_tensors,
        mask_id=156895,
        end_tokens=("<|role_end|>",),
    ),
    Family(
        "llada2",
        ("LLaDA2MoeModelLM",),
        ("llada2_moe",),
        "LLaDA2.0-mini, LLaDA2.0-flash, LLaDA2.1",
        read_llada2,
        llada2_tensors,
        mask_id=156895,
        end_tokens=("<|role_end|>",),
    ),
    Family(
        "sdar",
        ("SDARForCausalLM",),
        ("sdar",),
        "SDAR-1.7B-Chat, SDAR-4B-Chat, SDAR-8B-Chat",
        read_sdar,
        qwen_tensors,
        mask_id=151669,
        end_tokens=("<|im_end|>",),
    ),
    Family(
        "a2d-qwen3",
        _A2D_QWEN3,
        ("a2d-qwen3",),
        "Qwen3-0.6B-diffusion-mdlm",
        read_a2d_qwen3,
        qwen_tensors,
        mask_id=151669,
        end_tokens=("<|im_end|>",),
        mask_tokens=("<|mask|>", "<|MASK|>"),
    ),
    Family(
        "a2d-qwen3-bd3lm",
        _A2D_QWEN3,
        ("a2d-qwen3",),
        "Qwen3-0.6B-diffusion-bd3lm",
        partial(read_a2d_qwen3_blocks, block=32),
        qwen_tensors,
        mask_id=151669,
        end_tokens=("<|im_end|>",),
        mask_tokens=("<|mask|>", "<|MASK|>"),
        named="bd3lm",
    ),
    Family(
        "opdlm",
        _A2D_QWEN3,
        ("a2d-qwen3",),
        "OPDLM-0.6B, OPDLM-1.7B, OPDLM-4B, OPDLM-8B",
        partial(read_a2d_qwen3_blocks, block=4),
        qwen_tensors,
        mask_id=151669,
        end_tokens=("<|im_end|>",),
        mask_tokens=("<|MASK|>", "<|mask|>"),
        named="opdlm",
    ),
    Family(
        "a2d-qwen2",
        _A2D_QWEN2,
        ("a2d-qwen2",),
        "Qwen2.5-Coder-0.5B-Instruct-diffusion-mdlm",
        read_a2d_qwen2,
        qwen_tensors,
        mask_id=151665,
        end_tokens=("<|im_end|>",),
        mask_tokens=("<|mask|>",),
    ),
    Family(
        "a2d-qwen2-bd3lm",
        _A2D_QWEN2,
        ("a2d-qwen2",),
        "Qwen2.5-Coder-0.5B-Instruct-diffusion-bd3lm",
        partial(read_a2d_qwen2_blocks, block=32),
        qwen_tensors,
        mask_id=151665,
        end_tokens=("<|im_end|>",),
        mask_tokens=("<|mask|>",),
        named="bd3lm",
    ),
    Family(
        "open-dcoder",
        ("Qwen2ForCausalLM",),
        ("qwen2",),
        "open-dcoder-0.5B",
        read_dream,  # Dream's sizes, shift and attention under Qwen2's name
        qwen_tensors,
        mask_id=151665,
        mask_tokens=("<M>",),
        causal_class=True,
    ),
    Family(
        "fast-dllm-v2",
        ("Fast_dLLM_QwenForCausalLM",),
        ("Fast_dLLM_Qwen",),
        "Fast_dLLM_v2_1.5B, Fast_dLLM_v2_7B",
        read_fast_dllm,
        qwen_tensors,
        mask_id=151665,
        end_tokens=("<|im_end|>",),
        mask_tokens=("|<MASK>|",),
    ),
    Family(
        "modernbert-chat",
        ("ModernBertForMaskedLM",),
        ("modernbert",),
        "ModernBERT-base-chat, ModernBERT-large-chat",
        read_modernbert,
        modernbert_tensors,
        mask_id=50284,
        network=ModernBert,
        eos_of_tokenizer=True,
    ),
    Family(
        "diffugpt",
        ("GPT2LMHeadModel",),
        ("gpt2",),
        "diffugpt-s, diffugpt-m",
        read_gpt2,
        gpt2_tensors,
        mask_id=10541,  # of diffugpt-s: an ordinary entry of the vocabulary
        network=Gpt2,
        mask_tokens=("[¨M¨]",),
        causal_class=True,
        foreign=("transformer.h.0.attn.c_attn.weight", "h.0.attn.c_attn.weight"),
    ),
)


def family_of(
    config: Config, name: str | None = None, folder: str = "", masked: bool = False
) -> Family:
    """The family of a config: by `name`, else by `architectures`, else by `model_type`.

    Two families have the `model_type` llada, so `architectures` goes first. Where several have the
    same class, a word in the folder's name decides. A class of ordinary causal models is accepted
    only if a mask token is known (`masked`), or by `name`. A `name` that contradicts the config
    is refused: the model would load, and predict nonsense.
    """
    if name is not None:
        return _checked(config, family_named(name))
    alike = _of_class(config) if config.names else _of_type(config)
    if not alike:
        known = [name for family in FAMILIES for name in family.architectures]
        if not config.names and config.values.get("model_type") is None:
            raise ModelError(f"{config.file} has neither 'architectures' nor 'model_type'")
        raise UnknownName(f"architecture in {config.file}", config.declared, dict.fromkeys(known))
    chosen = next((f for f in alike if f.named and f.named in folder.lower()), alike[0])
    if chosen.causal_class and not masked:
        raise ModelError(
            f"{config.file}: {config.declared} is a causal model, and no file names a mask token; "
            f"if it was trained to fill masks, give mask_id, or family={chosen.name!r}"
        )
    return chosen


def _checked(config: Config, family: Family) -> Family:
    """The family; raises if the class or the type in the config belongs to others only."""
    by_class = _of_class(config)
    others = by_class or _of_type(config)
    if others and family not in others:
        key = "architectures" if by_class else "model_type"
        declared = config.declared if by_class else config.values["model_type"]
        names = " or ".join(repr(each.name) for each in others)
        raise ModelError(
            f"{config.file}: {key} says {declared}, which is family {names}, not {family.name!r}; "
            f"leave the family out, or change {key} if it is wrong"
        )
    return family


def _of_class(config: Config) -> list[Family]:
    """The families with a class under `architectures`."""
    return [family for family in FAMILIES if {*config.names} & {*family.architectures}]


def _of_type(config: Config) -> list[Family]:
    """The families with this `model_type`."""
    kind = config.values.get("model_type")
    if kind == "llada":  # of the two, only the MoE family has num_experts
        return [family_named("llada-moe" if "num_experts" in config.values else "llada")]
    return [family for family in FAMILIES if kind in family.model_types]


def family_named(name: str) -> Family:
    """The family of this name."""
    for family in FAMILIES:
        if family.name == name:
            return family
    raise UnknownName("family", name, [family.name for family in FAMILIES])


def is_ambiguous(family: Family) -> bool:
    """Whether models of other families, or causal ones, have the same class."""
    same = [each for each in FAMILIES if each.architectures == family.architectures]
    return family.causal_class or len(same) > 1


def in_blocks(family: Family) -> Family:
    """The family of the same class whose attention goes in blocks; itself if there is none."""
    same = [each for each in FAMILIES if each.architectures == family.architectures]
    return family if family.named else next((each for each in same if each.named), family)


def is_guessed(family: Family, folder: str) -> bool:
    """Whether full attention is only a guess: others of its class attend in blocks."""
    return in_blocks(family) is not family and FULL_ATTENTION not in folder.lower()
