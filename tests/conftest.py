"""Fixtures of the whole suite."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

from hilap.taxonomy import Taxonomy

# Some virtual machines announce AMX and have none: oneDNN then dies of an illegal instruction in half precision.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")

# A shared machine can be slow at any moment: no deadline, and the same examples in every run of CI.
settings.register_profile("hilap", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("hilap")


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The real data sets beside the project; tests that need them are skipped where they are absent."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the data sets are not here: they are expected in shared/data beside the project")
    return folder


@pytest.fixture
def tree() -> Taxonomy:
    """The paper's example: food, bars, and a few places below."""
    return Taxonomy.of(
        {
            "food": [],
            "bars": ["food"],
            "beer": ["bars"],
            "caribbean": ["food"],
            "dominican": ["caribbean"],
            "shops": [],
        },
        {
            "food": "Restaurants",
            "bars": "Bars",
            "beer": "Beer Bars",
            "caribbean": "Caribbean",
            "dominican": "Dominican",
        },
    )


@pytest.fixture
def dag() -> Taxonomy:
    """A diamond: d below b and c, both below a; e below d and, as a shortcut, below a."""
    return Taxonomy.of({"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"], "e": ["d", "a"]})
