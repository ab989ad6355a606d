"""Tensors as a safetensors file, and back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hilap.errors import ModelError
from hilap.storage.content import canonical, damaged, parsed

if TYPE_CHECKING:
    from torch import Tensor

FORMAT = 1
MOST_WEIGHT_BYTES = 1 << 36
METADATA = "__metadata__"
MOST_HEADER_BYTES = 100_000_000  # what the safetensors package itself reads
_DTYPES = ("float64", "float32", "float16", "bfloat16", "int64", "int32", "uint8", "bool")
_STORED_DTYPES = ("F64", "F32", "F16", "BF16", "I64", "I32", "U8", "BOOL")


def packed(tensors: Mapping[str, Tensor], state: Any = None) -> list[bytes | memoryview]:
    """A safetensors file in pieces; a state goes into its header, with a hash of everything."""
    from safetensors.torch import save

    data = save(dict(_owned(tensors)))
    if state is None:
        return [data]
    header, body = split(data, Path("the checkpoint"))
    note = {"format": FORMAT, "state": state, "sha256": digest(header, state, body)}
    text = canonical({METADATA: {"hilap": json.dumps(note)}, **header}, sort=False)
    text += b" " * (-len(text) % 8)  # so that the tensors are aligned
    if len(text) > MOST_HEADER_BYTES:
        raise ModelError(f"the state has {len(text):,} bytes as JSON; a checkpoint holds {MOST_HEADER_BYTES:,} at most")
    return [len(text).to_bytes(8, "little"), text, body]


def _owned(tensors: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
    """Every tensor in memory of its own: views and tied weights are copied."""
    import torch

    seen: set[int] = set()
    for name, tensor in tensors.items():
        kind = str(tensor.dtype).removeprefix("torch.") if isinstance(tensor, torch.Tensor) else type(tensor).__name__
        if name == METADATA or kind not in _DTYPES or tensor.layout != torch.strided:
            raise ModelError(f"tensor {name!r} ({kind}) cannot be saved; dense tensors can, of {', '.join(_DTYPES)}")
        plain = tensor.detach().to("cpu").contiguous()
        memory = plain.untyped_storage()
        if memory.data_ptr() in seen or memory.nbytes() != plain.nbytes:
            plain = plain.clone()
        seen.add(plain.untyped_storage().data_ptr())
        yield name, plain


def split(data: bytes, path: Path) -> tuple[dict[str, Any], memoryview]:
    """The header of a safetensors file, and the rest."""
    end = 8 + int.from_bytes(data[:8], "little")
    if len(data) < 8 or end > len(data):
        raise damaged(path, "it ends too early")
    header = parsed(data[8:end], path)
    if not isinstance(header, dict):
        raise damaged(path, "it is no safetensors file")
    return header, memoryview(data)[end:]


def tensors_of(data: bytes, path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file."""
    from safetensors.torch import load

    header, _ = split(data, path)
    for name, entry in header.items():
        if name != METADATA and (not isinstance(entry, dict) or entry.get("dtype") not in _STORED_DTYPES):
            raise damaged(path, f"tensor {name!r} is of a type that hilap does not write")
    try:
        return load(data)
    except Exception as fault:  # the parser of a foreign package, on bytes that may be anything
        raise damaged(path, str(fault)) from None


def digest(header: Mapping[str, Any], state: Any, body: bytes | memoryview) -> str:
    """A hash of the tensors, what they are, and the state."""
    running = hashlib.sha256(canonical([dict(header), state]))
    running.update(body)
    return running.hexdigest()
