"""`unmask.load`: loads a checkpoint folder or a hub id as a denoiser with its tokenizer."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from numbers import Integral
from pathlib import Path
from typing import Any

import torch

from unmask import embedded
from unmask.errors import ModelError, shown
from unmask.models.describe import Description, describe
from unmask.models.family import Family, Network
from unmask.models.load_options import LoadOptions
from unmask.models.packed import pack_layers
from unmask.models.pretrained import Pretrained
from unmask.models.quantized import quantize_layers
from unmask.models.stored import StoredModel
from unmask.models.tokenizer import Tokenizer
from unmask.models.words import DTYPES

WANTED = ["*.json", "*.safetensors", "*.txt", "*.jinja"]  # the files of a hub repository


@dataclass(frozen=True)
class Loaded:
    """A model with its tokenizer; unpacks as `model, tokenizer`."""

    model: Pretrained
    tokenizer: Tokenizer
    description: Description

    @property
    def family(self) -> Family:
        return self.description.family

    @property
    def folder(self) -> Path:
        return self.description.folder

    def __iter__(self) -> Any:
        return iter((self.model, self.tokenizer))


def load(
    source: str | os.PathLike[str] = embedded.NAME,
    *,
    device: str | torch.device | None = None,
    dtype: str | torch.dtype | None = None,
    quantize: str | None = None,
    pack: bool | None = None,
    mask_id: int | None = None,
    family: str | None = None,
    block: int | None = None,
    exact: bool | None = None,
    compile: bool = False,
    device_map: str | dict[str, Any] | None = None,
    revision: str | None = None,
    token: str | None = None,
) -> Loaded:
    """Load a checkpoint of one of the families that `unmask models` lists.

    Args:
        source: a folder, or a hub id such as `GSAI-ML/LLaDA-8B-Instruct` (default: the small
            model inside the package).
        device: the device of the weights (default: cuda if there is one, else cpu).
        dtype: float32, bfloat16 or float16 (default: as stored; embedded model: float32).
        quantize: keep the weights of the layers in 8 or 4 bits: int8 or int4. Each is quantised as
            soon as it is read. Embedding, head and norms stay in `dtype`.
        pack: lay out the weights once as the CPU's product reads them, which is faster. In float32
            results move by rounding (default: only where no bit changes, which is bfloat16 on a
            processor that multiplies it, if the memory has room).
        mask_id: the mask token, if the config and the tokenizer name a wrong one or none.
        family: the family, where config.json does not say it: `open-dcoder` for a causal class that
            fills masks, `a2d-qwen3-bd3lm` or `a2d-qwen3` for attention in blocks or everywhere.
        block: the block width of a block-causal model (default: the config's, else the family's).
        exact: run rows of unequal length in separate forwards instead of padding them. A batch
            then equals single runs in bfloat16 and float16 too (default: True on the CPU in those
            dtypes, where it costs next to nothing).
        compile: run the transformer through torch.compile.
        device_map: spread the layers over devices with accelerate ("auto", or a mapping).
        revision: the revision of the hub repository.
        token: the access token for a gated hub repository.
    """
    options = LoadOptions(
        device=device,
        dtype=dtype,
        quantize=quantize,
        pack=pack,
        exact=exact,
        compile=compile,
        device_map=device_map,
    )
    mask_id, block = _whole("mask_id", mask_id), _whole("block", block)
    description = describe(find_folder(source, revision, token), mask_id, block, family)
    return load_described(description, options)


def load_described(description: Description, options: LoadOptions) -> Loaded:
    """Load the weights of a folder whose config and tokenizer are already read.

    The model gets the spec of `description`, its block width included.
    """
    folder, family, arch = description.folder, description.family, description.arch
    stored = StoredModel.open(folder, family, arch)
    dtype = default_dtype(folder) if options.dtype is None else options.dtype
    wanted, device = _dtype(dtype) or stored.dtype, usable_device(options.device)
    with torch.device("meta"):
        module = family.network(arch)
        if options.quantize is not None:
            quantize_layers(module, arch, options.quantize, device)
        elif not options.compile and options.device_map is None:
            pack_layers(module, wanted, device, options.pack)
    places = _places(module, device, options.device_map)
    stored.fill(module, wanted, places)
    stored.warn_of_spare()
    module.eval()
    if options.device_map is not None:
        _dispatch(module, places)
    if options.compile:
        module.forward = torch.compile(module.forward)  # type: ignore[method-assign]
    model = Pretrained(module, description.spec)
    exact = options.exact
    if exact is None:
        exact = model.device.type == "cpu" and model.dtype in (torch.bfloat16, torch.float16)
    return Loaded(replace(model, exact=exact), description.tokenizer, description)


def _whole(name: str, value: Any) -> int | None:
    """A whole number, also one of numpy, as Python's own."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise ModelError(f"{name} must be a whole number, got {shown(value)}")
    return int(value)


