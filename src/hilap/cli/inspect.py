"""`hilap inspect`: what a model is, what it was trained on and how well it does."""

from __future__ import annotations

from typing import Any

from hilap.cli.options import JsonFlag
from hilap.cli.predict import ModelFolder
from hilap.cli.printing import console, print_json, print_rows


def inspect(model: ModelFolder, json: JsonFlag = False) -> None:
    """Show a model's kind, settings, taxonomy, training and validation scores."""
    from hilap.card import phases
    from hilap.models import opened
    from hilap.storage import load_folder
    from hilap.taxonomy.statistics import statistics

    stored = load_folder(model)
    trained = opened(stored)
    found = phases(trained.history_)
    figures = statistics(trained.taxonomy_).to_json()
    kinds = stored.extra.get("encoders", {}).get("kinds", ())
    encoders = [{"name": kind["name"], **kind["settings"]} for kind in kinds]
    steps = {"max_steps": trained.max_steps_} if hasattr(trained, "max_steps_") else {}
    used = {"used": trained.used()} if hasattr(trained, "used") else {}  # HiLAP's settings are whole as they are stored
    weights = sum(tensor.numel() for tensor in stored.tensors.values())
    if json:
        print_json(
            {
                "model": str(model),
                "kind": stored.kind,
                "hilap": stored.hilap,
                "weights": weights,
                "documents": trained.n_documents_,
                **steps,
                "encoders": encoders,
                "settings": stored.settings,
                **used,
                "taxonomy": figures,
                "phases": found,
                "history": trained.history_,
                "validation": trained.validation_.to_json(),
            }
        )
        return
    shown = ("kind", "labels", "edges", "leaves", "levels", "labels_per_level", "fingerprint")
    rows: list[tuple[str, Any]] = [
        ("kind", f"{_called(stored.kind, trained)}, written by hilap {stored.hilap}"),
        ("weights", weights),
        ("training documents", trained.n_documents_),
        *(("steps at most", most) for most in steps.values()),
    ]
    rows += [(phase["name"], _phase(phase)) for phase in found]
    rows += [(f"taxonomy {name.replace('_', ' ')}", figures[name]) for name in shown]
    for encoder in encoders:
        rows += [("encoder" if name == "name" else f"encoder {name}", value) for name, value in encoder.items()]
    for values in used.values():
        rows += values.items()
    for part in () if used else ("policy", "train", "decode"):
        rows += [(f"{part} {name}", value) for name, value in stored.settings[part].items()]
    print_rows(str(model), rows)
    console().print(trained.validation_.table())


def _called(kind: str, trained: Any) -> str:
    settings = getattr(trained, "train_settings_", None)
    return kind if settings is None else f"{kind}, variant {settings.variant}"


def _phase(phase: dict[str, Any]) -> str:
    from hilap.card import score_words

    score = phase["best_score"]
    kept = "the last kept" if score is None else f"best {phase['best_epoch']} ({score_words(score, ' %')})"
    return f"{phase['epochs']} epochs, {kept}, {phase['seconds']:.1f} s"
