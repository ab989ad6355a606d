"""The door: formats known by content or ending, options checked, what a writer writes, what it refuses."""

from __future__ import annotations

import gzip
import io
import json
import sys
from pathlib import Path

import pytest

from hilap.errors import SettingError, TaxonomyError
from hilap.taxonomy.graph import Taxonomy
from hilap.taxonomy.readers import FORMATS, read, read_draft, write


@pytest.fixture
def names() -> Taxonomy:
    """A tree whose ids are paths of names."""
    return Taxonomy.of(
        {"Food": [], "Food > Bars": ["Food"], "Shops": [], "Shops > Bars": ["Shops"]},
        {"Food > Bars": "Bars", "Shops > Bars": "Bars"},
    )


# -- recognition -------------------------------------------------------------------------------------------------------


def test_the_content_decides_and_not_the_ending(tmp_path):
    path = tmp_path / "taxonomy.csv"
    path.write_text('{"label": "a", "name": "A", "parents": []}\n')
    assert read_draft(path).format == "jsonl"


def test_a_named_format_decides_over_the_content(tmp_path):
    path = tmp_path / "paths.txt"
    path.write_text("AC/DC\nMusic\n")
    assert read(path, "indented").labels == ("AC/DC", "Music")


def test_a_large_file_is_recognised_from_its_beginning(tmp_path):
    path = tmp_path / "edges"
    path.write_text("parent\tchild\n" + "".join(f"top\tlabel number {i}\n" for i in range(30_000)))
    assert len(read(path)) == 30_001


def test_one_long_line_of_json_is_recognised(tmp_path):
    path = tmp_path / "nested"
    path.write_text(json.dumps([{"name": f"a{i}", "children": [{"name": "b"}]} for i in range(12_000)]))
    assert len(read(path)) == 24_000


def test_compressed_files_are_read_and_written(tmp_path, tree):
    path = tmp_path / "tree.tsv.gz"
    write(tree, path)
    assert gzip.decompress(path.read_bytes()).startswith(b"parent\tchild\tname\n")
    assert read(path) == tree


@pytest.mark.parametrize("format", [None, "edges"])
def test_standard_input_is_read_though_it_comes_only_once(monkeypatch, format):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"parent,child\na,b\n")))
    draft = read_draft("-", format)
    assert draft.source == "standard input"
    assert [entry.line for entry in draft] == [2, 2]


# -- writing -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "format"),
    [(f"t{ending}", format) for format, entry in FORMATS.items() for ending in entry.endings if format != "skos"],
)
def test_the_ending_tells_the_format_to_write(tmp_path, name, format):
    taxonomy = Taxonomy.of({"a": [], "b": ["a"]})
    write(taxonomy, tmp_path / name)
    assert read_draft(tmp_path / name).format == format
    assert read(tmp_path / name) == taxonomy


@pytest.mark.parametrize(
    ("format", "options", "expected"),
    [
        ("paths", {}, "Food\nFood > Bars\nShops\nShops > Bars\n"),
        ("indented", {"indent": "  "}, "Food\n  Bars\nShops\n  Bars\n"),
        ("columns", {"delimiter": ","}, "level 1,level 2\nFood,\nFood,Bars\nShops,\nShops,Bars\n"),
        (
            "edges",
            {"direction": "child-parent"},
            "child\tparent\tname\nFood\t\tFood\nFood > Bars\tFood\tBars\nShops\t\tShops\nShops > Bars\tShops\tBars\n",
        ),
        (
            "nested-json",
            {},
            '[\n {"id": "Food", "name": "Food", "children": [\n'
            '  {"id": "Food > Bars", "name": "Bars", "children": []}]},\n'
            ' {"id": "Shops", "name": "Shops", "children": [\n'
            '  {"id": "Shops > Bars", "name": "Bars", "children": []}]}\n]\n',
        ),
        (
            "yelp",
            {},
            '[\n{"alias": "Food", "title": "Food", "parents": []},\n'
            '{"alias": "Food > Bars", "title": "Bars", "parents": ["Food"]},\n'
            '{"alias": "Shops", "title": "Shops", "parents": []},\n'
            '{"alias": "Shops > Bars", "title": "Bars", "parents": ["Shops"]}\n]\n',
        ),
    ],
)
def test_what_is_written(tmp_path, names, format, options, expected):
    path = tmp_path / "file"
    write(names, path, format, **options)
    assert path.read_text() == expected