def find_folder(
    source: str | os.PathLike[str], revision: str | None = None, token: str | None = None
) -> Path:
    """The folder of a checkpoint: the embedded one, a local one, or a hub id downloaded once."""
    if not isinstance(source, str | os.PathLike) or isinstance(os.fspath(source), bytes):
        raise ModelError(
            f"a checkpoint must be a folder or a hub id, as a text or a path, got {shown(source)}"
        )
    if source == embedded.NAME:
        return embedded.FOLDER
    folder, name = Path(source).expanduser(), os.fspath(source)
    if name and folder.is_dir():  # an empty name would be the current folder
        return folder
    if name.count("/") != 1 or name.startswith((".", "/", "~")):
        raise ModelError(
            f"{name!r} is not a folder; give the folder of a checkpoint, a hub id like "
            "'GSAI-ML/LLaDA-8B-Instruct', or 'embedded' for the model in the package"
        )
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        raise ModelError(
            f"{name!r} is not a folder; to download it, install the package huggingface_hub"
        ) from None
    try:
        return Path(snapshot_download(name, revision=revision, token=token, allow_patterns=WANTED))
    except Exception as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ModelError(
            f"{name!r} is not a folder and cannot be downloaded ({reason}); check the name and the "
            "network, or download it elsewhere and give its folder"
        ) from None


def is_here(source: str) -> bool:
    """Whether `find_folder` finds a checkpoint without a download."""
    return source == embedded.NAME or Path(source).expanduser().is_dir()


def is_downloaded(source: str) -> bool:
    """Whether a checkpoint with its weights is on this machine, in a folder or the hub's cache."""
    if is_here(source):
        return True
    try:
        from huggingface_hub import snapshot_download

        folder = snapshot_download(source, allow_patterns=WANTED, local_files_only=True)
    except Exception:  # not installed, no such name, or not downloaded
        return False
    return any(Path(folder).glob("*.safetensors"))


def default_dtype(folder: Path) -> str | None:
    """The dtype of a checkpoint if the caller gives none; None means as stored."""
    return embedded.DTYPE if folder == embedded.FOLDER else None


def _dtype(dtype: str | torch.dtype | None) -> torch.dtype | None:
    known = {name: getattr(torch, name) for name in DTYPES}
    value = known.get(dtype, dtype) if isinstance(dtype, str) else dtype
    if isinstance(value, str) or value not in (None, *known.values(), torch.float64):
        raise ModelError(f"dtype must be one of {', '.join(DTYPES)}, got {shown(dtype)}")
    return value


def usable_device(device: str | torch.device | None = None) -> torch.device:
    """The device as torch names it (default: cuda if there is one, else cpu).

    Raises ModelError if torch cannot use it.
    """
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        usable = torch.empty(0, device=device).device
    except Exception as error:  # torch raises several kinds
        reason = str(error).strip().splitlines()[0]
        raise ModelError(f"device {shown(str(device))} cannot be used: {reason}") from None
    if usable.type == "meta":
        raise ModelError("device 'meta' cannot be used: it holds no numbers; give cpu or cuda")
    return usable


def _places(
    module: Network, device: torch.device, device_map: str | dict[str, Any] | None
) -> dict[str, torch.device]:
    """The device of every parameter, by its name."""
    names = [name for name, _ in module.named_parameters()]
    if device_map is None:
        return dict.fromkeys(names, device)
    accelerate = _accelerate()
    wrong = ModelError(f"device_map must be 'auto' or a mapping, got {shown(device_map)}")
    if isinstance(device_map, str):
        if device_map != "auto":
            raise wrong
        device_map = accelerate.infer_auto_device_map(module, no_split_module_classes=["Layer"])
    if not isinstance(device_map, dict):
        raise wrong
    places = {}
    for name in names:
        owners = [key for key in device_map if key == "" or f"{name}.".startswith(f"{key}.")]
        if not owners:
            raise ModelError(f"device_map has no device for {name!r}; it must cover every layer")
        places[name] = torch.device(device_map[max(owners, key=len)])
    return places


def _dispatch(module: Network, places: dict[str, torch.device]) -> None:
    """Install hooks that move the activations to the device of each layer."""
    by_module: dict[str, torch.device] = {}
    for name, device in places.items():
        unit = ".".join(name.split(".")[: 2 if name.startswith("layers.") else 1])
        if by_module.setdefault(unit, device) != device:
            raise ModelError(f"device_map splits {unit!r}; a layer must be on one device")
    _accelerate().dispatch_model(module, device_map=by_module, force_hooks=True)


def _accelerate() -> Any:
    try:
        import accelerate
    except ImportError:
        raise ModelError(
            "device_map needs the package accelerate; install it, or leave device_map out"
        ) from None
    return accelerate
