"""What labels mean: definitions in a taxonomy, in every format that has a place for them, and in saved models."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

import hilap
from hilap.corpus import Examples
from hilap.errors import SettingError, TaxonomyError
from hilap.taxonomy import Taxonomy
from hilap.taxonomy.draft import Draft
from hilap.taxonomy.draw import svg
from hilap.taxonomy.readers import FORMATS, read, read_draft, write

SKOS = "@prefix skos: <http://www.w3.org/2004/02/skos/core#> .\n@prefix : <http://x.org/> .\n"
WITHOUT_A_PLACE = ["children", "clus", "iab", "indented", "paths", "rcv1", "yelp"]


@pytest.fixture
def drafted(tmp_path):
    """Write a text to a file and read it."""

    def draft(text: str, format: str | None = None, **options: object) -> Draft:
        (tmp_path / "FILE").write_bytes(text.encode())
        return read_draft(tmp_path / "FILE", format, **options)

    return draft


@pytest.fixture
def complaint(drafted, tmp_path):
    """The sentence that a file gets, with its name as `FILE`."""

    def of(text: str, format: str) -> str:
        with pytest.raises(TaxonomyError) as error:
            drafted(text, format)
        return str(error.value).replace(str(tmp_path / "FILE"), "FILE")

    return of


@pytest.fixture
def meant() -> Taxonomy:
    """A tree of which one label has a definition."""
    return Taxonomy.of({"food": [], "bars": ["food"]}, definitions={"bars": 'Where "one" drinks, or\n\tsits.'})


def definitions(draft: Draft) -> dict[str, str]:
    return {entry.label: entry.definition for entry in draft}


# -- in a taxonomy -----------------------------------------------------------------------------------------------------


def test_a_label_without_a_definition_has_an_empty_one(meant, tree):
    assert meant.definition("food") == ""
    assert tree.definitions == ("",) * len(tree)


def test_a_definition_is_kept_on_one_line(meant):
    assert meant.definition("bars") == 'Where "one" drinks, or sits.'


def test_a_record_has_a_definition_only_where_the_label_has_one(meant):
    assert [*meant.records()] == [
        {"label": "food", "name": "food", "parents": []},
        {"label": "bars", "name": "bars", "parents": ["food"], "definition": 'Where "one" drinks, or sits.'},
    ]


def test_taxonomies_that_differ_in_a_definition_are_not_equal(meant):
    other = Taxonomy.of({"food": [], "bars": ["food"]}, definitions={"food": 'Where "one" drinks, or sits.'})
    assert other != meant
    assert other.fingerprint != meant.fingerprint


def test_fingerprints_from_before_there_were_definitions_stay_true():
    taxonomy = Taxonomy.of({"food": [], "bars": ["food"]}, {"bars": "Bars"}, {"pubs": "bars"})
    assert taxonomy.fingerprint == "1635ed85bbe3b4806783ad6e5b5437b54a616552102cc2f089d6e8b39c29541a"


def test_json_from_before_there_were_definitions_is_read():
    value = {"format": 1, "labels": [{"label": "a", "name": "A", "parents": []}], "aliases": {}}
    assert Taxonomy.from_json(value).definitions == ("",)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Taxonomy(["a"], [[]], definitions=[3]), "definitions must be strings, got 3"),
        (lambda: Taxonomy(["a"], [[]], definitions=["x", "y"]),
         "one definition for each of 1 labels is needed (empty for none), got 2"),
        (lambda: Taxonomy.of({"a": []}, definitions={"b": "x"}),
         "a definition is given for 'b', which is not a label of the taxonomy"),
        (lambda: Taxonomy.of({"a": []}).extended({"b": []}, definitions={"a": "x"}),
         "a definition is given for 'a', which is not among the labels to be added"),
        (lambda: Taxonomy.from_json(
            {"format": 1, "labels": [{"label": "a", "name": "A", "parents": [], "definition": ["x"]}]}
        ), "the definition of label 'a' must be a text, got ['x']"),
    ],
)  # fmt: skip
def test_definitions_that_cannot_be(make, message):
    with pytest.raises(TaxonomyError) as error:
        make()
    assert str(error.value) == message


def test_a_picture_says_what_a_label_means(meant):
    assert '<title>bars: Where "one" drinks, or sits.</title>' in svg(meant)
    assert "<title>food</title>" in svg(meant)


def test_a_saved_model_keeps_definitions(meant, tmp_path):
    examples = Examples.of(meant, [["food"], ["bars"]] * 4, texts=["eat", "drink"] * 4)
    small = {
        "encoder_options": {"hidden": (4,)},
        "hidden": 4,
        "width": 4,
        "supervised_epochs": 1,
        "reinforced_epochs": 1,
    }
    hilap.HiLAPClassifier(encoder="tfidf", **small).fit(examples, valid=examples).save(tmp_path / "model")
    assert hilap.load(tmp_path / "model").taxonomy_ == meant


# -- files written by hand ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("jsonl", '{"label": "a", "parents": [], "definition": "Big\\n one."}\n'
                  '{"label": "b", "parents": [], "definition": null}\n'),
        ("json", '[{"label": "a", "parents": [], "definition": "Big one."}, {"label": "b", "parents": []}]'),
        ("edges", "parent\tchild\tdefinition\n\ta\tBig one.\na\tb\t\n"),
        ("edges", 'id,Scope_Note,parent\na,"Big\none.",\nb,,a\n'),
        ("edges", "id;description;parent\na;Big one.\nb;;a\n"),
        ("columns", "level 1,id,level 2,definition\nA,a,,Big  one.\nA,b,B\n"),
        ("nested-json", '[{"id": "a", "definition": "Big one."}, {"id": "b", "definition": null}]'),
        ("nested-json", '[{"id": "a", "description": "Big one."}, "b"]'),
        ("nested-yaml", "- id: a\n  definition: >\n    Big\n    one.\n- id: b\n  definition:\n"),
        ("obo", '[Term]\nid: a\ndef: "Big\\none." [GOC:x "y", PMID:1] {s="t"} ! x\n[Term]\nid: b\ndef: "" []\n'),
    ],
)  # fmt: skip
def test_definitions_are_read(drafted, format, text):
    draft = drafted(text)
    assert draft.format == format
    assert definitions(draft) == {"a": "Big one.", "b": ""}
    assert draft.remarks == []


def test_obo_definitions_agree_with_obonet(tmp_path):
    obonet = pytest.importorskip("obonet")
    taxonomy = Taxonomy.of({"X:1": [], "X:2": ["X:1"]}, definitions={"X:1": "A ! {b} [c] \\ d.", "X:2": "Not so {odd}"})
    write(taxonomy, tmp_path / "x.obo")
    said = {node: data["def"] for node, data in obonet.read_obo(str(tmp_path / "x.obo")).nodes(data=True)}
    assert said == {"X:1": r'"A \! \{b\} \[c\] \\ d." []', "X:2": r'"Not so \{odd\}" []'}
    assert read(tmp_path / "x.obo") == taxonomy


def test_other_tags_of_an_obo_term_may_hold_what_looks_like_a_definition(drafted):
    draft = drafted('[Term]\nid: a\nsynonym: "x" []\ncomment: def: "y" []\n[Typedef]\nid: r\ndef: "z" []\n')
    assert definitions(draft) == {"a": ""}


def test_rows_of_a_table_may_define_a_label_once_or_alike(drafted):
    draft = drafted("parent,child,definition\n,a,\n,b,\na,c,\nb,c,Third.\n,c,Third.\n")
    assert definitions(draft) == {"a": "", "b": "", "c": "Third."}
    assert [remark for _, remark in draft.remarks] == ["label 'c' stands here again without a parent"]


def test_the_first_of_two_definitions_in_a_table_is_kept_with_a_remark(drafted):
    draft = drafted("parent,child,definition\na,c,Third.\nb,c,3rd.\n")
    assert definitions(draft)["c"] == "Third."
    assert draft.remarks == [(3, "the definition of 'c' is not that of line 2, which is kept")]


def test_a_description_that_is_no_text_is_left_out_with_a_remark(drafted):
    draft = drafted('[{"name": "a", "description": {"en": "x"}}]')
    assert definitions(draft) == {"a": ""}
    assert draft.remarks[0][1].startswith("the key 'description' is not read")


def test_children_may_stand_below_a_key_called_definition(drafted):
    draft = drafted('[{"name": "a", "definition": ["b"]}]', "nested-json", children="definition")
    assert definitions(draft) == {"a": "", "a > b": ""}


THESAURUS = """
:1 a skos:Concept ; skos:prefLabel "One"@en ; skos:definition "First."@en , "Erste."@de .
:2 a skos:Concept ; skos:prefLabel "Two"@en ; skos:definition "Plain." , "Autre."@fr .
:3 a skos:Concept ; skos:prefLabel "Three"@en ; skos:definition "Dritte."@de .
:4 a skos:Concept ; skos:prefLabel "Four"@en ; skos:definition "B."@en , \"\"\"A.
  Long.\"\"\"@en .