def test_other_readers_understand_what_is_written(tmp_path, tree):
    yaml, obonet, rdflib = (pytest.importorskip(name) for name in ("yaml", "obonet", "rdflib"))
    write(tree, tmp_path / "tree.yaml")
    top = yaml.safe_load((tmp_path / "tree.yaml").read_text())
    assert [label["id"] for label in top] == ["food", "shops"]
    assert top[0]["children"][0]["children"] == [{"id": "beer", "name": "Beer Bars"}]
    write(tree, tmp_path / "tree.obo")
    graph = obonet.read_obo(str(tmp_path / "tree.obo"))
    assert {(a, b) for a, b, _ in graph.edges(keys=True)} == {(c, p) for c in tree for p in tree.parents(c)}
    write(tree, tmp_path / "tree.ttl", ids="notation", base="http://x.org/")
    triples = rdflib.Graph().parse(tmp_path / "tree.ttl")
    assert len(list(triples.subject_objects(rdflib.SKOS.broader))) == tree.n_edges


@pytest.mark.parametrize("format", ["nested-json", "nested-yaml", "iab", "paths", "columns", "indented"])
def test_formats_for_trees_refuse_a_dag(tmp_path, dag, format):
    with pytest.raises(
        TaxonomyError, match=f"'{format}' cannot hold .*: it holds trees only, and label 'd' has several"
    ):
        write(dag, tmp_path / "file", format)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("format", ["children", "clus"])
def test_formats_of_ids_refuse_names(tmp_path, tree, format):
    with pytest.raises(TaxonomyError, match="it has ids only, and label 'food' is called 'Restaurants'"):
        write(tree, tmp_path / "file", format)


@pytest.mark.parametrize("format", sorted(FORMATS.keys() - {"json", "jsonl", "obo", "mesh"}))
def test_formats_without_aliases_refuse_them(tmp_path, format):
    taxonomy = Taxonomy.of({"a": []}, aliases={"b": "a"})
    with pytest.raises(TaxonomyError, match="it has no aliases, and 'b' is one of 'a'"):
        write(taxonomy, tmp_path / "file", format)


def test_a_refusal_says_how_ids_would_come_back(tmp_path, tree):
    with pytest.raises(
        TaxonomyError, match="label 'food' would come back as 'Restaurants'; write and read it with ids="
    ):
        write(tree, tmp_path / "file", "indented")


def test_names_as_ids_are_written_where_that_is_asked_for(tmp_path):
    taxonomy = Taxonomy.of({"Food": [], "Bars": ["Food"]})
    for format in ("indented", "paths", "columns"):
        write(taxonomy, tmp_path / format, format, ids="name")
        assert read(tmp_path / format, ids="name") == taxonomy


@pytest.mark.parametrize("format", ["edges", "children", "rcv1", "clus", "nested-json", "paths"])
def test_a_top_label_called_root_is_refused_where_it_would_vanish(tmp_path, format):
    with pytest.raises(TaxonomyError, match="top label 'Root' would be taken for the root"):
        write(Taxonomy.of({"Root": [], "Root > a": ["Root"]}), tmp_path / "file", format)


@pytest.mark.parametrize(
    ("format", "taxonomy", "reason"),
    [
        ("clus", {"a b": []}, "id 'a b' has a blank"),
        ("clus", {"a": [], "root": ["a"]}, "'root' stands for the root"),
        ("obo", {"a b": []}, "id 'a b' has a blank"),
        ("skos", {"a b": []}, "id 'a b' is no URI"),
        ("edges", {" a": []}, "' a' is empty or has blanks around it"),
        ("children", {"# a": [], "b": ["# a"]}, "'# a' would be read as a comment"),
        ("rcv1", {"a child: b": [], "c": ["a child: b"]}, "would not be read back as it is"),
        ("paths", {"A/B": []}, "'/' in a name would be taken for the separator"),
        ("paths", {"1 - a": []}, "would be read as a number and a path"),
        ("indented", {"# a": []}, "'# a' would be read as a comment"),
    ],
)
def test_what_a_line_cannot_hold_is_refused(tmp_path, format, taxonomy, reason):
    with pytest.raises(TaxonomyError, match="cannot hold this taxonomy") as error:
        write(Taxonomy.of(taxonomy), tmp_path / "file", format)
    assert reason in str(error.value)


def test_trees_too_deep_to_be_read_again_are_refused(tmp_path):
    chain = Taxonomy([str(i) for i in range(101)], [[str(i - 1)] if i else [] for i in range(101)])
    with pytest.raises(TaxonomyError, match="it has 101 levels, and more than 100 are not read"):
        write(chain, tmp_path / "file", "nested-json")


@pytest.mark.parametrize("format", ["nested-json", "nested-yaml"])
def test_trees_of_100_levels_are_written_and_read(tmp_path, format):
    chain = Taxonomy([str(i) for i in range(100)], [[str(i - 1)] if i else [] for i in range(100)])
    write(chain, tmp_path / "file", format)
    assert read(tmp_path / "file") == chain


