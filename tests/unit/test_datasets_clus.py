"""FunCat and GO: files of the official shape, made here."""

from __future__ import annotations

import gzip
import math
from pathlib import Path

import pytest

from hilap.corpus.datasets import load
from hilap.corpus.datasets.clus import load_clus
from hilap.errors import CorpusError

FUNCAT = "01,01/01,01/01/03,01/02,99"
GO = "root/GO1,root/GO2,GO1/GO3,GO2/GO3,GO3/GO4"


def arff(labels: str, rows: str) -> str:
    return (
        "@RELATION 'cellcycle0.names'\n\n@ATTRIBUTE cln3-1 numeric\n@ATTRIBUTE cln3-2 numeric\n"
        f"@ATTRIBUTE class hierarchical {labels}\n\n@DATA\n{rows}"
    )


def write(folder: Path, stem: str, labels: str, rows: dict[str, str]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for part, text in rows.items():
        (folder / f"{stem}.{part}.arff").write_text(arff(labels, text))
    return folder


ROWS = {"train": "0.5,?,01/01/03@99\n1,-2,01\n", "valid": "?,?,01/02\n", "test": "1e-2,0,99\n0,0,01/01\n"}
GO_ROWS = {"train": "0.5,?,GO4\n", "valid": "1,1,GO1\n", "test": "0,0,GO1@GO3\n"}


def test_funcat_by_hand(tmp_path: Path) -> None:
    parts = load("funcat", write(tmp_path, "cellcycle_FUN", FUNCAT, ROWS))
    assert {part: len(examples) for part, examples in parts.items()} == {"train": 2, "valid": 1, "test": 2}
    taxonomy = parts["train"].taxonomy
    assert all(part.taxonomy is taxonomy for part in parts.values())
    assert taxonomy.labels == ("01", "01/01", "01/01/03", "01/02", "99")
    assert parts["train"].label_sets == [("01", "01/01", "01/01/03", "99"), ("01",)]
    assert parts["train"].features.tolist()[1] == [1.0, -2.0]
    assert math.isnan(parts["train"].features[0, 1])


def test_go_by_hand(tmp_path: Path) -> None:
    parts = load("go", write(tmp_path, "cellcycle_GO", GO, GO_ROWS))
    taxonomy = parts["train"].taxonomy
    assert taxonomy.parents("GO3") == ("GO1", "GO2")
    assert set(parts["train"].label_sets[0]) == {"GO1", "GO2", "GO3", "GO4"}
    assert set(parts["test"].label_sets[0]) == {"GO1", "GO2", "GO3"}


@pytest.mark.parametrize("place", ["cellcycle_FUN", "datasets_FUN/cellcycle_FUN"])
def test_files_are_found_where_the_archives_unpack_them(tmp_path: Path, place: str) -> None:
    write(tmp_path / place, "cellcycle_FUN", FUNCAT, ROWS)
    assert len(load("funcat", tmp_path)["test"]) == 2


def test_compressed_files_are_read(tmp_path: Path) -> None:
    write(tmp_path, "cellcycle_FUN", FUNCAT, ROWS)
    for path in list(tmp_path.iterdir()):
        (tmp_path / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    assert len(load("funcat", tmp_path)["train"]) == 2


def test_other_sets_of_the_site_have_their_names(tmp_path: Path) -> None:
    write(tmp_path, "eisen_GO", GO, GO_ROWS)
    assert len(load_clus(tmp_path, "eisen_GO")["valid"]) == 1


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    write(tmp_path, "cellcycle_FUN", FUNCAT, ROWS)
    (tmp_path / "cellcycle_FUN.valid.arff").unlink()
    with pytest.raises(CorpusError, match=r"there is no cellcycle_FUN\.valid\.arff"):
        load("funcat", tmp_path)
    (tmp_path / "cellcycle_FUN.valid.arff.zip").write_bytes(b"PK")
    with pytest.raises(CorpusError, match=r"cellcycle_FUN\.valid\.arff\.zip: unpack this archive first"):
        load("funcat", tmp_path)
    with pytest.raises(CorpusError, match="there is no such folder"):
        load("go", tmp_path / "nowhere")


def test_headers_that_differ_are_an_error(tmp_path: Path) -> None:
    write(tmp_path, "cellcycle_FUN", FUNCAT, ROWS)
    write(tmp_path, "cellcycle_FUN", f"{FUNCAT},98", {"test": ROWS["test"]})
    with pytest.raises(CorpusError, match=r"FUN\.test\.arff: the taxonomy in the header differs from that of .*train"):
        load("funcat", tmp_path)
