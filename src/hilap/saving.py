"""A trained classifier as a model folder, and back.

`settings.json` has its parameters and all settings they led to, `encoders.json` what its encoders have counted,
`training.json` what it was trained on and how that went, `validation.json` how well it does; the weights are
safetensors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from hilap.card import card
from hilap.encoders import Encoder, TfIdf, UnknownEncoderError, restore
from hilap.errors import HilapError, ModelError
from hilap.kernel_part import KernelPart
from hilap.metrics.report import Report
from hilap.network import Network, seen_width
from hilap.settings import DecodeSettings, PolicySettings, TrainSettings
from hilap.storage import BROKEN, CHECKPOINT, LOG, Stored, save_folder
from hilap.taxonomy import Taxonomy
from hilap.wide import Wide, columns

KIND = "hilap"


@dataclass(frozen=True)
class Trained:
    """What a classifier is after training, besides its parameters."""

    taxonomy: Taxonomy
    network: Network
    policy: PolicySettings
    train: TrainSettings
    decode: DecodeSettings
    label_counts: NDArray[np.int64]  # (L,) training documents
    n_documents: int
    fingerprints: tuple[str, str]  # of the training and the validation documents
    max_steps: int
    history: list[dict[str, Any]]
    validation: Report


def save(folder: str | Path, parameters: Mapping[str, Any], trained: Trained) -> None:
    """Write a classifier, whole or not at all.

    Parameters
    ----------
    folder
        Where to. A model that is there is replaced; a folder with other things in it is refused.
    parameters
        The constructor's, plain values.
    trained
        The rest.
    """
    kinds, members = _encoders(trained.network)
    resolved = {"policy": trained.policy, "train": trained.train, "decode": trained.decode}
    settings = {name: value.to_dict() for name, value in resolved.items()}
    shown = {f"{part}.{name}": value for part, values in settings.items() for name, value in values.items()}
    for encoder in kinds:
        shown |= {"encoder": encoder["name"], **{f"encoder.{k}": v for k, v in encoder["settings"].items()}}
    save_folder(
        folder,
        kind=KIND,
        settings={"parameters": dict(parameters), **settings},
        taxonomy=trained.taxonomy.to_json(),
        tensors=trained.network.state_dict(),
        extra={
            "encoders": {"kinds": kinds, "members": members, "wide": _wide_terms(trained.network)},
            "training": {
                "documents": trained.n_documents,
                "fingerprints": list(trained.fingerprints),
                "label_counts": trained.label_counts.tolist(),
                "max_steps": trained.max_steps,
                "history": trained.history,
            },
            "validation": trained.validation.to_json(per_label=True),
        },
        card=card(
            f"A {trained.train.variant} model",
            trained.taxonomy,
            documents=trained.n_documents,
            settings=shown,
            history=trained.history,
            validation=trained.validation,
            explain=_explained(trained),
            refitted=trained.train.refit,
        ),
        beside=(*BROKEN, LOG),
    )


def restored(stored: Stored) -> tuple[dict[str, Any], Trained]:
    """The parameters and the rest, from a model folder; what does not fit together is an error."""
    try:
        taxonomy = Taxonomy.from_json(stored.taxonomy)
        policy = PolicySettings.from_dict(stored.settings["policy"])
        training = stored.extra["training"]
        trained = Trained(
            taxonomy=taxonomy,
            network=_network(stored, taxonomy, policy),
            policy=policy,
            train=TrainSettings.from_dict(stored.settings["train"]),
            decode=DecodeSettings.from_dict(stored.settings["decode"]),
            label_counts=_counts(training["label_counts"], training["documents"], len(taxonomy)),
            n_documents=training["documents"],
            fingerprints=_fingerprints(training["fingerprints"]),
            max_steps=_positive(training["max_steps"], "max_steps"),
            history=_history(training["history"]),
            validation=Report.from_json(stored.extra["validation"]),
        )
        return dict(stored.settings["parameters"]), trained
    except KeyError as fault:
        raise ModelError(f"{stored.folder}: {fault.args[0]!r} is missing; the model is damaged, get it again") from None
    except UnknownEncoderError as fault:
        raise ModelError(
            f"{stored.folder}: there is no encoder {fault.name} here; if it is one of your own, import the module that "
            "puts it into hilap.encoders.ENCODERS first (on the command line: --import MODULE), else update hilap"
        ) from None
    except (HilapError, ValueError, TypeError, AttributeError, RuntimeError, IndexError, OverflowError) as fault:
        reason = str(fault).splitlines()[0] if str(fault) else type(fault).__name__
        raise ModelError(
            f"{stored.folder}: the parts of this model do not fit together ({reason}); {stored.remedy}"
        ) from None


def _explained(trained: Trained) -> str | None:
    """How a document is given to `hilap explain`; None where there is neither a walk nor a word to show."""
    reads = trained.network.encoder.reads
    if "texts" not in reads and trained.train.variant != "hilap":
        return None
    return " ".join({"texts": "TEXT", "features": "--values NUMBERS"}[kind] for kind in reads)


def _encoders(network: Network) -> tuple[list[dict[str, Any]], list[int]]:
    """The different encoders, and which of them each member has: members of one run have counted the same."""
    kinds: list[dict[str, Any]] = []
    members: list[int] = []
    for member in network.members:
        kind = _described(member.encoder)
        if kind not in kinds:
            kinds.append(kind)
        members.append(kinds.index(kind))
    return kinds, members


def _described(encoder: Any) -> dict[str, Any]:
    return {"name": encoder.name, "settings": encoder.settings(), "learned": encoder.learned()}


def _wide_terms(network: Network) -> dict[str, Any] | None:
    """What describes the rows of the wide part: its TF-IDF terms, and the encoder of its vectors."""
    if network.wide is None:
        return None
    vectors = network.wide.vectors
    return {**_described(network.wide.terms), "vectors": None if vectors is None else _described(vectors)}


def _wide(described: Any, n_labels: int, tensors: Mapping[str, Any]) -> Wide | None:
    if described is None:
        return None
    terms = TfIdf.restore(described["settings"], described["learned"])
    kind = described.get("vectors")
    vectors = None if kind is None else restore(kind["name"], kind["settings"], kind["learned"])
    wanted = (columns(terms, vectors), n_labels)
    if tuple(tensors["wide.weight"].shape) != wanted:
        raise ModelError(f"tensor 'wide.weight' is of shape {tuple(tensors['wide.weight'].shape)}, needed is {wanted}")
    return Wide(terms, n_labels, vectors)


def _kernel(tensors: Mapping[str, Any], n_labels: int) -> KernelPart:
    points = tensors["kernel.points"]
    if points.dim() != 2:
        raise ModelError(f"tensor 'kernel.points' is of shape {tuple(points.shape)}, needed are two dimensions")
    return KernelPart(int(points.shape[1]), int(points.shape[0]), n_labels)


def _network(stored: Stored, taxonomy: Taxonomy, policy: PolicySettings) -> Network:
    described = stored.extra["encoders"]
    kinds = described["kinds"]
    encoders: list[Encoder] = []
    for number in described["members"]:
        kind = kinds[_index(number, len(kinds))]
        encoders.append(restore(kind["name"], kind["settings"], kind["learned"]))
    if not encoders:
        raise ModelError("it has no encoder")
    _check_shapes(stored.tensors, len(taxonomy), policy, seen_width(policy.sees, encoders[0].dim, taxonomy))
    with torch.random.fork_rng(devices=[]):
        wide = _wide(described.get("wide"), len(taxonomy), stored.tensors)
        kernel = _kernel(stored.tensors, len(taxonomy)) if policy.kernel_share else None
        network = Network(taxonomy, encoders, policy, torch.Generator().manual_seed(0), wide, kernel)
    _check_tensors(stored.tensors, network.state_dict())
    network.load_state_dict(stored.tensors)
    network.eval()
    return network


def _check_tensors(given: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Require the tensors of a network, of their types and shapes. Torch's own error has a line for each of them."""
    for name, value in wanted.items():
        if name not in given:
            raise ModelError(f"tensor {name!r} is missing")
        found = given[name]
        if found.dtype != value.dtype:
            raise ModelError(f"tensor {name!r} is of type {found.dtype}, needed is {value.dtype}")
        if found.shape != value.shape:
            raise ModelError(f"tensor {name!r} is of shape {tuple(found.shape)}, needed is {tuple(value.shape)}")
    unknown = sorted(given.keys() - wanted.keys())
    if unknown:
        raise ModelError(f"tensor {unknown[0]!r} has no place")