@pytest.mark.parametrize(
    ("taxonomy", "reason"),
    [
        (Taxonomy.of({}), "a taxonomy without labels is not written"),
        (Taxonomy.of({"a\tb": []}), "label 'a\\tb' has a control character"),
        (Taxonomy.of({"": []}), "a label is empty"),
        (Taxonomy.of({"a": []}, {"a": "\x1b[31m"}), "name '\\x1b[31m' has a control character"),
        (Taxonomy.of({"\ud800": []}), "has a control character"),
        (Taxonomy.of({"a" * 1001: []}), "is longer than 1,000 characters"),
    ],
)
def test_what_no_file_could_give_back_is_not_written(tmp_path, taxonomy, reason):
    with pytest.raises(TaxonomyError) as error:
        write(taxonomy, tmp_path / "file.jsonl")
    assert reason in str(error.value)
    assert not list(tmp_path.iterdir())


def test_an_older_file_survives_a_refusal(tmp_path, dag):
    path = tmp_path / "file.yaml"
    path.write_text("old")
    with pytest.raises(TaxonomyError):
        write(dag, path)
    assert path.read_text() == "old"


# -- settings ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("format", "options", "message"),
    [
        ("jsnl", {}, "there is no taxonomy format 'jsnl'; did you mean 'jsonl'?"),
        (
            "edges",
            {"directon": "x"},
            "the format 'edges' is not read with an option 'directon'; did you mean 'direction'?",
        ),
        ("jsonl", {"root": "x"}, "the format 'jsonl' is not read with an option 'root'; it takes no options"),
        ("mesh", {"language": "x"}, "the format 'mesh' is not read with an option 'language'; it takes no options"),
        ("edges", {"direction": "up"}, "direction must be 'parent-child' or 'child-parent', got 'up'"),
        ("edges", {"delimiter": "ab"}, "delimiter must be one character, such as a tab or a comma, got 'ab'"),
        ("paths", {"ids": "number"}, "ids must be 'path' or 'name', got 'number'"),
        ("paths", {"separator": ""}, "separator must be a text, got ''"),
        ("skos", {"ids": "name"}, "ids must be 'uri', 'notation' or 'local', got 'name'"),
        ("skos", {"syntax": "json-ld"}, "syntax must be 'turtle', 'nt' or 'xml', got 'json-ld'"),
        ("obo", {"relations": ()}, "relations must be names such as 'is_a', got ()"),
        ("edges", {"root": 3}, "root must be a label, None, or False for no root, got 3"),
    ],
)
def test_bad_settings_of_reading(tmp_path, format, options, message):
    path = tmp_path / "file"
    path.write_text("a\tb\n")
    with pytest.raises(SettingError) as error:
        read_draft(path, format, **options)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    ("name", "format", "options", "message"),
    [
        ("x.txt", None, {}, "the ending '.txt' does not tell the format; name one with format="),
        ("x", "mesh", {}, "the format 'mesh' can be read but not written; choose one of children, clus"),
        ("x", "pathes", {}, "there is no taxonomy format 'pathes'; did you mean 'paths'?"),
        (
            "x.tsv",
            None,
            {"header": True},
            "the format 'edges' is not written with an option 'header'; it takes direction",
        ),
        ("x.ttl", None, {"ids": "notation"}, "base must be the beginning of a URI"),
        ("x", "indented", {"indent": "-"}, "indent must be a tab or blanks, got '-'"),
        ("x", "children", {"root": ""}, "root must be a name for the root, which has a row here, got ''"),
    ],
)
def test_bad_settings_of_writing(tmp_path, name, format, options, message):
    with pytest.raises(SettingError) as error:
        write(Taxonomy.of({"a": []}), tmp_path / name, format, **options)
    assert message in str(error.value)
    assert not list(tmp_path.iterdir())


def test_a_root_needs_a_name_that_is_read_as_one(tmp_path):
    with pytest.raises(TaxonomyError, match="'Top' would be read as a label; call it \"Root\""):
        write(Taxonomy.of({"a": []}), tmp_path / "x.tsv", root="Top")


def test_every_format_and_option_is_documented():
    text = (Path(__file__).parents[2] / "docs" / "formats" / "taxonomies.md").read_text()
    sections = dict(part.split("\n", 1) for part in text.split("\n## ")[1:])
    for name, format in FORMATS.items():
        section = next(body for title, body in sections.items() if name in title.split())
        missing = [o for o in {*format.read_options, *format.write_options} if f"`{o}" not in section]
        assert not missing, f"{name}: {missing}"
        assert f"| [`{name}`](#" in text
