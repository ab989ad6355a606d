"""Yelp: files of the official shape, made here, and what becomes of them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from hilap.corpus.datasets import load, prepare
from hilap.corpus.datasets.yelp import split_titles
from hilap.errors import CorpusError, SettingError

CATEGORIES = [
    {"alias": "restaurants", "title": "Restaurants", "parents": []},
    {"alias": "nightlife", "title": "Nightlife", "parents": []},
    {"alias": "food", "title": "Food", "parents": []},
    {"alias": "bars", "title": "Bars", "parents": ["nightlife"], "country_whitelist": ["US"]},
    {"alias": "gastropubs", "title": "Gastropubs", "parents": ["restaurants", "bars"], "country_blacklist": ["JP"]},
    {"alias": "beer_and_wine", "title": "Beer, Wine & Spirits", "parents": ["food"]},
    {"alias": "hotels", "title": "Hotels", "parents": []},
    {"alias": "foodtours", "title": "Tours", "parents": ["food"]},
    {"alias": "bartours", "title": "Tours", "parents": ["nightlife"]},
]
FOODS: list[Any] = [
    ["Restaurants", "Gastropubs"],  # a list, as in older dumps
    "Food, Beer, Wine & Spirits",  # a string, as in newer ones; the second title has a comma of its own
    "Nightlife, Bars, Spaceports",  # the last is no category
]


def write_lines(path: Path, records: list[dict]) -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def businesses() -> list[dict]:
    some = [{"business_id": f"b{i}", "name": "x", "categories": FOODS[i % 3]} for i in range(12)]
    return [
        *some,
        {"business_id": "few", "categories": "Food"},  # too few reviews
        {"business_id": "rare", "categories": "Hotels"},  # its category has too few businesses
        {"business_id": "none", "categories": None},
    ]


def reviews() -> list[dict]:
    """Three reviews each, those of one business far apart; b0 has five, 'few' one."""
    names = [f"b{i}" for i in range(12)] + ["rare", "none"]
    rounds = [{"business_id": name, "text": f"{name} {k}", "stars": 5} for k in range(3) for name in names]
    more = [{"business_id": "b0", "text": f"b0 {k}"} for k in (3, 4)]
    return [*rounds, *more, {"business_id": "few", "text": "one"}, {"business_id": "stranger", "text": "?"}]


def collection(folder: Path, *, prefix: str = "") -> Path:
    folder.mkdir()
    write_lines(folder / f"{prefix}business.json", businesses())
    write_lines(folder / f"{prefix}review.json", reviews())
    (folder / "categories.json").write_text(json.dumps(CATEGORIES))
    return folder


OPTIONS = {"min_businesses": 2, "min_reviews": 3, "max_reviews": 4}


def written(folder: Path) -> dict[str, list[dict]]:
    parts = {}
    for part in ("train", "valid", "test"):
        with gzip.open(folder / f"{part}.jsonl.gz", "rt", encoding="utf-8") as stream:
            parts[part] = [json.loads(line) for line in stream]
    return parts


def test_the_whole_by_hand(tmp_path: Path) -> None:
    about = prepare("yelp", collection(tmp_path / "source"), tmp_path / "yelp", **OPTIONS)
    parts = written(tmp_path / "yelp")
    # 12 businesses: 8.4 and 3.6 at 70/30, and a tenth of the 8 is 0.8.
    assert {part: len(records) for part, records in parts.items()} == {"train": 7, "valid": 1, "test": 4}
    everything = {record["id"]: record for records in parts.values() for record in records}
    assert sorted(everything) == sorted(f"b{i}" for i in range(12))
    for name, record in everything.items():
        assert record["labels"] == [["gastropubs"], ["beer_and_wine"], ["bars"]][int(name[1:]) % 3]
        assert record["text"] == "\n".join(f"{name} {k}" for k in range(4 if name == "b0" else 3))
    assert about["left_out"] == {
        "labels_of_few_businesses": 3,  # hotels and both tours
        "businesses_without_labels": 2,
        "businesses_of_few_reviews": 1,
        "mentions_of_unknown_categories": 4,
    }
    assert about["notes"] == ["unknown category 'Spaceports': 4 mentions"]
    assert about["statistics"]["structure"] == "DAG"
    assert about["statistics"]["most_labels"] == 4  # gastropubs, restaurants, bars, nightlife


def test_what_is_prepared_can_be_loaded(tmp_path: Path) -> None:
    prepare("yelp", collection(tmp_path / "source", prefix="yelp_academic_dataset_"), tmp_path / "yelp", **OPTIONS)
    parts = load("yelp", tmp_path / "yelp")
    taxonomy = parts["train"].taxonomy
    assert taxonomy.parents("gastropubs") == ("restaurants", "bars")
    assert taxonomy.name("beer_and_wine") == "Beer, Wine & Spirits"
    assert sum(map(len, parts.values())) == 12


def test_categories_are_counted_before_businesses_are_removed(tmp_path: Path) -> None:
    source = collection(tmp_path / "source")
    more = [{"business_id": f"h{i}", "categories": "Hotels"} for i in range(2)]
    write_lines(source / "business.json", [*businesses(), *more])
    about = prepare("yelp", source, tmp_path / "yelp", **OPTIONS)
    # Three hotels make a label, although only one of them has enough reviews.
    assert about["statistics"]["labels"] == 7
    assert about["left_out"]["businesses_of_few_reviews"] == 3


def test_a_title_of_two_labels_is_that_below_another_label_of_the_business(tmp_path: Path) -> None:
    source = collection(tmp_path / "source")
    tours = [
        {"business_id": "b0", "categories": "Nightlife, Tours"},
        {"business_id": "b1", "categories": "Food, Tours"},
        {"business_id": "b2", "categories": "Tours"},
    ]
    write_lines(source / "business.json", tours)
    prepare("yelp", source, tmp_path / "yelp", min_businesses=1, min_reviews=1, train_share=0.6, valid_share=0.5)
    labels = {r["id"]: r["labels"] for records in written(tmp_path / "yelp").values() for r in records}
    assert labels == {"b0": ["bartours"], "b1": ["foodtours"], "b2": ["foodtours"]}


def test_the_seed_divides(tmp_path: Path) -> None:
    source = collection(tmp_path / "source")
    drawn = []
    for i, seed in enumerate((1, 1, 2)):
        prepare("yelp", source, tmp_path / str(i), seed=seed, **OPTIONS)
        drawn.append([record["id"] for record in written(tmp_path / str(i))["test"]])
    assert drawn[0] == drawn[1] != drawn[2]


def test_half_a_surrogate_pair_does_not_break_the_file(tmp_path: Path) -> None:
    source = collection(tmp_path / "source")
    raw = (source / "review.json").read_text().replace("b0 0", "b0 \\ud83d")
    (source / "review.json").write_text(raw)
    prepare("yelp", source, tmp_path / "yelp", **OPTIONS)
    texts = {r["id"]: r["text"] for records in written(tmp_path / "yelp").values() for r in records}
    assert texts["b0"].startswith("b0 ?\n")


def test_titles_with_commas_are_kept_whole() -> None:
    known = dict.fromkeys(["food", "beer, wine & spirits", "a, b, c", "a"])
    assert split_titles("Beer, Wine & Spirits,Food", known) == ["Beer, Wine & Spirits", "Food"]
    assert split_titles("A, B, Food, , A, B, C", known) == ["A", "B", "Food", "A, B, C"]
    assert split_titles("", known) == []


@pytest.mark.parametrize(
    ("file", "line", "message"),
    [
        ("business.json", "{", r"business\.json:16: not valid JSON"),
        ("business.json", "[1]", r"business\.json:16: an object is expected, got '\[1\]'"),
        ("business.json", '{"name": "x"}', r"business\.json:16: 'business_id' must be a string, got None"),
        ("business.json", '{"business_id": ""}', r"business\.json:16: 'business_id' must be a string, got ''"),
        ("business.json", '{"business_id": "b1"}', r"business\.json:16: business 'b1' is given twice; first on line 2"),
        ("business.json", '{"business_id": "z", "categories": 7}', r":16: 'categories' must be a list of titles or"),
        ("review.json", '{"business_id": 1}', r"review\.json:47: 'business_id' must be a string, got 1"),
        ("review.json", '{"business_id": "b0"', r"review\.json:47: not valid JSON"),
    ],
)
def test_bad_lines_are_named(tmp_path: Path, file: str, line: str, message: str) -> None:
    source = collection(tmp_path / "source")
    with (source / file).open("a") as stream:
        stream.write(line + "\n")
    with pytest.raises(CorpusError, match=message):
        prepare("yelp", source, tmp_path / "yelp", **OPTIONS)
    assert [path.name for path in tmp_path.iterdir()] == ["source"]


def test_a_review_without_text_leaves_nothing_behind(tmp_path: Path) -> None:
    source = collection(tmp_path / "source")
    broken = [{"business_id": "b3"}, *reviews()]
    write_lines(source / "review.json", broken)
    with pytest.raises(CorpusError, match=r"review\.json:1: 'text' must be a string, got None"):
        prepare("yelp", source, tmp_path / "yelp", **OPTIONS)
    assert [path.name for path in tmp_path.iterdir()] == ["source"]


def test_too_few_businesses_are_an_error(tmp_path: Path) -> None:
    source = collection(tmp_path / "source")
    with pytest.raises(CorpusError, match="0 businesses are left with a category of at least 100 businesses and at"):
        prepare("yelp", source, tmp_path / "yelp")
    with pytest.raises(SettingError, match="min_reviews must be a whole number, 1 or more, got 0"):
        prepare("yelp", source, tmp_path / "yelp", min_reviews=0)
    with pytest.raises(SettingError, match="train_share must be a number between 0 and 1, got 1"):
        prepare("yelp", source, tmp_path / "yelp", train_share=1)
