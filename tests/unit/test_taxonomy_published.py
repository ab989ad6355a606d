"""Taxonomies as others publish them, read from small files of the same shape, and the real ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from hilap.taxonomy.draft import Draft
from hilap.taxonomy.readers import read, read_draft


@pytest.fixture
def drafted(tmp_path):
    """Write a text to a file and read it."""

    def draft(text: str, format: str | None = None, name: str = "file", **options: object) -> Draft:
        path: Path = tmp_path / name
        path.write_bytes(text.encode())
        return read_draft(path, format, **options)

    return draft


def rows(draft: Draft) -> list[tuple[str, str, tuple[str, ...], int]]:
    return [(entry.label, entry.name, entry.parents, entry.line) for entry in draft]


def parents(draft: Draft) -> dict[str, tuple[str, ...]]:
    return {entry.label: entry.parents for entry in draft}


def test_rcv1_topics(drafted):
    draft = drafted(
        "parent: None                 child: Root                 child-description: Root\n"
        "parent: Root                 child: CCAT                 child-description: CORPORATE/INDUSTRIAL\n"
        "parent: CCAT                 child: C11                  child-description: STRATEGY/PLANS\n"
        "parent: 1POL                 child: C12                  child-description: \n"
    )
    assert draft.format == "rcv1"
    assert rows(draft) == [
        ("CCAT", "CORPORATE/INDUSTRIAL", (), 2),
        ("C11", "STRATEGY/PLANS", ("CCAT",), 3),
        ("C12", "C12", ("1POL",), 4),
    ]


def test_yelp_categories(drafted):
    draft = drafted(
        '[\n{"alias": "bars", "title": "Bars", "parents": ["nightlife"], "country_whitelist": ["US"]},\n'
        '{"alias": "nightlife", "title": "Nightlife", "parents": [null]},\n'
        '{"alias": "beerbar", "title": "Beer Bar", "parents": ["bars", "food"]}\n]'
    )
    assert draft.format == "yelp"
    assert rows(draft) == [
        ("bars", "Bars", ("nightlife",), 2),
        ("nightlife", "Nightlife", (), 3),
        ("beerbar", "Beer Bar", ("bars", "food"), 4),
    ]


OBO = """format-version: 1.2
data-version: releases/2024

[Term]
id: GO:1
name: biological \\{process\\}
alt_id: GO:9
alt_id: GO:8

[Term]
id: GO:2
name: growth
is_a: GO:1 {source="x"} ! biological process
relationship: part_of GO:3 ! cell
relationship: regulates GO:1

[Typedef]
id: part_of
name: part of

[Term]
id: GO:3
name: cell
is_a: GO:4
is_a: GO:7

[Term]
id: GO:4
name: old
is_obsolete: true
"""


def test_obo_terms_with_is_a_alone(drafted):
    draft = drafted(OBO)
    assert draft.format == "obo"
    assert rows(draft) == [
        ("GO:1", "biological {process}", (), 4),
        ("GO:2", "growth", ("GO:1",), 10),
        ("GO:3", "cell", ("GO:7",), 21),
    ]
    assert draft.aliases == {"GO:9": "GO:1", "GO:8": "GO:1"}
    assert draft.remarks == [
        (27, "1 obsolete term left out: first 'GO:4'"),
        (24, "parent 'GO:4' of 'GO:3' is obsolete and left out"),
    ]


def test_obo_relations_are_parents_where_they_are_asked_for(drafted):
    assert parents(drafted(OBO, relations=("is_a", "part_of")))["GO:2"] == ("GO:1", "GO:3")
    assert parents(drafted(OBO, relations=["part_of"]))["GO:2"] == ("GO:3",)


def test_obo_agrees_with_obonet(tmp_path):
    obonet = pytest.importorskip("obonet")
    text = "format-version: 1.2\nontology: x\n"
    for i in range(1, 60):
        above = {i // 2, i // 3} - {0}
        text += f"\n[Term]\nid: X:{i}\nname: term {i} ! with comment\n" + "".join(f"is_a: X:{p} ! p\n" for p in above)
        text += f"relationship: part_of X:{max(1, i // 5)} ! x\n" if i > 5 else ""
        text += "is_obsolete: true\n" if i in (41, 53) else ""
    path = tmp_path / "x.obo"
    path.write_text(text)
    graph = obonet.read_obo(str(path))
    draft = read_draft(path, relations=("is_a", "part_of"))
    assert {entry.label: entry.name for entry in draft} == {node: data["name"] for node, data in graph.nodes(data=True)}
    assert {(entry.label, p) for entry in draft for p in entry.parents} == {
        (a, b) for a, b, _ in graph.edges(keys=True)
    }


TURTLE = """@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix : <http://x.org/t/> .
:scheme a skos:ConceptScheme .
:1 a skos:Concept ; skos:prefLabel "Food"@en, "Essen"@de ; skos:notation "F" ;
  skos:topConceptOf :scheme ; skos:narrower :2 .
