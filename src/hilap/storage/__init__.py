"""A model as a folder of JSON and safetensors, a checkpoint as one file. No pickle: nothing in them is executed."""

from hilap.storage.checkpoint import (
    BROKEN,
    CHECKPOINT,
    LOG,
    anew,
    check_checkpoint,
    read_checkpoint,
    write_checkpoint,
)
from hilap.storage.folder import Stored, load_folder, put_back, save_folder

__all__ = [
    "BROKEN",
    "CHECKPOINT",
    "LOG",
    "Stored",
    "anew",
    "check_checkpoint",
    "load_folder",
    "put_back",
    "read_checkpoint",
    "save_folder",
    "write_checkpoint",
]
