"""Yelp from the official dumps: businesses with their reviews joined, in the DAG of Yelp's business categories.

Looked for are `business.json` and `review.json` (or `yelp_academic_dataset_business.json` and `..._review.json`), one
JSON object a line, and Yelp's list of all categories, `categories.json`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hilap.corpus.datasets.preparation import (
    Plan,
    check_count,
    check_share,
    check_target,
    kept_taxonomy,
    need_file,
    parts_of,
    source_folder,
    write,
)
from hilap.corpus.splits import split_rows
from hilap.errors import CorpusError
from hilap.files import read_lines
from hilap.taxonomy.graph import Taxonomy
from hilap.taxonomy.readers import read as read_taxonomy

BUSINESSES = ("business.json", "yelp_academic_dataset_business.json")
REVIEWS = ("review.json", "yelp_academic_dataset_review.json")
CATEGORIES = ("categories.json",)


def prepare(
    source: str | Path,
    target: str | Path,
    *,
    seed: int = 0,
    min_businesses: int = 100,
    min_reviews: int = 5,
    max_reviews: int = 10,
    train_share: float = 0.7,
    valid_share: float = 0.1,
) -> dict[str, Any]:
    """Write the businesses into a folder of our own format.

    Parameters
    ----------
    source
        The folder with the official files, compressed or not.
    target
        A new or empty folder: `taxonomy.jsonl`, `train.jsonl.gz`, `valid.jsonl.gz`, `test.jsonl.gz`, `about.json`.
    seed
        Divides the businesses.
    min_businesses
        Categories of fewer businesses, those of the categories below included, are removed first.
    min_reviews
        Businesses of fewer reviews in the review file are removed then.
    max_reviews
        A business is its first so many reviews, in the order of the file.
    train_share
        The share of the businesses that is for training; the others are the test set.
    valid_share
        The share of the training businesses that becomes the validation set and leaves the training set.
    """
    settings = _Settings(seed, min_businesses, min_reviews, max_reviews, train_share, valid_share)
    settings.check()
    check_target(target)
    folder = source_folder(source)
    reviews = need_file(folder, "the file of reviews", *REVIEWS)
    plan, counts = _plan(folder, reviews, settings)
    return write(plan, _texts(reviews, plan.ids, counts, max_reviews), target)


@dataclass(frozen=True)
class _Settings:
    seed: int
    min_businesses: int
    min_reviews: int
    max_reviews: int
    train_share: float
    valid_share: float

    def check(self) -> None:
        for name in ("min_businesses", "min_reviews", "max_reviews"):
            check_count(name, getattr(self, name), 1)
        check_count("seed", self.seed, 0)
        check_share("train_share", self.train_share)
        check_share("valid_share", self.valid_share)


def _plan(folder: Path, reviews: Path, settings: _Settings) -> tuple[Plan, Mapping[str, int]]:
    whole = read_taxonomy(need_file(folder, "the list of categories", *CATEGORIES), format="yelp")
    ids, label_sets, unknown = _businesses(need_file(folder, "the file of businesses", *BUSINESSES), whole)
    labels = whole.encode(label_sets, close=True)
    keep = np.asarray(labels.sum(axis=0)).ravel() >= settings.min_businesses
    taxonomy, columns = kept_taxonomy(whole, keep)
    labels = labels[:, columns]
    has_labels = np.diff(labels.indptr) > 0
    counts = _review_counts(reviews, {ids[i] for i in np.flatnonzero(has_labels)})
    enough = np.fromiter((counts[name] >= settings.min_reviews for name in ids), dtype=bool, count=len(ids))
    rows = np.flatnonzero(has_labels & enough)
    if len(rows) < 3:
        raise CorpusError(
            f"{folder}: {len(rows)} businesses are left with a category of at least {settings.min_businesses} "
            f"businesses and at least {settings.min_reviews} reviews; too few to divide"
        )
    labels = labels[rows]
    shares = {"train": settings.train_share, "test": 1 - settings.train_share}
    halves = split_rows(labels, shares, seed=settings.seed)
    parts = parts_of(labels, halves["train"], halves["test"], valid_share=settings.valid_share, seed=settings.seed)
    left_out = {
        "labels_of_few_businesses": int((~keep).sum()),
        "businesses_without_labels": int((~has_labels).sum()),
        "businesses_of_few_reviews": int((has_labels & ~enough).sum()),
        "mentions_of_unknown_categories": unknown.total(),
    }
    notes = tuple(f"unknown category {title!r}: {n:,} mentions" for title, n in unknown.most_common(20))
    plan = Plan("yelp", taxonomy, [ids[i] for i in rows], labels, parts, asdict(settings), left_out, notes)
    return plan, counts


def _businesses(path: Path, taxonomy: Taxonomy) -> tuple[list[str], list[list[str]], Counter[str]]:
    """Ids and label ids of all businesses, and the categories that the taxonomy does not have."""
    titles: dict[str, list[str]] = {}
    for label, title in zip(taxonomy.labels, taxonomy.names, strict=True):
        titles.setdefault(title.casefold(), []).append(label)
    seen: dict[str, int] = {}
    label_sets: list[list[str]] = []
    unknown: Counter[str] = Counter()
    for number, record in _records(path):
        name = _text(record, "business_id", path, number)
        if name in seen:
            raise CorpusError(f"{path}:{number}: business {name!r} is given twice; first on line {seen[name]}")
        seen[name] = number
        found = []
        for title in _categories(record.get("categories"), titles, path, number):
            candidates = titles.get(title.casefold())
            if candidates is None:
                unknown[title] += 1
            else:
                found.append(candidates)
        label_sets.append(_resolved(found, taxonomy))
    return list(seen), label_sets, unknown


def _categories(value: Any, titles: Mapping[str, object], path: Path, number: int) -> list[str]:
    """The titles of a business: older dumps have a list, newer ones one string with commas between."""
    if value is None:
        return []
    if isinstance(value, list) and all(isinstance(title, str) for title in value):
        return [title.strip() for title in value if title.strip()]
    if isinstance(value, str):
        return split_titles(value, titles)
    raise CorpusError(f"{path}:{number}: 'categories' must be a list of titles or a string, got {str(value)[:60]!r}")


def split_titles(text: str, titles: Mapping[str, object]) -> list[str]:
    """The titles in a string with commas between, although titles may have commas themselves: the longest known wins.

    Examples
    --------
    >>> split_titles("Food, Beer, Wine & Spirits, Bars", {"food": 1, "beer, wine & spirits": 1, "bars": 1})
    ['Food', 'Beer, Wine & Spirits', 'Bars']
    """
    pieces = [piece.strip() for piece in text.split(",")]
    most = 1 + max((title.count(",") for title in titles), default=0)
    found, at = [], 0
    while at < len(pieces):
        for length in range(min(most, len(pieces) - at), 0, -1):
            title = ", ".join(pieces[at : at + length])
            if length == 1 or title.casefold() in titles:
                break
        at += length
        if title:
            found.append(title)
    return found


def _resolved(found: Sequence[Sequence[str]], taxonomy: Taxonomy) -> list[str]:
    """One label for each title; of several with one title that below another label of the business, or the first."""
    sure = {candidates[0] for candidates in found if len(candidates) == 1}
    labels = set(sure)
    for candidates in found:
        if len(candidates) > 1:
            below = [label for label in candidates if sure & set(taxonomy.ancestors(label))]
            labels.add((below or candidates)[0])
    return sorted(labels)


def _review_counts(path: Path, wanted: set[str]) -> Counter[str]:
    """The first pass over the reviews: how many each business has."""
    counts: Counter[str] = Counter()
    for number, record in _records(path):
        name = _text(record, "business_id", path, number)
        if name in wanted:
            counts[name] += 1
    return counts


def _texts(path: Path, ids: Sequence[str], counts: Mapping[str, int], most: int) -> Iterator[tuple[int, str]]:
    """The second pass: a business is given out, and forgotten, as soon as its last needed review is read."""
    rows = {name: row for row, name in enumerate(ids)}
    waiting: dict[str, list[str]] = {}
    for number, record in _records(path):
        name = _text(record, "business_id", path, number)
        if name in rows:
            texts = waiting.setdefault(name, [])
            texts.append(_text(record, "text", path, number))
            if len(texts) == min(most, counts[name]):
                del waiting[name]
                yield rows.pop(name), "\n".join(texts)


def _records(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in read_lines(path, CorpusError):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as fault:
            raise CorpusError(f"{path}:{number}: not valid JSON ({fault}); one object a line is expected") from None
        if not isinstance(record, dict):
            raise CorpusError(f"{path}:{number}: an object is expected, got {line[:60]!r}")
        yield number, record


def _text(record: Mapping[str, Any], key: str, path: Path, number: int) -> str:
    value = record.get(key)
    if not isinstance(value, str) or (key == "business_id" and not value):
        raise CorpusError(f"{path}:{number}: {key!r} must be a string, got {value!r:.60}")
    return value
