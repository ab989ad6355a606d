"""Hostile and broken official files: only our own errors come out, and nothing half-written stays."""

from __future__ import annotations

import gzip
import json
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hilap.corpus.datasets import DATASETS, load, load_folder, prepare
from hilap.corpus.datasets import nitf as nitf_module
from hilap.corpus.datasets import preparation as preparation_module
from hilap.corpus.datasets.nitf import articles, parse
from hilap.corpus.datasets.rcv1 import read_docs, read_tokens
from hilap.errors import CorpusError, HilapError, SettingError

ARTICLE = (
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    '<!DOCTYPE nitf SYSTEM "http://www.nitf.org/nitf-3-3.dtd">\n'
    '<nitf><head><doc-id id-string="{id}"/>'
    '<classifier class="online_producer" type="taxonomic_classifier">Top/News/Sports</classifier></head>'
    '<body><hedline><hl1>Headline</hl1></hedline><block class="full_text"><p>Words.</p></block></body></nitf>'
)
CATEGORIES = [{"alias": "food", "title": "Food", "parents": []}]


def complaint(call: Callable[[], object], none: str = "x.xml:") -> str:
    """What our own error says, or `none` where there is no error; any other error goes through and fails the test."""
    try:
        call()
    except CorpusError as fault:
        return str(fault)
    return none


def nyt(folder: Path, n: int = 6) -> Path:
    folder.mkdir()
    for i in range(n):
        (folder / f"{i}.xml").write_text(ARTICLE.format(id=i))
    return folder


def yelp(folder: Path) -> Path:
    folder.mkdir()
    names = [f"b{i}" for i in range(6)]
    (folder / "business.json").write_text(
        "".join(json.dumps({"business_id": n, "categories": "Food"}) + "\n" for n in names)
    )
    (folder / "review.json").write_text("".join(json.dumps({"business_id": n, "text": "t"}) + "\n" for n in names))
    (folder / "categories.json").write_text(json.dumps(CATEGORIES))
    return folder


YELP = {"min_businesses": 1, "min_reviews": 1, "valid_share": 0.4}
NYT = {"min_documents": 1, "valid_share": 0.4}


def rcv1(folder: Path) -> Path:
    folder.mkdir()
    (folder / "rcv1.topics.hier.orig").write_text("parent: Root child: ECAT child-description: ECONOMICS\n")
    (folder / "docs.txt").write_text("".join(f"{i} words\n" for i in (1, 2, 3, 4, 30001, 30002)))
    (folder / "rcv1-v2.topics.qrels").write_text("".join(f"ECAT {i} 1\n" for i in (1, 2, 3, 4, 30001, 30002)))
    return folder


# -- XML --------------------------------------------------------------------------------------------------------------


def test_an_expansion_bomb_is_refused_at_its_first_declaration() -> None:
    bomb = '<!DOCTYPE nitf [\n<!ENTITY a "ha">\n<!ENTITY b "&a;&a;&a;&a;">\n]>\n<nitf><p>&b;</p></nitf>'
    with pytest.raises(CorpusError, match=r"bomb\.xml:2: the file declares the entity 'a'"):
        parse(bomb.encode(), "bomb.xml")


@pytest.mark.parametrize("declaration", ['<!ENTITY x SYSTEM "file:///etc/passwd">', '<!ENTITY % x SYSTEM "x.dtd"> %x;'])
def test_an_external_entity_is_refused(declaration: str) -> None:
    with pytest.raises(CorpusError, match=r"x\.xml:1: the file declares the entity 'x'"):
        parse(f"<!DOCTYPE nitf [{declaration}]><nitf>&x;</nitf>".encode(), "x.xml")


def test_the_official_doctype_is_passed_over() -> None:
    found = parse(ARTICLE.format(id=5).encode(), "5.xml")
    assert found is not None
    assert found.text == "Headline\nWords."


def test_broken_xml_is_named_with_its_line(tmp_path: Path) -> None:
    source = nyt(tmp_path / "source")
    (source / "3.xml").write_text("<nitf>\n<head>\n</nitf>")
    with pytest.raises(CorpusError, match=r"3\.xml:3: not well-formed XML \(mismatched tag\)"):
        prepare("nyt", source, tmp_path / "nyt")
    assert [path.name for path in tmp_path.iterdir()] == ["source"]


@pytest.mark.parametrize("encoding", ["klingon", "utf-7", "hex", "shift_jis"])
def test_an_encoding_that_cannot_be_read_is_our_error(encoding: str) -> None:
    with pytest.raises(CorpusError, match=r"x\.xml:1: "):
        parse(f'<?xml version="1.0" encoding="{encoding}"?><nitf>caf\\xe9</nitf>'.encode() + b"\xe9", "x.xml")


def test_a_huge_file_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nitf_module, "MOST_ARTICLE_BYTES", 100)
    with pytest.raises(CorpusError, match=r"0\.xml: the article is larger than 100 bytes"):
        list(articles(nyt(tmp_path / "source")))


