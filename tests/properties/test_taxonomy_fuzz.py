"""Whatever stands in a file, only our own errors come out; whatever a writer writes, its reader gives back."""

from __future__ import annotations

import contextlib
import gzip
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hilap.errors import HilapError, TaxonomyError
from hilap.taxonomy.formats.holding import depth_first
from hilap.taxonomy.graph import Taxonomy
from hilap.taxonomy.readers import FORMATS, read, read_draft, write
from tests.strategies import path_trees, prose, taxonomies, texts, words

VALID = {
    "jsonl": '{"label": "a", "name": "A", "parents": [], "definition": "The first."}\n'
    '{"label": "b", "parents": ["a"], "aliases": ["c"]}\n',
    "json": '{"format": 1, "labels": [\n{"label": "a", "name": "A", "parents": [], "definition": "x"}], '
    '"aliases": {"c": "a"}}\n',
    "edges": 'parent,child,name,definition\n,a,A,\na,b,"B, or b","The ""second"",\nnot the first."\n',
    "children": "Root\ta\tb\na\tc\td\n",
    "paths": "# Google_Product_Taxonomy_Version: 2021-09-21\n1 - A\n3 - A > B\n5 - A > B > C\n",
    "columns": "level 1\tlevel 2\tdefinition\nA\t\tThe first.\nA\tB\n\tC\t\n",
    "nested-json": '[{"name": "A", "definition": "x", "children": [{"name": "B", "id": 7}, "C"]}, {"D": {"E": null}}]',
    "nested-yaml": "- name: A\n  definition: The first.\n  children:\n  - B\n  - C: {D: ~, E: [F]}\n",
    "indented": "A\n\tB\n\t\tC\nD\n",
    "rcv1": "parent: None  child: Root  child-description: Root\nparent: Root  child: CCAT  child-description: CORP\n",
    "yelp": '[{"alias": "food", "title": "Food", "parents": []}, {"alias": "bars", "title": "B", "parents": ["food"]}]',
    "clus": "@RELATION x\n@ATTRIBUTE f numeric\n@ATTRIBUTE class hierarchical 01,01/02,01/02/03\n@DATA\n1,01/02\n",
    "obo": "format-version: 1.2\n\n[Term]\nid: A:1\nname: one\nalt_id: A:9\n\n[Term]\nid: A:2\nis_a: A:1 ! one\n"
    'relationship: part_of A:1 ! one\ndef: "Not \\"one\\"." [X:1, X:2] {a="b"} ! two\n',
    "skos": (
        "@prefix skos: <http://www.w3.org/2004/02/skos/core#> .\n@prefix : <http://x.org/> .\n"
        ':a a skos:Concept ; skos:prefLabel "A"@en ; skos:definition "The first."@en .\n'
        ":b a skos:Concept ; skos:broader :a .\n"
    ),
    "mesh": "Eye;A01.456\nFace;A01\nHead;A02\nEye;A02.100\n",
    "iab": "Relational ID System\t\t\t\nUnique ID\tParent\tName\tTier 1\n1\t\tAutos\tAutos\n2\t1\tVans\tAutos\n",
}
RDF_XML = """<?xml version="1.0"?>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:skos="http://www.w3.org/2004/02/skos/core#">
<skos:Concept rdf:about="http://x.org/a"><skos:prefLabel xml:lang="en">A</skos:prefLabel></skos:Concept>
</rdf:RDF>"""
MESH_XML = """<?xml version="1.0"?>
<DescriptorRecordSet><DescriptorRecord><DescriptorUI>D1</DescriptorUI><DescriptorName><String>Eye</String>
</DescriptorName><TreeNumberList><TreeNumber>A01</TreeNumber></TreeNumberList><ConceptList><Concept
PreferredConceptYN="Y"><ScopeNote>What sees.</ScopeNote></Concept></ConceptList></DescriptorRecord>
</DescriptorRecordSet>"""


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("fuzz") / "file"


def tried(path: Path, format: str | None) -> None:
    """Read the file; our own errors are fine, all others fail the test."""
    with contextlib.suppress(HilapError):
        read_draft(path, format).build()


def test_every_format_has_a_valid_file_here():
    assert VALID.keys() == FORMATS.keys()


@pytest.mark.parametrize("format", VALID)
def test_valid_files_are_valid_and_recognised(format, file):
    file.write_text(VALID[format])
    draft = read_draft(file)
    assert draft.format == format
    assert len(draft.build()) >= 1