def _check_shapes(tensors: Mapping[str, Any], n_labels: int, policy: PolicySettings, dim: int) -> None:
    """Require that the weights have the sizes that the settings name, before memory of these sizes is taken."""
    wanted = {
        "policy.of_document.weight": (policy.hidden, dim),
        "policy.second.weight": (policy.width, policy.hidden),
        "policy.label": (n_labels + 1, policy.width),
    }
    for name, shape in wanted.items():
        if tuple(tensors[name].shape) != shape:
            raise ModelError(f"tensor {name!r} is of shape {tuple(tensors[name].shape)}, needed is {shape}")


def _counts(values: Any, documents: Any, n_labels: int) -> NDArray[np.int64]:
    most = _positive(documents, "documents")
    if len(values) != n_labels or any(type(value) is not int or not 0 <= value <= most for value in values):
        raise ModelError(f"label_counts must be {n_labels} whole numbers from 0 to {most}")
    return np.array(values, dtype=np.int64)


def _fingerprints(values: Any) -> tuple[str, str]:
    if not isinstance(values, list) or len(values) != 2 or not all(isinstance(value, str) for value in values):
        raise ModelError(f"fingerprints must be two texts, got {values!r:.200}")
    return values[0], values[1]


def _history(records: Any) -> list[dict[str, Any]]:
    wanted = {"phase": str, "epoch": int, "select": float}
    for record in records:
        there = wanted if "select" in record else {"phase": str, "epoch": int}
        if any(type(record[name]) is not kind for name, kind in there.items()):
            raise ModelError(f"a record of the history needs phase, epoch and select, got {record!r:.200}")
    return [dict(record) for record in records]


def _positive(value: Any, name: str) -> int:
    if type(value) is not int or value < 1:
        raise ModelError(f"{name} must be a whole number, at least 1, got {value!r}")
    return value


def _index(value: Any, count: int) -> int:
    if type(value) is not int or not 0 <= value < count:
        raise ModelError(f"a member has encoder {value!r}, but there are {count}")
    return value


__all__ = ["BROKEN", "CHECKPOINT", "KIND", "LOG", "Trained", "restored", "save"]
