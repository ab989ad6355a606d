"""The sample that comes with the package."""

from __future__ import annotations

import csv
import json

import pytest

from hilap import samples
from hilap.corpus.statistics import combine, statistics
from hilap.errors import SettingError


def test_the_sample_has_the_figures_it_says() -> None:
    parts = samples.load("pypi_topics")
    assert {part: len(examples) for part, examples in parts.items()} == {"train": 2931, "valid": 419, "test": 838}
    assert all(part.taxonomy is parts["train"].taxonomy for part in parts.values())
    said = samples.about("pypi_topics")
    taxonomy = parts["train"].taxonomy
    assert f"{len(taxonomy)} labels, {taxonomy.depth} levels" in said
    for name, examples in parts.items():
        found = statistics(examples)
        assert (
            f"{name} {found.documents} documents, {found.average_labels:.2f} labels each, "
            f"{found.several_paths_share:.0%} on several paths, {found.inner_share:.0%} ending at an inner label"
        ) in said


def test_no_document_is_in_two_parts_and_none_is_without_label() -> None:
    parts = samples.load("pypi_topics")
    ids = [i for part in parts.values() for i in part.ids]
    assert len(ids) == len(set(ids))
    assert combine(map(statistics, parts.values())).documents_without_labels == 0


def test_every_document_has_a_licence() -> None:
    with (samples.path("pypi_topics") / "LICENSES.tsv").open(encoding="utf-8", newline="") as stream:
        licences = dict(csv.reader(stream, delimiter="\t", quoting=csv.QUOTE_NONE))
    ids = {i for part in samples.load("pypi_topics").values() for i in part.ids}
    assert ids <= set(licences)
    assert all(licences[i] for i in ids)


def test_labels_are_those_of_the_file() -> None:
    lines = (samples.path("pypi_topics") / "taxonomy.jsonl").read_text(encoding="utf-8").splitlines()
    assert samples.load("pypi_topics")["test"].taxonomy.labels == tuple(json.loads(line)["label"] for line in lines)


def test_an_unknown_sample_is_refused() -> None:
    with pytest.raises(SettingError, match="there is no sample 'pypi_topic'; did you mean 'pypi_topics'"):
        samples.load("pypi_topic")
    with pytest.raises(SettingError, match="there is no sample 'moon'; there is pypi_topics"):
        samples.path("moon")
    with pytest.raises(SettingError, match=r"there is no sample '\.\./x'"):
        samples.about("../x")
    assert samples.names() == ("pypi_topics",)