@pytest.mark.parametrize("format", [*FORMATS, None])
@settings(max_examples=25)
@given(raw=st.binary(max_size=200))
def test_arbitrary_bytes_give_only_our_errors(format, file, raw):
    file.write_bytes(raw)
    tried(file, format)


@pytest.mark.parametrize("format", [*FORMATS, None])
@settings(max_examples=25)
@given(text=st.text(st.sampled_from("aAB01\t\n\r ,;:/>|-#@%{}[]\"'<>.&*!~"), max_size=120))
def test_arbitrary_text_gives_only_our_errors(format, file, text):
    file.write_text(text, newline="")
    tried(file, format)


@st.composite
def mutated(draw, valid: str) -> bytes:
    """A valid file with a few bytes cut out, doubled, replaced or put in."""
    raw = valid.encode()
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(raw)))
        rest_of_line = (raw + b"\n").index(b"\n", at) - at
        end = min(len(raw), at + draw(st.one_of(st.integers(0, 8), st.just(rest_of_line))))
        signs = st.sampled_from([raw[at:end] * 2, b"", b"\n", b"\t", b'"', b"[" * 50])
        junk = draw(st.one_of(st.binary(max_size=4), signs))
        raw = raw[:at] + junk + raw[end:]
    return raw


@pytest.mark.parametrize(
    ("format", "valid"), [*VALID.items(), ("skos", RDF_XML), ("mesh", MESH_XML)], ids=[*VALID, "skos-xml", "mesh-xml"]
)
@settings(max_examples=30)
@given(data=st.data())
def test_mutated_files_give_only_our_errors(format, valid, file, data):
    file.write_bytes(data.draw(mutated(valid)))
    tried(file, format)
    tried(file, None)


@settings(max_examples=30)
@given(cut=st.integers(0, 200), flip=st.integers(0, 255), at=st.integers(0, 100))
def test_damaged_compressed_files_give_only_our_errors(file, cut, flip, at):
    raw = bytearray(gzip.compress(VALID["jsonl"].encode() * 3))
    raw[min(at, len(raw) - 1)] = flip
    file.write_bytes(bytes(raw[: len(raw) - cut]))
    tried(file, None)


# -- what is written can be read --------------------------------------------------------------------------------------


def written(taxonomy: Taxonomy, path: Path, format: str, **options: object) -> bool:
    """Write, or be refused because the format cannot hold the taxonomy."""
    try:
        write(taxonomy, path, format, **options)
    except TaxonomyError as error:
        if "cannot hold this taxonomy" not in str(error):
            raise
        return False
    return True


def assert_same(taxonomy: Taxonomy, again: Taxonomy) -> None:
    assert again.canonical() == taxonomy.canonical()


@pytest.mark.parametrize("format", ["jsonl", "json"])
@settings(max_examples=30)
@given(
    taxonomy=taxonomies(
        labels=texts(),
        names=st.text(st.characters(exclude_categories=["Cc", "Cs"])),
        aliases=True,
        definitions=prose(),
    )
)
def test_our_own_formats_lose_nothing_and_are_recognised(format, file, taxonomy):
    write(taxonomy, file, format)
    assert_same(taxonomy, read(file))
    assert read_draft(file).format == format


@pytest.mark.parametrize("format", ["yelp", "rcv1"])
@settings(max_examples=30)
@given(taxonomy=taxonomies(labels=words(), names=texts()))
def test_formats_for_dags_with_names_lose_nothing(format, file, taxonomy):
    assume(written(taxonomy, file, format))
    assert_same(taxonomy, read(file))
    assert read_draft(file).format == format


@pytest.mark.parametrize(
    "options",
    [{}, {"delimiter": ","}, {"delimiter": ";", "direction": "child-parent"}, {"root": "Root"}],
)
@settings(max_examples=30)
@given(taxonomy=taxonomies(labels=words(), names=texts(), definitions=prose()))
def test_edges_lose_neither_names_nor_definitions(options, file, taxonomy):
    assume(written(taxonomy, file, "edges", **options))
    assert_same(taxonomy, read(file))
    assert read_draft(file).format == "edges"


@pytest.mark.parametrize("format", ["children", "clus", "edges", "obo", "rcv1", "yelp"])
@settings(max_examples=30)
@given(taxonomy=taxonomies(labels=words()))
def test_formats_for_dags_of_ids_lose_nothing(format, file, taxonomy):
    write(taxonomy, file, format)
    assert_same(taxonomy, read(file, format))


