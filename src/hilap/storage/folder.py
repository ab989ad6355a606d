"""A model as a folder.

It has `settings.json` (what it is, and a hash of every other file), `taxonomy.json`, `weights.safetensors`, one JSON
file for each thing that came with it, and `README.md`, the model card, which is for people: anyone may edit it.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hilap.errors import ModelError
from hilap.storage.content import canonical, damaged, json_file, parsed, plain, read, sync_folder, utf8, write, written
from hilap.storage.tensors import FORMAT, MOST_WEIGHT_BYTES, packed, tensors_of
from hilap.version import __version__

if TYPE_CHECKING:
    from torch import Tensor

MOST_JSON_BYTES = 200_000_000
MOST_FILES = 1_000

SETTINGS, TAXONOMY, WEIGHTS, CARD = "settings.json", "taxonomy.json", "weights.safetensors", "README.md"
_NAME = re.compile(r"[a-z][a-z0-9_]{0,99}\.json")


@dataclass(frozen=True)
class Stored:
    """What a model folder holds."""

    folder: Path
    kind: str  # which classifier it is
    hilap: str  # the version that wrote it
    settings: dict[str, Any]
    taxonomy: dict[str, Any]  # as `Taxonomy.to_json` gave it
    tensors: dict[str, Tensor]
    extra: dict[str, Any]

    @property
    def remedy(self) -> str:
        """What to do about a model whose files are whole, but not as this version writes them."""
        if self.hilap == __version__:
            return "get it again, or train it anew"
        written = f"it was written by hilap {self.hilap:.50}, this is {__version__}"
        return f"{written}: open it with that one, or train it anew"


def save_folder(
    folder: str | Path,
    *,
    kind: str,
    settings: Mapping[str, Any],
    taxonomy: Mapping[str, Any],
    tensors: Mapping[str, Tensor],
    extra: Mapping[str, Any] | None = None,
    card: str = "",
    beside: Collection[str] = (),
) -> None:
    """Write a model as a folder, whole or not at all.

    It is written beside its place under another name and renamed when it is complete. A model that is there already
    is replaced; what else lies in its folder stays. A folder that is no model is never touched.

    Parameters
    ----------
    folder
        Where to; folders above it are made.
    kind
        Which classifier it is, so that it can be opened again.
    settings, taxonomy, extra
        Plain values; each thing in `extra` gets a JSON file of its own. A number that is none (NaN) becomes null.
    tensors
        The weights.
    card
        The model card, in Markdown.
    beside
        Names of files that may be in the folder before there is a model, such as a log.
    """
    contents = _contents(kind, settings, taxonomy, tensors, extra or {}, card)
    place = Path(os.path.realpath(folder))
    with written(folder):
        place.parent.mkdir(parents=True, exist_ok=True)
        put_back(place)
        strangers = _strangers(place, contents, beside)
        draft = Path(tempfile.mkdtemp(prefix=f".{place.name[:100]}.", suffix=".part", dir=place.parent))
        try:
            draft.chmod(0o777 & ~_umask())
            for name, data in contents.items():
                write(draft / name, [data])
            for name in strangers:
                _link(place / name, draft / name)
            _swap(draft, place)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise


def load_folder(folder: str | Path, *, kinds: Collection[str] | None = None) -> Stored:
    """Read a model folder; damaged, truncated, foreign and newer ones are told apart, and nothing in it is executed.

    Parameters
    ----------
    folder
        What `save_folder` wrote.
    kinds
        The kinds of model that are wanted; default any.
    """
    place = _existing(Path(folder))
    header = _header(place)
    if header["format"] > FORMAT:
        made = f"format {header['format']}, hilap {header.get('hilap')}"
        raise ModelError(f"{folder}: this model was made by a newer hilap ({made}); update: pip install -U hilap")
    if header["format"] < 1 or _seal(header) != header.get("check"):
        raise ModelError(f"{place / SETTINGS}: the file is damaged or was changed by hand; get the model again")
    if kinds is not None and header["kind"] not in kinds:
        raise ModelError(f"{folder}: this is a model of kind {header['kind']!r}; needed: {', '.join(kinds)}")
    documents: dict[str, Any] = {}
    tensors: dict[str, Tensor] = {}
    for name, digest in header["files"].items():
        data = read(place / name, MOST_WEIGHT_BYTES if name == WEIGHTS else MOST_JSON_BYTES, inside=place)
        if hashlib.sha256(data).hexdigest() != digest:
            raise damaged(place / name, "its content is not what was saved")
        if name == WEIGHTS:
            tensors = tensors_of(data, place / name)
        else:
            documents[name.removesuffix(".json")] = parsed(data, place / name)
    taxonomy = documents.pop("taxonomy")
    if not isinstance(taxonomy, dict) or not isinstance(header["settings"], dict):
        raise ModelError(f"{folder}: settings and taxonomy must be JSON objects; this is no model that hilap saved")
    return Stored(place, header["kind"], str(header["hilap"]), header["settings"], taxonomy, tensors, documents)


def _contents(
    kind: str,
    settings: Mapping[str, Any],
    taxonomy: Mapping[str, Any],
    tensors: Mapping[str, Tensor],
    extra: Mapping[str, Any],
    card: str,
) -> dict[str, bytes]:
    """The files of a model, all in memory, so that a value that cannot be saved is found before anything is written."""
    contents = {WEIGHTS: b"".join(packed(tensors)), TAXONOMY: json_file(taxonomy, "taxonomy")}
    for name, value in extra.items():
        file = f"{name}.json"
        if not _NAME.fullmatch(file) or file in (SETTINGS, TAXONOMY):
            raise ModelError(f"extra {name!r} cannot be the name of a file in a model; use a-z, 0-9 and _")
        contents[file] = json_file(value, name)
    header = {
        "format": FORMAT,
        "kind": kind,
        "hilap": __version__,
        "settings": plain(settings, "settings"),
        "files": {name: hashlib.sha256(data).hexdigest() for name, data in contents.items()},
    }
    header["check"] = _seal(header)
    return {**contents, CARD: utf8(card, "the model card"), SETTINGS: json_file(header, "settings")}


def _seal(header: Mapping[str, Any]) -> str:
    """A hash of everything else in `settings.json`."""
    rest = {name: value for name, value in header.items() if name != "check"}
    return hashlib.sha256(canonical(rest)).hexdigest()


def _existing(folder: Path) -> Path:
    try:
        place = Path(os.path.realpath(folder))
        if place.is_dir():
            return place
        if place.exists():
            raise ModelError(f"{folder}: this is a file; a model is a folder")
        if _before(place).is_dir():
            raise ModelError(
                f"{folder}: there is no such folder; a save was stopped just as it replaced the model, and the former "
                f"one is in {_before(place)}; rename it, or save again"
            )
    except (OSError, ValueError) as fault:
        if isinstance(fault, ModelError):
            raise
        raise ModelError(f"{str(folder)!r}: cannot be opened ({fault}); check the path") from None
    raise ModelError(f"{folder}: there is no such folder; check the path")


def _header(place: Path) -> dict[str, Any]:
    """`settings.json`, as far as every format must agree."""
    path = place / SETTINGS
    if not os.path.lexists(path):
        raise ModelError(f"{place}: this is no hilap model: it has no {SETTINGS}")
    header = parsed(read(path, MOST_JSON_BYTES, inside=place), path)
    types = {"format": int, "kind": str, "files": dict}
    if not isinstance(header, dict) or any(type(header.get(name)) is not kind for name, kind in types.items()):
        raise ModelError(f"{place}: this is no hilap model: its {SETTINGS} lacks format, kind or files")
    if header["format"] <= FORMAT:
        missing = {TAXONOMY, WEIGHTS} - header["files"].keys() or {"settings", "hilap"} - header.keys()
        if missing:
            raise ModelError(f"{path}: {', '.join(sorted(missing))} is not named; the file is damaged")
    for name in header["files"]:
        if name not in (TAXONOMY, WEIGHTS) and (not _NAME.fullmatch(name) or name == SETTINGS):
            raise ModelError(f"{path}: {name!r} is no file that a hilap model has; do not trust this model")
    if len(header["files"]) > MOST_FILES:
        raise ModelError(f"{path}: a model has at most {MOST_FILES:,} files; do not trust this model")
    return header


def _strangers(place: Path, contents: Collection[str], beside: Collection[str]) -> list[str]:
    """What lies in the folder and is not the model's own; an error where it is no place for a model."""
    if not place.exists():
        return []
    if not place.is_dir():
        raise ModelError(f"{place}: this is a file; give the name of a folder to save the model in")
    present = sorted(os.listdir(place))
    if SETTINGS not in present:
        foreign = [name for name in present if name not in beside]
        if foreign:
            raise ModelError(
                f"{place}: this folder is no hilap model (it holds {foreign[0]!r}) and is not overwritten; "
                "give a new folder, or an empty one"
            )
        return present
    own = {*_header(place)["files"], SETTINGS, CARD}
    strangers = [name for name in present if name not in own]
    for name in strangers:
        if name in contents:
            raise ModelError(f"{place / name}: this file is not part of the model there; move it, then save again")
    return strangers


def _before(place: Path) -> Path:
    return place.with_name(f".{place.name[:200]}.before")


def put_back(place: Path) -> None:
    """A former model that an interrupted save has left aside, back to its place."""
    if not place.exists() and _before(place).is_dir():
        os.rename(_before(place), place)


def _swap(draft: Path, place: Path) -> None:
    before = _before(place)
    if place.exists():
        shutil.rmtree(before, ignore_errors=True)
        os.rename(place, before)
    try:
        os.rename(draft, place)
    except BaseException:
        put_back(place)
        raise
    sync_folder(place.parent)
    shutil.rmtree(before, ignore_errors=True)


def _link(source: Path, target: Path) -> None:
    """The same file under a second name, or where that cannot be, a copy."""

    def link(one: str, other: str) -> None:
        try:
            os.link(one, other, follow_symlinks=False)
        except OSError:
            shutil.copy2(one, other, follow_symlinks=False)

    if source.is_dir() and not source.is_symlink():
        shutil.copytree(source, target, symlinks=True, copy_function=link)
    else:
        link(str(source), str(target))


def _umask() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return umask