:2 a skos:Concept ; skos:prefLabel "Bars" , "Kneipen"@de ; skos:notation "F1" .
:3 a skos:Concept ; skos:prefLabel "Bier"@de ; skos:notation "F11" ;
  skos:broader :2 , :1 ; skos:broaderTransitive :9 .
:4 a skos:Concept ; skos:prefLabel "Gone"@en ; owl:deprecated true ; skos:broader :1 .
"""


@pytest.fixture
def thesaurus(drafted):
    """The same thesaurus in the syntax asked for."""
    pytest.importorskip("rdflib")
    from rdflib import Graph

    def read_as(syntax: str, **options: object) -> Draft:
        text = TURTLE if syntax == "turtle" else Graph().parse(data=TURTLE, format="turtle").serialize(format=syntax)
        return drafted(text, **options)

    return read_as


@pytest.mark.parametrize("syntax", ["turtle", "nt", "xml"])
def test_skos_in_every_syntax_and_direction(thesaurus, syntax):
    draft = thesaurus(syntax)
    base = "http://x.org/t/"
    assert draft.format == "skos"
    assert parents(draft) == {f"{base}1": (), f"{base}2": (f"{base}1",), f"{base}3": (f"{base}1", f"{base}2")}
    assert {entry.label: entry.name for entry in draft} == {f"{base}1": "Food", f"{base}2": "Bars", f"{base}3": "Bier"}
    assert [remark for _, remark in draft.remarks] == [
        "1 deprecated concept left out: first 'http://x.org/t/4'",
        "1 concept named in another language than 'en', or by the id: first 'http://x.org/t/3'",
    ]


def test_skos_entries_have_lines(thesaurus):
    assert [entry.line for entry in thesaurus("turtle")] == [5, 7, 8]
    assert all(entry.line for entry in thesaurus("nt"))
    assert all(entry.line for entry in thesaurus("xml"))


@pytest.mark.parametrize(
    "text",
    [
        "#written by hand\n@prefix skos: <http://www.w3.org/2004/02/skos/core#> .\n<http://x.org/a> a skos:Concept .\n",
        "<http://x.org/a> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> "
        "<http://www.w3.org/2004/02/skos/core#Concept> .\n",
    ],
)
def test_the_smallest_thesauri_are_recognised(drafted, text):
    pytest.importorskip("rdflib")
    draft = drafted(text)
    assert draft.format == "skos"
    assert [entry.label for entry in draft] == ["http://x.org/a"]


def test_skos_names_in_a_language(thesaurus):
    assert [entry.name for entry in thesaurus("turtle", language="de")] == ["Essen", "Kneipen", "Bier"]


def test_skos_remarks_on_names_in_another_language(drafted):
    text = (
        "@prefix skos: <http://www.w3.org/2004/02/skos/core#> .\n@prefix : <http://x.org/> .\n"
        ':a a skos:Concept ; skos:prefLabel "Tier"@de .\n'
        ':b a skos:Concept ; skos:prefLabel "Bird"@en ; skos:broader :a .\n'
    )
    said = "1 concept named in another language than 'en', or by the id: first 'http://x.org/a'"
    assert drafted(text).remarks == [(3, said)]
    assert drafted(text.replace("@de", "")).remarks == []


def test_odd_uris_in_a_thesaurus_print_nothing(drafted, caplog, capfd):
    text = (
        '<?xml version="1.0"?>\n<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" '
        'xmlns:skos="http://www.w3.org/2004/02/skos/core#">\n<skos:Concept rdf:about="http://x.org/a b"/>\n</rdf:RDF>'
    )
    assert [entry.label for entry in drafted(text)] == ["http://x.org/a b"]
    assert caplog.records == []
    assert capfd.readouterr() == ("", "")


def test_skos_ids_of_every_kind(thesaurus):
    assert parents(thesaurus("turtle", ids="local")) == {"1": (), "2": ("1",), "3": ("1", "2")}
    assert parents(thesaurus("turtle", ids="notation")) == {"F": (), "F1": ("F",), "F11": ("F", "F1")}


def test_a_mesh_concept_with_many_numbers_is_one_label(drafted):
    draft = drafted(
        "Body Regions;A01\nHead;A01.456\nEye;A01.456.505\nSense Organs;A09\nEye;A09.371\nCornea;A09.371.060\n"
    )
    assert draft.format == "mesh"
    assert rows(draft) == [
        ("Body Regions", "Body Regions", (), 1),
        ("Head", "Head", ("Body Regions",), 2),
        ("Eye", "Eye", ("Head", "Sense Organs"), 3),
        ("Sense Organs", "Sense Organs", (), 4),
        ("Cornea", "Cornea", ("Eye",), 6),
    ]


def test_mesh_with_descriptor_uis(drafted):
    draft = drafted("D1;Head;A01\nD2;Eye;A01.456\nD3;Lost;A01.999.100\n")
    assert rows(draft) == [("D1", "Head", (), 1), ("D2", "Eye", ("D1",), 2), ("D3", "Lost", ("A01.999",), 3)]


MESH_XML = """<?xml version="1.0"?>
<!DOCTYPE DescriptorRecordSet SYSTEM "https://example.org/desc.dtd">
<DescriptorRecordSet LanguageCode = "eng">
<DescriptorRecord DescriptorClass = "1">
 <DescriptorUI>D2</DescriptorUI>
 <DescriptorName><String>Eye &amp; Lid</String></DescriptorName>
 <TreeNumberList><TreeNumber>A01.456</TreeNumber><TreeNumber>A09</TreeNumber></TreeNumberList>
 <ConceptList><Concept><ConceptName><String>other</String></ConceptName></Concept></ConceptList>
