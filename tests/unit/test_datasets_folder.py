"""Folders in our own format."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from hilap.corpus.datasets import load_folder
from hilap.errors import HilapError

TAXONOMY = '{"label": "a", "name": "A", "parents": []}\n{"label": "b", "name": "B", "parents": ["a"]}\n'
LINE = '{"id": "1", "text": "words", "labels": ["b"]}\n'


def test_parts_are_read_compressed_or_not_over_one_taxonomy(tmp_path: Path) -> None:
    (tmp_path / "taxonomy.jsonl").write_text(TAXONOMY)
    (tmp_path / "train.jsonl").write_text(LINE)
    (tmp_path / "test.jsonl.gz").write_bytes(gzip.compress(LINE.encode()))
    parts = load_folder(tmp_path)
    assert list(parts) == ["train", "test"]
    assert parts["train"].taxonomy is parts["test"].taxonomy
    assert parts["test"][0].labels == ("a", "b")
    assert parts["test"].texts == ["words"]


def test_an_unknown_label_is_named_with_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "taxonomy.jsonl").write_text(TAXONOMY)
    (tmp_path / "train.jsonl").write_text(LINE + LINE.replace('"1"', '"2"').replace('["b"]', '["c"]'))
    with pytest.raises(HilapError, match=r"train\.jsonl:2: .*'c'"):
        load_folder(tmp_path)
