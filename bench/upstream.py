"""The original decoders, loaded from clones of their repositories, and our model as they call it.

No line of theirs is in this repository: the files are read from a folder that the user names.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bench.common import LLADA_EOS, LLADA_MASK, torch_layers, torch_products
from unmask.models.pretrained import Pretrained


@dataclass(frozen=True)
class Work:
    """One decode: its canvas, the steps of a fixed timetable, and the thresholds of adaptive rules.

    Random distributions are flatter than trained ones, so the thresholds are low.
    """

    prompt: int = 64
    length: int = 128
    block: int = 32
    steps: int = 32
    tau: float = 0.2
    kl: float = 8.0

    @property
    def prompt_ids(self) -> list[int]:
        return list(range(1000, 1000 + self.prompt))


class Reply(NamedTuple):
    """What a model of transformers returns, as far as a decoder reads it."""

    logits: Tensor


class HostedModel:
    """Our model as the originals call one: token ids in, logits of the whole canvas out.

    The weights and the layers are the same on both sides. Here norms, rotations and sums are made
    by torch, as in the originals' models; ours have the same bits. In float32 the products are
    torch's too. In bfloat16 they are ours, because torch's may be rounded in another way.

    KLASS has LLaDA's mask id written into it, so all of them use that id, and it becomes the id of
    this model. The mask is never predicted, as in unmask; the originals could write it and leave a
    hole.
    """

    def __init__(self, model: Pretrained) -> None:
        self.model, self.device, self.forwards = model, model.device, 0
        self.config = SimpleNamespace(vocab_size=model.spec.vocab_size)

    def __call__(self, tokens: Tensor, attention_mask: Tensor | None = None) -> Reply:
        """[1, L] -> [1, L, V]; a row without padding needs no attention mask."""
        assert attention_mask is None or bool(attention_mask.all())
        self.forwards += 1
        mask_id = self.model.spec.mask_id
        tokens = tokens.masked_fill(tokens == LLADA_MASK, mask_id)
        plain = self.model.dtype == torch.float32
        with torch_layers(), torch_products() if plain else nullcontext():
            logits = self.model.module.logits(self.model.module(tokens))
        logits[..., mask_id] = -torch.inf
        return Reply(logits)


Decode = Callable[[HostedModel, Work], Tensor]  # to the canvas, [L]


@dataclass(frozen=True)
class Original:
    """A decoder of another project: where its file is in a folder of clones, and how to call it."""

    name: str
    folder: str  # as `git clone` names it
    files: tuple[str, ...]  # the first that exists is the one; projects move their files
    rule: str  # the same decoder as a rule of unmask
    call: Callable[[ModuleType, HostedModel, Work], Tensor]

    @property
    def place(self) -> str:
        """Where its file is, below the folder of clones."""
        return f"{self.folder}/{self.files[-1]}"

    def path(self, clones: Path) -> Path | None:
        """The file of the decoder, None if there is no such clone."""
        paths = (clones / self.folder / file for file in self.files)
        return next((path for path in paths if path.is_file()), None)

    def load(self, clones: Path) -> Decode:
        """The original function; ImportError if it needs what is not installed."""
        path, folder = self.path(clones), clones / self.folder
        assert path is not None
        with _stand_ins(folder):
            module = _module(path, folder)
        return lambda model, work: self.call(module, model, work)

    def rule_for(self, work: Work) -> str:
        return self.rule.format(steps=work.steps, tau=work.tau, kl=work.kl)


class Loaded(NamedTuple):
    """An original that can run."""

    original: Original
    decode: Decode
    commit: str


def _llada(module: ModuleType, model: HostedModel, work: Work) -> Tensor:
    canvas: Tensor = module.generate(
        model,
        torch.tensor([work.prompt_ids]),
        steps=work.steps,
        gen_length=work.length,
        block_length=work.block,
    )
    return canvas[0]


def _fast_dllm(module: ModuleType, model: HostedModel, work: Work) -> Tensor:
    canvas: Tensor = module.generate(
        model,
        torch.tensor([work.prompt_ids]),
        steps=work.length,
        gen_length=work.length,
        block_length=work.block,
        threshold=work.tau,
    )[0]
    return canvas[0]


def _dllm(module: ModuleType, model: HostedModel, work: Work) -> Tensor:
    tokenizer = SimpleNamespace(
        mask_token_id=LLADA_MASK, bos_token_id=LLADA_EOS, eos_token_id=LLADA_EOS
    )
    canvas: Tensor = module.MDLMSampler(model, tokenizer).sample(
        [work.prompt_ids], steps=work.steps, max_new_tokens=work.length, block_size=work.block
    )
    return canvas[0]


def _klass(module: ModuleType, model: HostedModel, work: Work) -> Tensor:
    canvas: Tensor = module.stable_confident_decode(
        model,
        None,
        torch.tensor([work.prompt_ids]),
        gen_length=work.length,
        steps=work.length,
        block_length=work.block,
        conf_threshold=work.tau,
        kl_threshold=work.kl,
        kl_history_length=2,
        alg="klass",
    )[0]
    return canvas[0]


ORIGINALS = (
    Original("LLaDA", "LLaDA", ("generate.py",), "confidence | static({steps})", _llada),
    Original(
        "Fast-dLLM",
        "Fast-dLLM",
        ("v1/llada/generate.py", "llada/generate.py"),
        "confidence | threshold({tau:g}, test=ge)",
        _fast_dllm,
    ),
    Original(
        "dllm", "dllm", ("dllm/core/samplers/mdlm.py",), "confidence | static({steps})", _dllm
    ),
    Original(
        "KLASS",
        "KLASS",
        ("src/model/llada_klass.py",),
        "confidence | klass({tau:g}, kl={kl:g}, n=2)",
        _klass,
    ),
)


def load_all(clones: Path) -> tuple[list[Loaded], list[str]]:
    """The originals of a folder, and why the others are left out; ValueError if none can run."""
    loaded, left_out = [], []
    for original in ORIGINALS:
        if original.path(clones) is None:
            left_out.append(f"{original.name} (no {original.place})")
            continue
        try:
            commit = _commit(clones / original.folder)
            loaded.append(Loaded(original, original.load(clones), commit))
        except ImportError as error:
            left_out.append(f"{original.name} ({error})")
    if not loaded:
        raise ValueError(
            f"{clones} has no original decoder that can run: {', '.join(left_out)}; "
            f"clone their repositories into it"
        )
    return loaded, left_out


def _commit(clone: Path) -> str:
    """The commit of a clone; empty for a folder that is none."""
    if not (clone / ".git").exists():
        return ""
    command = ["git", "-C", str(clone), "rev-parse", "--short=7", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def _module(path: Path, folder: Path) -> Any:
    """A file as a module; a file inside a package is imported by its name in that package."""
    inside = path.relative_to(folder).with_suffix("").parts
    if inside[0] == "dllm":
        return import_module(".".join(inside))
    spec = spec_from_file_location(f"original_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextmanager
def _stand_ins(folder: Path) -> Iterator[None]:
    """Modules that the originals import and that a decode does not use.

    `transformers` and Fast-dLLM's `model` load checkpoints, which only their main functions do.
    dllm's packages import all its trainers; here they are empty and only find the sampler's files.
    """
    before = {name: module for name, module in sys.modules.items() if _replaced(name)}
    loaders = dict.fromkeys(
        ("AutoModel", "AutoTokenizer", "PreTrainedModel", "PreTrainedTokenizer", "LLaDAModelLM"),
        object,
    )
    for name in ("transformers", "model", "model.modeling_llada"):
        sys.modules[name] = _made(name, **loaders)
    for name in ("dllm", "dllm.core", "dllm.core.samplers"):
        sys.modules[name] = _made(name, __path__=[str(folder.joinpath(*name.split(".")))])
    try:
        yield
    finally:
        for name in list(filter(_replaced, sys.modules)):
            del sys.modules[name]
        sys.modules.update(before)


def _replaced(name: str) -> bool:
    return name.split(".")[0] in {"transformers", "model", "dllm"}


def _made(name: str, **attributes: Any) -> ModuleType:
    module = ModuleType(name)
    vars(module).update(attributes)
    return module
