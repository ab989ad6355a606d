"""A checkpoint: one safetensors file with the state of a run in its header."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hilap.errors import ModelError, SettingError
from hilap.storage.content import damaged, plain, read, sync_folder, write, written
from hilap.storage.tensors import FORMAT, METADATA, MOST_WEIGHT_BYTES, digest, packed, split, tensors_of

if TYPE_CHECKING:
    from torch import Tensor


CHECKPOINT, LOG = "checkpoint.safetensors", "log.jsonl"
"""What training may have written into the folder before there is a model."""


def anew(path: Path) -> Path:
    """The checkpoint of a run that learns anew when that of this one has ended.

    Examples
    --------
    >>> anew(Path("model/checkpoint.safetensors")).as_posix()
    'model/anew-checkpoint.safetensors'
    """
    return path.with_name(f"anew-{path.name}")


BROKEN = (CHECKPOINT, anew(Path(CHECKPOINT)).name)  # what is left of a run that was broken off


def check_checkpoint(path: Path | None, *, resume: bool) -> None:
    """Require of a run that it names the checkpoint it goes on from, and overwrites none of another run."""
    if resume and path is None:
        raise SettingError("resume needs the checkpoint of the run that goes on; give checkpoint=...")
    if not resume and path is not None and path.exists():
        raise ModelError(
            f"{path}: there is a checkpoint already; go on from it with resume=True, or remove it to train anew"
        )


def write_checkpoint(path: str | Path, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
    """Write tensors and a state of plain values as one safetensors file: after a crash, the old one or the new one."""
    if Path(path).suffix in (".gz", ".zst"):
        raise ModelError(f"{path}: a checkpoint is not compressed; name it something like checkpoint.safetensors")
    with written(path):
        write(Path(path), packed(tensors, plain(state, "state", keep_nan=True)))
        sync_folder(Path(os.path.realpath(path)).parent)


def read_checkpoint(path: str | Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and the state that `write_checkpoint` wrote."""
    place = Path(path)
    data = read(place, MOST_WEIGHT_BYTES)
    header, body = split(data, place)
    try:
        note = json.loads(header.pop(METADATA)["hilap"])
        made, state, expected = note["format"], note["state"], note["sha256"]
    except (KeyError, TypeError, ValueError, RecursionError):
        raise ModelError(f"{path}: this is no checkpoint of hilap") from None
    if type(made) is int and made > FORMAT:
        raise ModelError(f"{path}: this checkpoint was made by a newer hilap (format {made}); update")
    if not isinstance(state, dict) or digest(header, state, body) != expected:
        raise damaged(place, "its content is not what was written")
    return tensors_of(data, place), state
