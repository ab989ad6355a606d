"""Every sentence of errors.py."""

from __future__ import annotations

import time

import pytest

from hilap import errors
from hilap.errors import HilapError, MissingExtraError, SettingError, did_you_mean, need, require


def test_require_says_parameter_allowed_and_given():
    with pytest.raises(SettingError, match=r"^gamma must be between 0 and 1, got 'two'$"):
        require(False, "gamma", "between 0 and 1", "two")


def test_require_is_silent_where_the_condition_holds():
    require(True, "gamma", "between 0 and 1", 0.5)


@pytest.mark.parametrize(
    ("given", "known", "expected"),
    [
        ("Beer Bar", ["Bars", "Beer Bars"], "Beer Bars"),
        ("FOOD", ["food", "foods"], "food"),
        ("straße", ["STRASSE"], "STRASSE"),
        ("food", ["Food", "FOOD"], "Food"),  # the first of those that differ only in case
        ("zebra", ["food", "bars"], None),
        ("food", [], None),
        ("", ["food"], None),
    ],
)
def test_did_you_mean_gives_the_nearest_word_or_none(given, known, expected):
    assert did_you_mean(given, known) == expected


def test_did_you_mean_is_fast_among_very_many_words():
    known = [f"label :: number {i} :: of very many {i}" for i in range(100_000)]
    began = time.perf_counter()
    assert did_you_mean("label :: number 777 :: of very many 77", known) is not None
    assert time.perf_counter() - began < 10


def test_did_you_mean_does_not_compare_whole_pages():
    page = "all work and no play " * 50_000
    began = time.perf_counter()
    assert did_you_mean(page + "!", [page, page + "?"]) is None
    assert did_you_mean("fod", [page, "food"]) == "food"
    assert time.perf_counter() - began < 5


def test_need_gives_the_module():
    assert need("json", "formats").dumps([1]) == "[1]"


def test_need_says_how_to_install():
    with pytest.raises(MissingExtraError) as caught:
        need("hilap_has_no_such_module.part", "ray")
    assert str(caught.value) == "hilap_has_no_such_module is needed here; install it with: pip install 'hilap[ray]'"


def test_all_errors_are_children_of_one():
    children = [thing for thing in vars(errors).values() if isinstance(thing, type) and issubclass(thing, Exception)]
    assert len(children) >= 5
    assert all(issubclass(child, HilapError) for child in children)
