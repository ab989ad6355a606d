"""NYT: articles of the official shape, made here, and what becomes of them."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from pathlib import Path

import pytest

from hilap.corpus.datasets import prepare
from hilap.corpus.datasets.nitf import articles, parse
from hilap.corpus.datasets.nyt import paths
from hilap.errors import CorpusError, SettingError

DOCTYPE = '<!DOCTYPE nitf SYSTEM "http://www.nitf.org/IPTC/NITF/3.3/specification/dtd/nitf-3-3.dtd">'


def article(number: int, *categories: str, body: str = "<p>First.</p><p>Second &amp; last.</p>") -> str:
    classifiers = "".join(
        f'<classifier class="online_producer" type="taxonomic_classifier">{category}</classifier>'
        for category in categories
    )
    return f"""<?xml version="1.0" encoding="UTF-8"?>
{DOCTYPE}
<nitf change.date="June 10, 2005" version="-//IPTC//DTD NITF 3.3//EN">
  <head>
    <title>Title {number}</title>
    <docdata>
      <doc-id id-string="{number}"/>
      <identified-content>
        <classifier class="indexing_service" type="descriptor">BASEBALL</classifier>
        <classifier class="online_producer" type="types_of_material">News</classifier>
        {classifiers}
      </identified-content>
    </docdata>
  </head>
  <body>
    <body.head><hedline><hl1>Headline  {number}</hl1><hl2 class="online_headline">Other</hl2></hedline></body.head>
    <body.content>
      <block class="lead_paragraph"><p>First.</p></block>
      <block class="full_text">{body}</block>
    </body.content>
  </body>
