"""Public checkpoints that can be loaded: their hub ids, sizes and licences.

Sizes follow from the published configs, licences are those that their cards or repositories state.
"""

from __future__ import annotations

from dataclasses import dataclass

from unmask.models.memory import weight_bytes

LAPTOP = 5e9  # bytes of bfloat16 weights that leave room to work on a machine of 8 GB
NOT_SEEN = "not seen"


@dataclass(frozen=True)
class KnownCheckpoint:
    """A checkpoint on the hub."""

    hub_id: str
    family: str
    parameters: int
    outer: int  # of them in the embedding and the head, which quantisation leaves in bfloat16
    licence: str = NOT_SEEN
    note: str = ""

    def memory(self, precision: str) -> int:
        """The bytes of the weights in float32, bfloat16, int8 or int4."""
        return weight_bytes(self.parameters - self.outer, self.outer, precision)

    @property
    def quantizable(self) -> bool:
        """Whether `quantize` supports it: mixtures of experts are not."""
        return self.family not in ("llada-moe", "llada2")

    @property
    def laptop(self) -> bool:
        """Whether it runs on a machine with 8 GB of memory, in bfloat16."""
        return self.memory("bfloat16") <= LAPTOP


_QWEN3_600M, _QWEN2_500M = (596_049_920, 155_582_464), (494_032_768, 136_134_656)
_LLADA_8B, _DREAM_7B = (8_015_581_184, 1_035_993_088), (7_615_616_512, 1_089_994_752)
_QWEN3_8B = (8_190_735_360, 1_244_659_712)
_APACHE, _MIT = "Apache-2.0", "MIT"
_INIT = "card not seen; the models it starts from are Apache-2.0"
_NAME = "name and size not seen"

KNOWN = (
    KnownCheckpoint("JetLM/SDAR-1.7B-Chat", "sdar", 2_031_739_904, 622_329_856),
    KnownCheckpoint(
        "Efficient-Large-Model/Fast_dLLM_v2_1.5B",
        "fast-dllm-v2",
        1_543_714_304,
        233_373_696,
        _APACHE,
    ),
    KnownCheckpoint("dllm-hub/Qwen3-0.6B-diffusion-mdlm-v0.1", "a2d-qwen3", *_QWEN3_600M, _APACHE),
    KnownCheckpoint(
        "dllm-hub/Qwen3-0.6B-diffusion-bd3lm-v0.1", "a2d-qwen3-bd3lm", *_QWEN3_600M, _APACHE
    ),
    KnownCheckpoint("divelab/OPDLM-0.6B", "opdlm", *_QWEN3_600M, note=_INIT),
    KnownCheckpoint(
        "dllm-hub/Qwen2.5-Coder-0.5B-Instruct-diffusion-mdlm-v0.1",
        "a2d-qwen2",
        *_QWEN2_500M,
        _APACHE,
        "code",
    ),
    KnownCheckpoint(
        "dllm-hub/Qwen2.5-Coder-0.5B-Instruct-diffusion-bd3lm-v0.1",
        "a2d-qwen2-bd3lm",
        *_QWEN2_500M,
        _APACHE,
        "code",
    ),
    KnownCheckpoint("fredzzp/open-dcoder-0.5B", "open-dcoder", *_QWEN2_500M, _APACHE, "code"),
    KnownCheckpoint(
        "dllm-hub/ModernBERT-large-chat-v0.1", "modernbert-chat", 395_881_664, 51_576_832
    ),
    KnownCheckpoint(
        "dllm-hub/ModernBERT-base-chat-v0.1", "modernbert-chat", 149_655_232, 38_682_624
    ),
    KnownCheckpoint(
        "diffusionfamily/diffugpt-m",
        "diffugpt",
        354_824_192,
        52_512_768,
        _APACHE,
        "base; give family diffugpt",
    ),
    KnownCheckpoint(
        "diffusionfamily/diffugpt-s",
        "diffugpt",
        124_439_808,
        39_383_808,
        _APACHE,
        "base; give family diffugpt",
    ),
    KnownCheckpoint(
        "divelab/OPDLM-1.7B", "opdlm", 1_720_574_976, 311_164_928, note=f"{_NAME}; {_INIT}"
    ),
    KnownCheckpoint("JetLM/SDAR-4B-Chat", "sdar", 4_411_424_256, 777_912_320),
    KnownCheckpoint(
        "divelab/OPDLM-4B", "opdlm", 4_022_468_096, 388_956_160, note=f"{_NAME}; {_INIT}"
    ),
    KnownCheckpoint("GSAI-ML/LLaDA-8B-Instruct", "llada", *_LLADA_8B, _MIT),
    KnownCheckpoint("GSAI-ML/LLaDA-8B-Base", "llada", *_LLADA_8B, _MIT, "base"),
    KnownCheckpoint("GSAI-ML/LLaDA-1.5", "llada", *_LLADA_8B, _MIT),
    KnownCheckpoint("Dream-org/Dream-v0-Instruct-7B", "dream", *_DREAM_7B),
    KnownCheckpoint("Dream-org/Dream-v0-Base-7B", "dream", *_DREAM_7B, note="base"),
    KnownCheckpoint("Dream-org/Dream-Coder-v0-Instruct-7B", "dream", *_DREAM_7B, note="code"),
    KnownCheckpoint("apple/DiffuCoder-7B-Instruct", "dream", *_DREAM_7B, note="code"),
    KnownCheckpoint("apple/DiffuCoder-7B-cpGRPO", "dream", *_DREAM_7B, note="code"),
    KnownCheckpoint("apple/DiffuCoder-7B-Base", "dream", *_DREAM_7B, note="base, code"),
    KnownCheckpoint("Efficient-Large-Model/Fast_dLLM_v2_7B", "fast-dllm-v2", *_DREAM_7B, _APACHE),
    KnownCheckpoint("JetLM/SDAR-8B-Chat", "sdar", *_QWEN3_8B),
    KnownCheckpoint("divelab/OPDLM-8B", "opdlm", *_QWEN3_8B, note=f"{_NAME}; {_INIT}"),
    KnownCheckpoint(
        "inclusionAI/LLaDA-MoE-7B-A1B-Instruct",
        "llada-moe",
        7_356_880_896,
        643_825_664,
        _APACHE,
    ),
    KnownCheckpoint(
        "inclusionAI/LLaDA-MoE-7B-A1B-Base",
        "llada-moe",
        7_356_880_896,
        643_825_664,
        _APACHE,
        "base",
    ),
    KnownCheckpoint("inclusionAI/LLaDA2.0-mini", "llada2", 16_255_643_392, 643_825_664, _APACHE),
    KnownCheckpoint("inclusionAI/LLaDA2.1-mini", "llada2", 16_255_643_392, 643_825_664, _APACHE),
    KnownCheckpoint(
        "inclusionAI/LLaDA2.0-flash", "llada2", 102_889_705_216, 1_287_651_328, _APACHE
    ),
)