def test_a_truncated_archive_is_our_error(tmp_path: Path) -> None:
    source = nyt(tmp_path / "source", n=40)
    with tarfile.open(tmp_path / "whole.tgz", "w:gz") as archive:
        archive.add(source, "01")
    raw = (tmp_path / "whole.tgz").read_bytes()
    for size in (len(raw) // 2, len(raw) - 4, 100, 12):
        folder = tmp_path / f"cut{size}"
        folder.mkdir()
        (folder / "01.tgz").write_bytes(raw[:size])
        with pytest.raises(CorpusError, match=r"01\.tgz: the (archive is damaged|compressed file ends too early)"):
            prepare("nyt", folder, tmp_path / "nyt")


@given(st.binary(max_size=300))
def test_any_bytes_as_an_article_give_an_article_or_our_error(raw: bytes) -> None:
    assert complaint(lambda: parse(raw, "x.xml")).startswith("x.xml:")


@given(st.integers(0, 400), st.binary(max_size=4), st.integers(0, 30))
def test_a_damaged_article_gives_an_article_or_our_error(at: int, put: bytes, cut: int) -> None:
    raw = ARTICLE.format(id=1).encode()
    assert complaint(lambda: parse(raw[:at] + put + raw[at + cut :], "x.xml")).startswith("x.xml:")


@settings(max_examples=40)
@given(st.binary(max_size=2_000))
def test_any_bytes_as_an_archive_give_articles_or_our_error(raw: bytes) -> None:
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "01.tar").write_bytes(raw)
        assert complaint(lambda: list(articles(Path(name))), "01.tar").count("01.tar")


# -- RCV1 and Yelp ----------------------------------------------------------------------------------------------------


def lines(words: list[str]) -> st.SearchStrategy[bytes]:
    """Lines that are nearly right, and bytes that are not."""
    some = st.lists(st.lists(st.sampled_from(words), max_size=4).map(" ".join), max_size=8).map("\n".join)
    return st.one_of(some.map(str.encode), st.binary(max_size=60))


@settings(max_examples=100)
@given(lines([".I", ".W", "1", "99999999999999999999", "-1", "word", "", "١"]))
def test_any_bytes_as_stories_give_stories_or_our_error(raw: bytes) -> None:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "stories"
        path.write_bytes(raw)
        for read in (read_tokens, read_docs):
            assert complaint(lambda: list(read(path)), f"{path}:").startswith(f"{path}:")  # noqa: B023  called at once


@settings(max_examples=60)
@given(
    st.sampled_from(["rcv1-v2.topics.qrels", "docs.txt", "rcv1.topics.hier.orig"]),
    lines(["ECAT", "GCAT", "1", "2", "30001", "parent:", "child:", "child-description:", "Root", "None"]),
)
def test_any_bytes_in_a_file_of_rcv1_are_prepared_or_give_our_error(file: str, raw: bytes) -> None:
    with tempfile.TemporaryDirectory() as name:
        source = rcv1(Path(name) / "source")
        (source / file).write_bytes(raw)
        try:
            prepare("rcv1", source, Path(name) / "out", valid_share=0.4)
        except HilapError:
            assert [path.name for path in Path(name).iterdir()] == ["source"]


@settings(max_examples=60)
@given(
    st.sampled_from(["business.json", "review.json", "categories.json"]),
    lines(['{"business_id":', '"b1"', "null", ",", '"categories":', '"Food"', "}", "[", "]", '"text":', "1e999"]),
)
def test_any_bytes_in_a_file_of_yelp_are_prepared_or_give_our_error(file: str, raw: bytes) -> None:
    with tempfile.TemporaryDirectory() as name:
        source = yelp(Path(name) / "source")
        (source / file).write_bytes(raw)
        try:
            prepare("yelp", source, Path(name) / "out", **YELP)
        except HilapError:
            assert [path.name for path in Path(name).iterdir()] == ["source"]


def test_a_deeply_nested_line_is_our_error(tmp_path: Path) -> None:
    source = yelp(tmp_path / "source")
    (source / "review.json").write_text('{"a":' + "[" * 100_000 + "\n")
    with pytest.raises(CorpusError, match=r"review\.json:1: not valid JSON"):
        prepare("yelp", source, tmp_path / "yelp", **YELP)


def test_a_truncated_file_is_our_error(tmp_path: Path) -> None:
    source = rcv1(tmp_path / "source")
    raw = gzip.compress((source / "docs.txt").read_bytes())
    (source / "docs.txt").unlink()
    (source / "docs.txt.gz").write_bytes(raw[:-6])
    with pytest.raises(CorpusError, match=r"docs\.txt\.gz: the compressed file ends too early"):
        prepare("rcv1", source, tmp_path / "rcv1")


def test_invalid_utf8_is_named_with_its_line(tmp_path: Path) -> None:
    source = rcv1(tmp_path / "source")
    (source / "docs.txt").write_bytes(b"1 words\n2 caf\xe9\n")
    with pytest.raises(CorpusError, match=r"docs\.txt:2: not valid UTF-8 \(byte 0xe9\)"):
        prepare("rcv1", source, tmp_path / "rcv1")