</nitf>
"""


def collection(folder: Path, n: int = 40) -> Path:
    """Half sports (a fourth of it baseball), half arts; one rare label, one unlabelled, one textless, one alien."""
    month = folder / "data" / "1987" / "01"
    month.mkdir(parents=True)
    for i in range(n):
        sports = ["Top/News/Sports/Baseball/Major League", "Top/News"] if i % 8 == 0 else ["Top/News/Sports"]
        categories = ["Top/Features/Arts"] if i % 2 else sports
        (month / f"{i:07}.xml").write_text(article(i, *categories))
    (month / "0000900.xml").write_text(article(900, "Top/Opinion/Letters", "Top/News/Sports"))
    (month / "0000901.xml").write_text(article(901))
    (month / "0000902.xml").write_text(
        article(902, "Top/News", body="").replace("Headline  902", "").replace("Title 902", "")
    )
    (folder / "build.xml").write_text("<project name='tools'/>")
    return folder


def written(folder: Path) -> dict[str, list[dict]]:
    parts = {}
    for part in ("train", "valid", "test"):
        with gzip.open(folder / f"{part}.jsonl.gz", "rt", encoding="utf-8") as stream:
            parts[part] = [json.loads(line) for line in stream]
    return parts


def labels_of(folder: Path) -> dict[str, list[str]]:
    lines = (folder / "taxonomy.jsonl").read_text().splitlines()
    return {record["label"]: record["parents"] for record in map(json.loads, lines)}


def test_an_article_gives_id_categories_and_text() -> None:
    found = parse(article(7, "Top/News/Sports", " Top/News ").encode(), "7.xml")
    assert found is not None
    assert found.id == "7"
    assert found.categories == ["Top/News/Sports", "Top/News"]
    assert found.text == "Headline 7\nFirst.\nSecond & last."


def test_an_article_without_headline_has_its_title() -> None:
    found = parse(article(7).replace("<hl1>Headline  7</hl1>", "").encode(), "7.xml")
    assert found is not None
    assert found.text.startswith("Title 7\n")


def test_markup_inside_a_paragraph_is_passed_over() -> None:
    body = "<p>A <em>very</em> long\n  <person>walk</person></p>"
    found = parse(article(1, body=body).encode(), "1.xml")
    assert found is not None
    assert found.paragraphs == ["A very long walk"]


def test_a_name_of_the_dtd_that_is_not_read_becomes_a_space() -> None:
    found = parse(article(1, body="<p>caf&eacute;s open</p>").encode(), "1.xml")
    assert found is not None
    assert found.paragraphs == ["caf s open"]


def test_xml_of_another_kind_is_no_article() -> None:
    assert parse(b"<project><classifier/></project>", "build.xml") is None


def test_paths_are_cut_and_those_of_other_roots_left_out() -> None:
    assert paths(["Top/News/World/Europe/Italy", "Bottom/News", "Top", "", "Top//x", "Top/News "], 3) == [
        "News",
        "News/World/Europe",
    ]


def test_the_whole_by_hand(tmp_path: Path) -> None:
    source, target = collection(tmp_path / "source"), tmp_path / "nyt"
    about = prepare("nyt", source, target, seed=1, train=28, test=12, min_documents=5)
    parts = written(target)
    # 41 articles can be used, 40 are drawn: 28 and 12, and a tenth of the 28 becomes the validation set.
    assert {part: len(records) for part, records in parts.items()} == {"train": 25, "valid": 3, "test": 12}
    assert labels_of(target) == {
        "Features": [],
        "Features/Arts": ["Features"],
        "News": [],
        "News/Sports": ["News"],
        "News/Sports/Baseball": ["News/Sports"],
    }
    everything = {record["id"]: record for records in parts.values() for record in records}
    assert len(everything) == 40
    for name, record in everything.items():
        number = int(name)
        assert record["text"] == f"Headline {number}\nFirst.\nSecond & last."
        arts, baseball = number % 2 and number < 900, number % 8 == 0 and number < 900
        assert record["labels"] == ["Features/Arts" if arts else "News/Sports/Baseball" if baseball else "News/Sports"]
    assert about["left_out"]["other_files"] == 1
    assert about["left_out"]["documents_without_labels"] == 1
    assert about["left_out"]["documents_without_text"] == 1
    assert about["left_out"]["documents_not_drawn"] == 1
    assert about["notes"] == []
    assert json.loads((target / "about.json").read_text()) == about


def test_the_rare_label_goes_and_its_document_stays(tmp_path: Path) -> None:
    source = collection(tmp_path / "source")
    about = prepare("nyt", source, tmp_path / "nyt", min_documents=2)
    assert "Opinion" not in labels_of(tmp_path / "nyt")
    assert about["left_out"]["labels_of_few_documents"] == 2
    assert about["left_out"]["documents_of_such_labels_only"] == 0
    assert about["statistics"]["documents"] == 41


def test_fewer_articles_than_asked_are_divided_in_the_same_ratio(tmp_path: Path) -> None:
    about = prepare("nyt", collection(tmp_path / "source"), tmp_path / "nyt", min_documents=5)
    assert about["documents"] == {"train": 26, "valid": 3, "test": 12}  # 41 at 25,279 : 10,828
    assert about["notes"] == ["36,107 articles were asked for and 41 could be used: divided in the same ratio"]


def test_the_same_seed_draws_the_same_and_another_seed_others(tmp_path: Path) -> None:
    source = collection(tmp_path / "source")
    drawn = []
    for i, seed in enumerate((1, 1, 2)):
        prepare("nyt", source, tmp_path / str(i), seed=seed, train=10, test=5, min_documents=1)
        drawn.append(written(tmp_path / str(i)))
    assert drawn[0] == drawn[1]
    for path in (tmp_path / "0").iterdir():
        assert path.read_bytes() == (tmp_path / "1" / path.name).read_bytes()
    assert {r["id"] for p in drawn[0].values() for r in p} != {r["id"] for p in drawn[2].values() for r in p}


def test_archives_give_the_same_as_the_unpacked_tree(tmp_path: Path) -> None:
    tree = collection(tmp_path / "tree")
    packed = tmp_path / "packed" / "data" / "1987"
    packed.mkdir(parents=True)
    with tarfile.open(packed / "01.tgz", "w:gz") as archive:
        archive.add(tree / "data" / "1987" / "01", "01")
    options = {"seed": 3, "train": 20, "test": 8, "min_documents": 2}
    prepare("nyt", tree, tmp_path / "a", **options)
    prepare("nyt", tmp_path / "packed", tmp_path / "b", **options)
    assert written(tmp_path / "a") == written(tmp_path / "b")


def test_nothing_is_unpacked_from_an_archive(tmp_path: Path) -> None:
    raw = article(1, "Top/News").encode()
    with tarfile.open(tmp_path / "evil.tgz", "w:gz") as archive:
        for name in ("../../evil.xml", "/evil.xml"):
            member = tarfile.TarInfo(name)
            member.size = len(raw)
            archive.addfile(member, io.BytesIO(raw))
        link = tarfile.TarInfo("link.xml")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    assert [xml for _, xml in articles(tmp_path)] == [raw, raw]
    assert [p.name for p in tmp_path.iterdir()] == ["evil.tgz"]


def test_an_article_given_twice_is_an_error(tmp_path: Path) -> None:
    source = collection(tmp_path / "source")
    (source / "again.xml").write_text(article(3, "Top/News"))
    with pytest.raises(CorpusError, match=r"0000003\.xml: an article with the id '3' came before.*keep one of them"):
        prepare("nyt", source, tmp_path / "nyt")
    assert not (tmp_path / "nyt").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"train": 0}, "train must be a whole number, 1 or more, got 0"),
        ({"levels": 1.5}, r"levels must be a whole number, 1 or more, got 1\.5"),
        ({"valid_share": 1}, "valid_share must be a number between 0 and 1, got 1"),
        ({"seed": -1}, "seed must be a whole number, 0 or more, got -1"),
        ({"min_document": 3}, "nyt has no option 'min_document'; did you mean 'min_documents'"),
    ],
)
def test_bad_options_are_refused(tmp_path: Path, options: dict, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        prepare("nyt", tmp_path, tmp_path / "nyt", **options)


def test_a_category_that_cannot_be_a_label_is_an_error(tmp_path: Path) -> None:
    source = collection(tmp_path / "source")
    (source / "strange.xml").write_text(article(77, "Top/News/&#x7f;"))
    with pytest.raises(CorpusError, match=r"strange\.xml: label 'News/\\x7f' has a control character"):
        prepare("nyt", source, tmp_path / "nyt")


def test_too_few_articles_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    with pytest.raises(CorpusError, match="no article with a category below Top is here"):
        prepare("nyt", tmp_path / "source", tmp_path / "nyt")
    collection(tmp_path / "some")
    with pytest.raises(CorpusError, match="0 articles are left with labels of at least 99 articles"):
        prepare("nyt", tmp_path / "some", tmp_path / "nyt", min_documents=99)