@settings(max_examples=30)
@given(taxonomy=taxonomies(labels=words(), names=texts(), aliases=True, definitions=prose()))
def test_obo_keeps_aliases_odd_names_and_definitions(file, taxonomy):
    write(taxonomy, file, "obo")
    assert_same(taxonomy, read(file))


@settings(max_examples=30)
@given(taxonomy=taxonomies(dag=False, labels=words(), names=texts()))
def test_the_iab_table_loses_nothing(file, taxonomy):
    write(taxonomy, file, "iab")
    assert_same(taxonomy, read(file))
    assert read_draft(file).format == "iab"


@pytest.mark.parametrize("format", ["nested-json", "nested-yaml"])
@settings(max_examples=30)
@given(taxonomy=taxonomies(dag=False, labels=words(), names=texts(), definitions=prose()))
def test_nested_formats_lose_nothing(format, file, taxonomy):
    write(taxonomy, file, format)
    assert_same(taxonomy, read(file))
    assert read_draft(file).format == format


@pytest.mark.parametrize("format", ["paths", "columns", "indented"])
@settings(max_examples=30)
@given(taxonomy=path_trees())
def test_formats_for_trees_of_paths_lose_nothing(format, file, taxonomy):
    write(taxonomy, file, format)
    assert_same(taxonomy, read(file, format))
    assume(not (format == "paths" and taxonomy.depth == 1))  # a plain list has no sign of its format
    assume(not (format == "indented" and taxonomy.depth == 1))
    assert read_draft(file).format == format


@pytest.mark.parametrize("delimiter", ["\t", ",", ";"])
@settings(max_examples=30)
@given(taxonomy=path_trees(definitions=prose()))
def test_columns_keep_definitions_in_one_of_their_own(delimiter, file, taxonomy):
    write(taxonomy, file, "columns", delimiter=delimiter)
    assert_same(taxonomy, read(file))
    assert read_draft(file).format == "columns"


@pytest.mark.parametrize("format", ["paths", "columns"])
@settings(max_examples=30)
@given(taxonomy=taxonomies(dag=False, labels=words(), names=texts()))
def test_numbered_paths_keep_ids_of_any_kind(format, file, taxonomy):
    assume(written(taxonomy, file, format, numbered=True))
    assert_same(taxonomy, read(file, format, numbered=True))


ODD = st.one_of(
    taxonomies(labels=texts(), names=texts(), aliases=True, max_labels=5),
    taxonomies(labels=texts(), names=texts(), max_labels=5),
    taxonomies(labels=texts(), max_labels=5),
    taxonomies(labels=texts(), dag=False, max_labels=5),
    taxonomies(labels=texts(), dag=False, max_labels=5, definitions=prose()),
    path_trees(max_labels=5, names=texts(max_size=5), definitions=prose()),
    path_trees(max_labels=5, names=texts(max_size=5)),
)


@pytest.mark.parametrize("format", [name for name, entry in FORMATS.items() if entry.writer])
@settings(max_examples=30)
@given(taxonomy=ODD)
def test_a_writer_refuses_what_it_would_lose(format, file, taxonomy):
    """Random ids and names full of signs: either a clear refusal, or everything comes back."""
    if written(taxonomy, file, format):
        assert_same(taxonomy, read(file, format))


@settings(max_examples=25)
@given(
    taxonomy=taxonomies(labels=texts(), names=words(), definitions=prose()),
    syntax=st.sampled_from(["turtle", "nt", "xml"]),
)
def test_skos_with_notations_keeps_ids_and_definitions_of_any_kind(file, taxonomy, syntax):
    assume(written(taxonomy, file, "skos", ids="notation", base="http://x.org/", syntax=syntax))
    assert_same(taxonomy, read(file, "skos", ids="notation"))
    assert read_draft(file, ids="notation").format == "skos"


@settings(max_examples=30)
@given(taxonomy=taxonomies(dag=False))
def test_depth_first_visits_every_label_once_below_its_parent(taxonomy):
    path: list[str] = []
    seen = []
    for label, depth in depth_first(taxonomy):
        path[depth:] = [label]
        seen.append(label)
        assert tuple(path) == taxonomy.path(label)
    assert sorted(seen) == sorted(taxonomy.labels)
