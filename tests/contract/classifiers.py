"""Every classifier in a small and fast form, and documents to try it on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hilap import HiLAPClassifier
from hilap.taxonomy import Taxonomy

TREE = Taxonomy.of({"a": [], "b": ["a"], "c": ["a"], "d": ["b"], "e": [], "f": ["e"], "never": ["e"]})
DAG = Taxonomy.of({"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"], "e": ["d", "a"], "f": [], "never": ["f"]})
LEAVES = {"tree": ["d", "c", "f"], "dag": ["e", "f", "b"]}
TAXONOMIES = {"tree": TREE, "dag": DAG}
N_FEATURES = 6

Make = Callable[..., Any]

_SMALL = {
    "encoder_options": {"hidden": (9,)},
    "hidden": 12,
    "width": 5,
    "flat_epochs": 0,
    "supervised_epochs": 3,
    "reinforced_epochs": 2,
    "batch_size": 16,
    "learning_rate": 0.01,
}


def every_classifier() -> dict[str, Make]:
    """Name -> a maker: (taxonomy, **changes) -> a classifier that trains in a fraction of a second."""
    changes: dict[str, dict[str, Any]] = {
        "flat": {"variant": "flat"},
        "sl": {"variant": "sl"},
        "paper": {"preset": "paper"},
        "original": {"preset": "original"},
        "residual": {
            "preset": "residual",
            "sees": "flat",
            "probabilities": "beam",
            "pool_validation": False,
            "folds": 2,
            "flat_epochs": 3,
            "rollouts": 2,
            "wide": False,
        },
        "pooled": {
            "preset": "residual",
            "folds": 2,
            "repeats": 2,
            "flat_epochs": 2,
            "rollouts": 2,
            "wide": False,
        },
        "samples": {"imitation_epochs": 1, "probabilities": "samples", "samples": 8, "dag_rule": "ancestors"},
    }
    return {
        name: lambda taxonomy=TREE, _change=change, **more: HiLAPClassifier(taxonomy, **{**_SMALL, **_change, **more})
        for name, change in changes.items()
    }


WALKING = ("paper", "original", "residual", "pooled", "samples")  # those with a policy that walks
CONSISTENT = (*WALKING, "sl")


def documents(kind: str = "tree", n: int = 48, seed: int = 0) -> tuple[np.ndarray, list[list[str]]]:
    """(n, F) features with a value missing here and there, and labels that depend on them; some have none."""
    rng = np.random.default_rng([seed, 5])
    features = rng.normal(size=(n, N_FEATURES)).astype(np.float32)
    leaves = LEAVES[kind]
    labels = [[leaf for k, leaf in enumerate(leaves) if row[k] > 0.3] for row in features]
    features[rng.random(features.shape) < 0.05] = np.nan
    return features, labels


def texts(n: int = 48) -> tuple[list[str], list[list[str]]]:
    """Texts whose words give the labels away."""
    words = {"d": "beer bar", "c": "wine cellar", "f": "law court"}
    sets = [[label for k, label in enumerate(words) if (i >> k) & 1] for i in range(n)]
    return [" ".join(["some", *(words[label] for label in labels)]) for labels in sets], sets
