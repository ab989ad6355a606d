"""`hilap inspect`: what a model is, what it was trained on and how well it does."""

from __future__ import annotations

from typing import Any

from hilap.cli.options import JsonFlag
from hilap.cli.predict import ModelFolder
from hilap.cli.printing import console, print_json, print_rows


def inspect(model: ModelFolder, json: JsonFlag = False) -> None:
    """Show a model's kind, settings, taxonomy, training and validation scores."""
    from hilap.card import phases
    from hilap.saving import restored
    from hilap.storage import load_folder
    from hilap.taxonomy.statistics import statistics

    stored = load_folder(model)
    _, trained = restored(stored)
    found = phases(trained.history)
    figures = statistics(trained.taxonomy).to_json()
    encoders = [{"name": kind["name"], **kind["settings"]} for kind in stored.extra["encoders"]["kinds"]]
    weights = sum(tensor.numel() for tensor in stored.tensors.values())
    if json:
        print_json(
            {
                "model": str(model),
                "kind": stored.kind,
                "hilap": stored.hilap,
                "weights": weights,
                "documents": trained.n_documents,
                "max_steps": trained.max_steps,
                "encoders": encoders,
                "settings": stored.settings,
                "taxonomy": figures,
                "phases": found,
                "history": trained.history,
                "validation": trained.validation.to_json(),
            }
        )
        return
    shown = ("kind", "labels", "edges", "leaves", "levels", "labels_per_level", "fingerprint")
    rows: list[tuple[str, Any]] = [
        ("kind", f"{stored.kind}, variant {trained.train.variant}, written by hilap {stored.hilap}"),
        ("weights", weights),
        ("training documents", trained.n_documents),
        ("steps at most", trained.max_steps),
    ]
    rows += [(phase["name"], _phase(phase)) for phase in found]
    rows += [(f"taxonomy {name.replace('_', ' ')}", figures[name]) for name in shown]
    for encoder in encoders:
        rows += [("encoder" if name == "name" else f"encoder {name}", value) for name, value in encoder.items()]
    for part in ("policy", "train", "decode"):
        rows += [(f"{part} {name}", value) for name, value in stored.settings[part].items()]
    print_rows(str(model), rows)
    console().print(trained.validation.table())


def _phase(phase: dict[str, Any]) -> str:
    score = phase["best_score"]
    kept = "the last kept" if score is None else f"best {phase['best_epoch']} ({100 * score:.2f} %)"
    return f"{phase['epochs']} epochs, {kept}, {phase['seconds']:.1f} s"