:5 a skos:Concept ; skos:prefLabel "Five"@en ; skos:definition [ rdf:value "Note."@en , "Notiz."@de ] .
:6 a skos:Concept ; skos:prefLabel "Six"@en ; skos:definition :elsewhere , " "@en .
"""


def thesaurus(drafted, **options: object) -> Draft:
    pytest.importorskip("rdflib")
    return drafted(SKOS + "@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .\n" + THESAURUS, **options)


def test_skos_definitions_in_the_language_or_in_none(drafted):
    draft = thesaurus(drafted, ids="local")
    assert definitions(draft) == {"1": "First.", "2": "Plain.", "3": "", "4": "A. Long. B.", "5": "Note.", "6": ""}
    remark = "the definitions of 1 concept are not in 'en' and left out: first 'http://x.org/3'"
    assert [said for _, said in draft.remarks] == [remark]


def test_skos_definitions_in_another_language(drafted):
    found = definitions(thesaurus(drafted, ids="local", language="de"))
    assert found == {"1": "Erste.", "2": "Plain.", "3": "Dritte.", "4": "", "5": "Notiz.", "6": ""}


def test_a_mesh_descriptor_means_what_its_preferred_concept_does(drafted):
    concept = '<Concept PreferredConceptYN="{}"><ScopeNote>{}\n</ScopeNote></Concept>'
    draft = drafted(
        "<DescriptorRecordSet><DescriptorRecord><DescriptorUI>D1</DescriptorUI>"
        "<TreeNumberList><TreeNumber>A01</TreeNumber></TreeNumberList><ConceptList>"
        + concept.format("N", "Another.") + concept.format("Y", "What sees &amp;\n blinks.") + concept.format("N", "x")
        + "</ConceptList></DescriptorRecord><DescriptorRecord><DescriptorUI>D2</DescriptorUI>"
        "<TreeNumberList><TreeNumber>A02</TreeNumber></TreeNumberList></DescriptorRecord></DescriptorRecordSet>"
    )  # fmt: skip
    assert definitions(draft) == {"D1": "What sees & blinks.", "D2": ""}


# -- what is wrong -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("format", "text", "message"),
    [
        ("jsonl", '{"label": "a", "parents": [], "definition": ["x"]}',
         "FILE:1: definition must be a text, got a list with texts"),
        ("jsonl", '{"label": "a", "parents": [], "definition": true}',
         "FILE:1: definition must be a text, got true or false"),
        ("jsonl", '{"label": "a", "parents": [], "definition": "\\u001b[1m"}',
         "FILE:1: definition '\\x1b[1m' has a control character"),
        ("json", '[\n{"label": "a", "parents": [], "definition": {"en": "x"}}]',
         "FILE:2: definition must be a text, got an object"),
        ("nested-json", '[{"name": "a",\n"definition": ["x"]}]', "FILE:2: definition must be a text, got a list"),
        ("nested-yaml", "- name: a\n  definition: {en: x}\n", "FILE:2: definition must be a text, got an object"),
        ("edges", "parent,child,definition\n,a,\x07\n", "FILE:2: definition '\\x07' has a control character"),
        ("columns", "level 1,definition\na,\x07\n", "FILE:2: definition '\\x07' has a control character"),
        ("obo", "[Term]\nid: a\ndef: Big one.\n",
         "FILE:3: a definition in quotes is expected, as in def: \"Text.\" [], got 'Big one.'"),
        ("obo", '[Term]\nid: a\ndef: "Big one.\n', "FILE:3: a definition in quotes is expected"),
        ("obo", '[Term]\nid: a\ndef: "x" []\ndef: "y" []\n', "FILE:4: a second def in the term 'a'; remove one"),
        ("jsonl", '{"label": "a", "parents": [], "definition": "' + "x" * 1_000_001 + '"}',
         "is longer than 1,000,000 characters; is this the right file and format?"),
    ],
)  # fmt: skip
def test_definitions_that_are_none(complaint, format, text, message):
    assert message in complaint(text, format)


# -- writing -----------------------------------------------------------------------------------------------------------


def test_every_format_either_holds_definitions_or_refuses_them(meant, tmp_path):
    """The list above is complete, and agrees with what the documents say."""
    text = (Path(__file__).parents[2] / "docs" / "formats" / "taxonomies.md").read_text()
    options = {"skos": {"ids": "notation", "base": "http://x.org/"}, "columns": {"ids": "name"}}
    for name in FORMATS.keys() - {"mesh"}:
        row = next(line for line in text.splitlines() if line.startswith(f"| [`{name}`]"))
        assert row.endswith("| no |" if name in WITHOUT_A_PLACE else "| yes |"), name
        if name in WITHOUT_A_PLACE:
            with pytest.raises(TaxonomyError, match="it has no definitions, and label 'bars' has one"):
                write(meant, tmp_path / name, name)
        else:
            write(meant, tmp_path / name, name, **options.get(name, {}))


@pytest.mark.parametrize("format", WITHOUT_A_PLACE)
def test_definitions_are_left_out_where_that_is_asked_for(meant, tmp_path, format):
    options = {"ids": "name"} if format in ("indented", "paths") else {}
    with pytest.raises(TaxonomyError, match="write it as jsonl, or leave them out with definitions=False"):
        write(meant, tmp_path / "file", format, **options)
    write(meant, tmp_path / "file", format, definitions=False, **options)
    again = read(tmp_path / "file", format, **options)
    assert {label: again.parents(label) for label in again} == {"food": (), "bars": ("food",)}
    assert not any(again.definitions)


def test_leaving_definitions_out_is_yes_or_no(meant, tmp_path):
    with pytest.raises(SettingError, match="definitions must be True or False, got 'no'"):
        write(meant, tmp_path / "file.jsonl", definitions="no")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("x.tsv", 'parent\tchild\tdefinition\n\tfood\t\nfood\tbars\tWhere "one" drinks, or sits.\n'),
        ("x.csv", 'parent,child,definition\n,food,\nfood,bars,"Where ""one"" drinks, or sits."\n'),
        (
            "x.yaml",
            '- id: "food"\n  name: "food"\n  children:\n'
            '    - id: "bars"\n      name: "bars"\n      definition: "Where \\"one\\" drinks, or sits."\n',
        ),
        (
            "x.obo",
            "format-version: 1.2\n\n[Term]\nid: food\nname: food\n"
            '\n[Term]\nid: bars\nname: bars\ndef: "Where \\"one\\" drinks, or sits." []\nis_a: food\n',
        ),
    ],
)
def test_how_definitions_are_written(meant, tmp_path, name, expected):
    write(meant, tmp_path / name)
    assert (tmp_path / name).read_text() == expected


def test_a_label_with_several_parents_is_defined_on_its_first_row_alone(tmp_path):
    write(Taxonomy.of({"a": [], "b": [], "c": ["a", "b"]}, definitions={"c": "Third."}), tmp_path / "x.csv")
    assert (tmp_path / "x.csv").read_text().splitlines()[3:] == ["a,c,Third.", "b,c,"]


@pytest.mark.parametrize(
    ("name", "format"), [("x.jsonl", None), ("x.csv", None), ("x.tsv", None), ("x.obo", None), ("x", "nested-json")]
)
def test_very_long_definitions_are_fine(tmp_path, name, format):
    taxonomy = Taxonomy.of({"a": []}, definitions={"a": 'Very "long", and 漢. ' * 20_000})
    before = csv.field_size_limit()
    write(taxonomy, tmp_path / name, format)
    assert read(tmp_path / name) == taxonomy
    assert csv.field_size_limit() == before


@pytest.mark.parametrize("text", ["\x00", "half \ud800", "x" * 1_000_001])
def test_definitions_that_no_file_could_give_back_are_not_written(tmp_path, text):
    with pytest.raises(TaxonomyError, match="this taxonomy cannot be written: definition '"):
        write(Taxonomy.of({"a": []}, definitions={"a": text}), tmp_path / "x.jsonl")
    assert not list(tmp_path.iterdir())


def test_what_xml_cannot_hold_is_refused_and_turtle_holds_it(tmp_path):
    pytest.importorskip("rdflib")
    taxonomy = Taxonomy.of({"http://x.org/a": []}, definitions={"http://x.org/a": "odd \ufffe"})
    with pytest.raises(TaxonomyError, match="has a character that XML cannot hold; write it as Turtle"):
        write(taxonomy, tmp_path / "x.rdf")
    write(taxonomy, tmp_path / "x.ttl")
    assert read(tmp_path / "x.ttl") == taxonomy


def test_other_readers_find_the_definitions(meant, tmp_path):
    yaml, rdflib = pytest.importorskip("yaml"), pytest.importorskip("rdflib")
    said = meant.definition("bars")
    write(meant, tmp_path / "x.yaml")
    assert yaml.safe_load((tmp_path / "x.yaml").read_text())[0]["children"][0]["definition"] == said
    write(meant, tmp_path / "x.json", "nested-json")
    assert json.loads((tmp_path / "x.json").read_text())[0]["children"][0]["definition"] == said
    write(meant, tmp_path / "x.csv")
    with (tmp_path / "x.csv").open(newline="") as stream:
        assert [row["definition"] for row in csv.DictReader(stream)] == ["", said]
    write(meant, tmp_path / "x.rdf", ids="notation", base="http://x.org/")
    graph = rdflib.Graph().parse(tmp_path / "x.rdf")
    assert [*graph.objects(None, rdflib.SKOS.definition)] == [rdflib.Literal(said, lang="en")]