</DescriptorRecord>
<DescriptorRecord>
 <DescriptorUI>D1</DescriptorUI><DescriptorName><String>Head</String></DescriptorName>
 <TreeNumberList><TreeNumber>A01</TreeNumber></TreeNumberList>
</DescriptorRecord>
<DescriptorRecord><DescriptorUI>D9</DescriptorUI><DescriptorName><String>Male</String></DescriptorName></DescriptorRecord>
</DescriptorRecordSet>"""


def test_mesh_descriptor_xml(drafted):
    draft = drafted(MESH_XML)
    assert draft.format == "mesh"
    assert rows(draft) == [("D2", "Eye & Lid", ("D1",), 4), ("D1", "Head", (), 10), ("D9", "Male", (), 14)]
    assert draft.remarks == [(14, "1 without a tree number became top labels: first 'Male'")]


def test_iab_table_with_two_header_rows(drafted):
    draft = drafted(
        "Relational ID System\t\tTiered Categories\t\t\t\r\nUnique ID\tParent\tName\tTier 1\tTier 2\tExtension\r\n"
        "150\t\tAttractions\tAttractions\t\t\r\n151\t150\tAmusement Parks \tAttractions\tAmusement Parks\t\r\n"
    )
    assert draft.format == "iab"
    assert rows(draft) == [("150", "Attractions", (), 3), ("151", "Amusement Parks", ("150",), 4)]


# -- Clus -------------------------------------------------------------------------------------------------------------


def arff(labels: str) -> str:
    return (
        f"% made by hand\n@RELATION 'my data'\n\n@ATTRIBUTE 'a b' numeric\n@attribute class hierarchical {labels}\n"
        "@ATTRIBUTE k {x,y}\n\n@data\n1,a@b,x\n"
    )


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ("01,01/01,01/01/03,02", {"01": (), "01/01": ("01",), "01/01/03": ("01/01",), "02": ()}),
        ("root/a,root/b,a/c,b/c", {"a": (), "b": (), "c": ("a", "b")}),
        ("a/b,b/c", {"a": (), "b": ("a",), "c": ("b",)}),
        ("a,a/b,c,c/b", {"a": (), "a/b": ("a",), "c": (), "c/b": ("c",)}),
        ("a,b,c", {"a": (), "b": (), "c": ()}),
        ("a/x,b/y", {"a": (), "a/x": ("a",), "b": (), "b/y": ("b",)}),
    ],
)
def test_clus_paths_are_told_from_edges(drafted, labels, expected):
    draft = drafted(arff(labels))
    assert draft.format == "clus"
    assert parents(draft) == expected
    assert all(entry.line == 5 and entry.name == entry.label for entry in draft)


def test_the_clus_header_stops_at_the_data():
    from hilap.taxonomy.formats.clus import parse_header

    lines = iter(list(enumerate(arff("a,a/b").split("\n"), 1)))
    header = parse_header(lines, "my.arff")
    assert header.relation == "my data"
    assert header.attributes == [("a b", "numeric"), ("k", "{x,y}")]
    assert header.class_position == 1
    assert header.data_line == 8
    assert next(lines) == (9, "1,a@b,x")


@pytest.mark.parametrize(
    ("file", "labels", "edges", "levels"),
    [("funcat/cellcycle_FUN.train.arff.gz", 499, 499, 6), ("go/cellcycle_GO.train.arff.gz", 4125, 5827, 14)],
)
def test_the_papers_own_taxonomies(data_folder, file, labels, edges, levels):
    taxonomy = read(data_folder / file)
    assert len(taxonomy) == labels
    assert taxonomy.n_edges + len(taxonomy.top_labels) == edges
    assert taxonomy.depth == levels


@pytest.mark.parametrize(
    ("name", "labels", "levels"),
    [("arxiv", 114, 3), ("trove", 107, 4), ("medline", 385, 8), ("pypi_topics_sample", 58, 3)],
)
def test_the_text_sets_taxonomies(data_folder, name, labels, levels):
    taxonomy = read(data_folder / name / "taxonomy.jsonl")
    assert (len(taxonomy), taxonomy.depth) == (labels, levels)