# -- folders ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "make", "options"), [("rcv1", rcv1, {"valid_share": 0.4}), ("nyt", nyt, NYT), ("yelp", yelp, YELP)]
)
def test_a_run_that_breaks_off_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, make: object, options: dict
) -> None:
    source = make(tmp_path / "source")  # type: ignore[operator]

    def stop(record: dict) -> bytes:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(preparation_module, "_line", stop)
        with pytest.raises(KeyboardInterrupt):
            prepare(name, source, tmp_path / "out", **options)
    assert [path.name for path in tmp_path.iterdir()] == ["source"]
    prepare(name, source, tmp_path / "out", **options)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "about.json",
        "taxonomy.jsonl",
        "test.jsonl.gz",
        "train.jsonl.gz",
        "valid.jsonl.gz",
    ]


def test_a_folder_with_something_in_it_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    with pytest.raises(CorpusError, match=r"out: is there already and not an empty folder"):
        prepare("nyt", nyt(tmp_path / "source"), tmp_path / "out", **NYT)
    assert (tmp_path / "out" / "mine.txt").read_text() == "mine"
    with pytest.raises(CorpusError, match=r"mine\.txt: is there already and not an empty folder"):
        prepare("nyt", tmp_path / "source", tmp_path / "out" / "mine.txt", **NYT)


def test_an_empty_folder_is_filled(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    prepare("nyt", nyt(tmp_path / "source"), tmp_path / "out", **NYT)
    assert (tmp_path / "out" / "about.json").is_file()


def test_folders_that_are_not_there_are_named(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"nowhere: there is no such folder; give the folder with the official files"):
        prepare("nyt", tmp_path / "nowhere", tmp_path / "out")
    with pytest.raises(CorpusError, match=r"nowhere: there is no such folder; check the path"):
        load_folder(tmp_path / "nowhere")
    with pytest.raises(CorpusError, match=r"the taxonomy is missing: there is no taxonomy\.jsonl"):
        load_folder(tmp_path)
    (tmp_path / "taxonomy.jsonl").write_text('{"label": "a", "name": "a", "parents": []}\n')
    with pytest.raises(CorpusError, match=r"there is no part of a corpus: train\.jsonl, valid\.jsonl or test\.jsonl"):
        load_folder(tmp_path)


def test_folders_above_the_new_one_are_made_and_taken_away_again_where_it_fails(tmp_path: Path) -> None:
    source = nyt(tmp_path / "source")
    with pytest.raises(HilapError):
        prepare("nyt", source, tmp_path / "deep" / "down" / "out", min_documents=1000)
    assert not (tmp_path / "deep").exists()
    prepare("nyt", source, tmp_path / "deep" / "down" / "out", **NYT)
    assert load("nyt", tmp_path / "deep" / "down" / "out")["train"].labels.shape[0] > 0
    with pytest.raises(CorpusError, match=r"out: cannot be made, .*0\.xml is a file and not a folder; choose another"):
        prepare("nyt", source, source / "0.xml" / "out", **NYT)


def test_folders_that_were_made_go_where_a_run_breaks_off_and_what_others_put_there_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = nyt(tmp_path / "source")

    def stop(record: dict) -> bytes:
        (tmp_path / "deep" / "theirs.txt").write_text("theirs")
        raise KeyboardInterrupt

    monkeypatch.setattr(preparation_module, "_line", stop)
    with pytest.raises(KeyboardInterrupt):
        prepare("nyt", source, tmp_path / "deep" / "down" / "out", **NYT)
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["theirs.txt"]


def test_the_folder_of_the_official_files_is_not_written_to(tmp_path: Path) -> None:
    source = nyt(tmp_path / "nyt")
    before = sorted(path.name for path in source.iterdir())
    with pytest.raises(SettingError, match=r"nyt: this is the folder with the official files; name another to write"):
        prepare("nyt", source, tmp_path / "nyt", **NYT)
    assert sorted(path.name for path in source.iterdir()) == before


def test_what_was_not_prepared_says_how(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"there is no taxonomy\.jsonl; write this folder first: prepare\('rcv1'"):
        load("rcv1", tmp_path)


def test_unknown_names_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="there is no data set 'rcv'; did you mean 'rcv1'"):
        load("rcv", tmp_path)
    with pytest.raises(SettingError, match="there is no data set '20news'; there are rcv1, nyt, yelp, funcat, go"):
        prepare("20news", tmp_path, tmp_path / "out")
    with pytest.raises(SettingError, match=r"funcat needs no preparation: load\('funcat', folder\)"):
        prepare("funcat", tmp_path, tmp_path / "out")
    with pytest.raises(SettingError, match="rcv1 has no option 'levels'; there are seed, text, valid_share"):
        prepare("rcv1", tmp_path, tmp_path / "out", levels=3)
    assert list(DATASETS) == ["rcv1", "nyt", "yelp", "funcat", "go"]


def test_a_document_too_long_for_a_line_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preparation_module, "MOST_LINE_BYTES", 50)
    with pytest.raises(CorpusError, match=r"document '\d' is longer than 50 bytes"):
        prepare("nyt", nyt(tmp_path / "source"), tmp_path / "out", **NYT)
