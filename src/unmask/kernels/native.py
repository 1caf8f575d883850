"""The kernel in C++, called on the memory of CPU tensors; unavailable until it is built."""

from __future__ import annotations

import ctypes
from functools import lru_cache
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

from unmask.kernels.common import ReduceInput, Stats, Unavailable, readable
from unmask.rules.view import BOTH_KL

LIBRARY = Path(__file__).with_name("_reduce.so")
BUILD = "python -m unmask.kernels.build"  # what mends a library that cannot be used
VERSION = 6  # of the calls below; `unmask_reduce_version` returns it
LEVELS = ("plain", "avx2", "avx512")  # instruction sets, by the library's numbers
TYPES = {torch.float32: 0, torch.bfloat16: 1, torch.float16: 2}

_SMALL = 1 << 16  # elements per thread: reading fewer takes less time than starting a thread


def prepare() -> torch.device:
    """Load the library."""
    library()
    return torch.device("cpu")


def serves(rows: ReduceInput) -> bool:
    """Whether these rows are on the CPU, in a dtype that the kernel reads, and ask for KL only."""
    past = rows.now if rows.past is None else rows.past
    readable_here = rows.now.dtype in TYPES and rows.now.device.type == "cpu"
    return readable_here and past.dtype == rows.now.dtype and rows.kl <= BOTH_KL


def reduce_rows(rows: ReduceInput, level: int = len(LEVELS) - 1) -> Stats:
    """Statistics of N rows, on as many threads as torch has; each row by one thread."""
    count, vocabulary = rows.now.shape
    token = torch.empty(count, dtype=torch.int64)
    columns = torch.empty((5, count), dtype=torch.float64)
    now, past = readable(rows.now), None if rows.past is None else readable(rows.past)
    slot, tokens = _indices(rows.slot), _indices(rows.tokens)
    past_rows = 0 if past is None else past.shape[0]
    served = library().unmask_reduce(
        TYPES[now.dtype],
        now.data_ptr(),
        now.stride(0),
        count,
        vocabulary,
        None if past is None else past.data_ptr(),
        0 if past is None else past.stride(0),
        past_rows,
        None if slot is None else slot.data_ptr(),
        None if tokens is None else tokens.data_ptr(),
        token.data_ptr(),
        columns.data_ptr(),
        _threads(now),
        level,
    )
    if not served:
        _refuse(slot, past_rows, "slot")
        _refuse(tokens, vocabulary, "token")
    confidence, margin, entropy, prev_cur, cur_prev = columns.unbind()
    asked = ("prev_cur" in rows.kl, "cur_prev" in rows.kl)
    kl = (prev_cur if asked[0] else None, cur_prev if asked[1] else None)
    return Stats(token, confidence, margin, entropy, *kl)


def class_sums(
    logits: Tensor, kinds: Tensor, count: int, level: int = len(LEVELS) - 1
) -> tuple[Tensor, Tensor]:
    """Sums of exp(z - top) over classes, and the lowest z - top that is finite: [N, C] and [N].

    `kinds` is the class of every token, int32, below `count`. Terms below e^-80 are not exact.
    """
    z, kinds = readable(logits), kinds.contiguous()
    if kinds.dtype != torch.int32 or kinds.shape != z.shape[1:]:
        raise ValueError(f"kinds must be {z.shape[1]} int32 numbers, got {kinds.shape}")
    if len(kinds) and not 0 <= int(kinds.min()) <= int(kinds.max()) < count:
        raise IndexError(f"a class is not below {count}")
    sums = torch.empty((len(z), count), dtype=torch.float64)
    depth = torch.empty(len(z), dtype=torch.float64)
    library().unmask_sum_classes(
        TYPES[z.dtype], z.data_ptr(), z.stride(0), len(z), z.shape[1], kinds.data_ptr(), count,
        sums.data_ptr(), depth.data_ptr(), _threads(z), level,
    )  # fmt: skip
    return sums, depth


def _threads(logits: Tensor) -> int:
    return min(torch.get_num_threads(), 1 + logits.numel() // _SMALL)


@lru_cache(maxsize=1)
def library() -> ctypes.CDLL:
    """The compiled kernel, loaded once."""
    if not LIBRARY.exists():
        raise Unavailable(f"it was not built: {BUILD}")
    try:
        if _is_cut(LIBRARY):
            raise Unavailable(f"{LIBRARY} is not a whole file: {BUILD}")
        loaded = ctypes.CDLL(str(LIBRARY))
        if loaded.unmask_reduce_version() != VERSION:
            raise Unavailable(f"it was built from another version: {BUILD}")
        return _declared(loaded)
    except (OSError, AttributeError) as error:
        raise Unavailable(f"it cannot be loaded: {error}") from error


def _is_cut(file: Path) -> bool:
    """Whether an ELF file lacks its end; to load such a file would kill the process."""
    with file.open("rb") as stream:
        header = stream.read(64)  # of 64-bit ELF; the table of sections stands at the end
    if header[:5] != b"\x7fELF\x02" or len(header) < 64:
        return False
    order: Literal["little", "big"] = "little" if header[5] == 1 else "big"
    start, size, count = (
        int.from_bytes(header[place], order)
        for place in (slice(40, 48), slice(58, 60), slice(60, 62))
    )
    return file.stat().st_size < start + size * count


def _declared(loaded: ctypes.CDLL) -> ctypes.CDLL:
    """The library with the types of its calls; raises AttributeError if it lacks one."""
    number, pointer, size = ctypes.c_int, ctypes.c_void_p, ctypes.c_int64
    loaded.unmask_reduce.restype = number
    loaded.unmask_reduce.argtypes = [
        *(number, pointer, size, size, size, pointer, size, size),
        *(pointer, pointer, pointer, pointer, number, number),
    ]
    loaded.unmask_sum_classes.restype = None
    loaded.unmask_sum_classes.argtypes = [
        *(number, pointer, size, size, size, pointer, size, pointer, pointer, number, number)
    ]
    loaded.unmask_multiply.restype = number
    loaded.unmask_multiply.argtypes = [
        *(number, number, pointer, pointer, pointer, pointer, size, size, size, pointer, number)
    ]
    loaded.unmask_multiply_codes.restype = number
    loaded.unmask_multiply_codes.argtypes = [
        *(number, pointer, pointer, pointer, pointer, pointer, size, size, size, pointer, number)
    ]
    loaded.unmask_normalise.restype = number
    loaded.unmask_normalise.argtypes = [
        *(number, pointer, pointer, ctypes.c_float, size, size, pointer, number)
    ]
    loaded.unmask_rotate.restype = number
    loaded.unmask_rotate.argtypes = [
        *(number, number, pointer, pointer, pointer),
        *(size, size, size, size, size, pointer, number),
    ]
    return loaded


def _indices(values: Tensor | None) -> Tensor | None:
    """Indices as the kernel reads them."""
    return None if values is None else values.to(torch.int64).contiguous()


def _refuse(indices: Tensor | None, stop: int, name: str) -> None:
    """Raise if one of the indices is too large."""
    if indices is not None and int(indices.max()) >= stop:
        raise IndexError(f"{name} {int(indices.max())} is not below {stop}")
