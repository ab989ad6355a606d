"""Bad taxonomy files: each gets one sentence that says what is wrong, on which line, and what to do."""

from __future__ import annotations

import gzip
import time

import pytest

from hilap.errors import MissingExtraError, TaxonomyError
from hilap.taxonomy.readers import FORMATS, read, read_draft


@pytest.fixture
def complaint(tmp_path, monkeypatch):
    """The sentence that a file gets, with its name as `FILE`."""
    monkeypatch.chdir(tmp_path)

    def of(content: str | bytes, format: str | None = None, **options: object) -> str:
        (tmp_path / "FILE").write_bytes(content if isinstance(content, bytes) else content.encode())
        with pytest.raises(TaxonomyError) as error:
            read("FILE", format, **options)
        return str(error.value)

    return of


ROW = '{"label": "a", "name": "A", "parents": []}\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (ROW + '{"label": "b", "parents": ["b"]}\n', "FILE:2: the taxonomy has a cycle: 'b' -> 'b'"),
        (ROW + '{"label": "b", "parents": ["aa"]}\n', "FILE:2: parent 'aa' of label 'b' is not in the taxonomy"),
        (ROW + ROW, "FILE:2: label 'a' is given twice (first on line 1)"),
        (ROW + '{"label": "b", \n', "FILE:2: this is not JSON ("),
        (ROW + "[]\n", 'FILE:2: an object {"label", "name", "parents"} is expected, got an empty list'),
        (ROW + '{"name": "b", "parents": []}\n', "FILE:2: 'label' is missing; a line is {"),
        (ROW + '{"label": "b", "parent": ["a"]}\n', "FILE:2: 'parents' is missing; is 'parent' meant?"),
        (ROW + '{"label": "b", "parents": "a"}\n', "FILE:2: parents must be a list of ids ([] for none), got the"),
        (ROW + '{"label": "b", "parents": [null]}\n', "list of ids ([] for none), got a list with null"),
        (ROW + '{"label": null, "parents": []}\n', "FILE:2: label must be a text, got null"),
        (ROW + '{"label": "", "parents": []}\n', "FILE:2: a label is empty; every label needs an id"),
        (ROW + '{"label": "b\\n", "parents": []}\n', "FILE:2: label 'b\\n' has a control character"),
        (ROW + '{"label": "b", "name": "\\u001b[1m", "parents": []}\n', "FILE:2: name '\\x1b[1m' has a control"),
        (ROW + '{"label": "\\ud800", "parents": []}\n', "FILE:2: label '\\ud800' has a control character"),
        (ROW + '{"label": NaN, "parents": []}\n', "FILE:2: NaN is no JSON value"),
        (ROW + '{"label": "b", "label": "c", "parents": []}\n', "FILE:2: the key 'label' stands twice in one object"),
        (ROW + '{"label": "b", "parents": ' + "[" * 100_000 + "\n", "FILE:2: the line is nested too deeply"),
        (ROW + '{"label": "b", "parents": [], "aliases": ["x"]}\n{"label": "c", "parents": [], "aliases": ["x"]}\n',
         "FILE:3: 'x' is given as another id of 'b' and of 'c'; remove one"),
        (ROW + '{"label": "' + "x" * 1001 + '", "parents": []}\n', "is longer than 1,000 characters"),
    ],
)  # fmt: skip
def test_bad_lines_of_jsonl(complaint, text, message):
    assert message in complaint(text, "jsonl")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"format": 1, "labels": 3}', 'FILE:1: an object with "format": 1 and a list of "labels" is expected'),
        ('{"format": 2,\n"labels": []}', "FILE:1: format 1 is read here, got '2'"),
        ('{"format": 1, "labels": [], "aliases": []}', "FILE:1: aliases must be an object"),
        ('{"format": 1, "labels": [\n{"label": []}]}', "FILE:2: label must be a text, got an empty list"),
        ('{"format": 1, "labels": [], "aliases": {"a": null}}', "FILE:1: alias 'a' must give the id of a label"),
        ('{"format": 1, "labels": [],\n}', "FILE:2: this is not JSON: a key in double quotes is expected, got '}'"),
        ('{"format": 1 "labels"}', "FILE:1: this is not JSON: ',' or '}' is expected, got"),
        ('{"format": 1,\n\n"labels": [1 2]}', "FILE:3: this is not JSON: ',' or ']' is expected, got '2]}'"),
        ('{"format" 1}', "FILE:1: this is not JSON: ':' is expected after the key 'format'"),
        ('{"format": 1,\n', "FILE:2: this is not JSON: a key in double quotes is expected, got the end of the file"),
        ('{"format": nan}', "FILE:1: this is not JSON: a JSON value is expected, got 'nan}'"),
        ('{"format": "x\ny"}', "FILE:1: this is not JSON (Invalid control character"),
        ("[] []", "FILE:1: this is not JSON: the value has ended, but the file goes on"),
        ('{"a": 1, "a": 2}', "FILE:1: the key 'a' stands twice in one object; remove one"),
        ("[" * 100_000, "FILE:1: the file is nested more than 210 deep"),
    ],
)
def test_bad_json_documents(complaint, text, message):
    assert message in complaint(text, "json")


@pytest.mark.parametrize(
    ("format", "text", "message"),
    [
        ("edges", "a\tb\tc\n", "FILE:1: a parent and a child are expected, got 3 cells; if a row is a parent with all"),
        ("edges", "parent,child\na,\n", "FILE:2: the child is empty; a row is a parent and a child, got"),
        ("edges", 'a,"b\nc,d\n', "FILE:1: the row cannot be read as CSV (unexpected end of data); check its quotes"),
        ("edges", "parent,child\na,b\nb,a\n", "FILE:3: the taxonomy has a cycle: 'a' -> 'b' -> 'a'"),
        ("edges", "child,parent,name\na,,A\nb,c,B\n", "FILE:3: parent 'c' of label 'b' is not in the taxonomy"),
        ("edges", "id,name\n1,A\n", "FILE:1: there is no column for the parent, such as 'parent'; the columns"),
        ("children", "Root\ta\n\tb\n", "FILE:2: the parent in the first column is empty"),
        ("paths", "A > B\nA >  > C\n", "FILE:2: a part of the path 'A >  > C' is empty; is ' > ' the separator?"),
        ("paths", "A > B\nA > B\n", "FILE:2: label 'A > B' is given twice (first on line 1)"),
        ("paths", "/".join("a" * 101), "FILE:1: the label is deeper than 100 levels"),
        ("columns", "A,B,C\nA,,C\n", "FILE:2: a level is empty between others, or nothing stands above it"),
        ("columns", ",B\n", "FILE:1: a level is empty between others, or nothing stands above it"),
        ("nested-json", '{"A": "B"}', "FILE:1: children are a list, an object, or nothing, got a text ('B')"),
        ("nested-json", '[[1]]', "FILE:1: a label is a text or an object, got a list"),
        ("nested-json", '[true]', "FILE:1: a label is a text or an object, got true or false"),
        ("nested-json", '[\n{"children": []}]', "FILE:2: an object with children needs a name, below one of the keys"),
        ("nested-json", '[\n{"name": ""}]', "FILE:2: the name of a label is empty"),
        ("nested-yaml", "a: &x [b]\nc: *x\n", "FILE:2: the YAML alias *x is not read"),
        ("nested-yaml", "a: !!python/object:os.system [b]\n", "FILE:1: the YAML tag 'tag:yaml.org,2002:python/ob"),
        ("nested-yaml", "a:\n  - b\n c\n", "FILE:3: this is not YAML ("),
        ("nested-yaml", "a: b\na: c\n", "FILE:2: the key 'a' stands twice in one object"),
        ("nested-yaml", "[a]: b\n", "FILE:1: a key must be a text, got a list"),
        ("nested-yaml", "- a\n---\n- b\n", "FILE:3: a second document begins"),
        ("nested-yaml", "[" * 5_000, "FILE:1: the file is nested more than 210 deep"),
        ("indented", "A\n\tB\n\t\t\tC\n", "FILE:3: the line is indented by more than one tab, so a level is missing"),
        ("indented", "A\n    B\n  C\n", "FILE:3: the line steps back to a column where no line above it stands: 'C'"),
        ("indented", "A\n\tB\n        C\n", "FILE:3: tabs and blanks are mixed in the indentation"),
        ("rcv1", "parent: Root child: A\n", "FILE:1: 'parent: X child: Y child-description: Z' is expected, got"),
        ("yelp", "{}", "FILE:1: a list of categories is expected, got an object"),
        ("yelp", "[1]", 'FILE:1: a category {"alias", "title", "parents"} is expected, got a text'),
        ("yelp", '[{"alias": "a"}]', "FILE:1: a category needs a text below 'title', got nothing"),
        ("yelp", '[{"alias": "a", "title": "A"}]', "FILE:1: category 'a' needs parents, a list of aliases"),
        ("clus", "@RELATION x\n", "FILE:1: the file ends before @DATA"),
        ("clus", "@RELATION x\n@DATA\n", "FILE:2: there is no attribute with labels"),
        ("clus", "@RELATION x\nfoo\n", "FILE:2: @RELATION, @ATTRIBUTE or @DATA is expected, got 'foo'"),
        ("clus", "@ATTRIBUTE c hierarchical a,,b\n@DATA\n", "FILE:1: an entry of the hierarchical attribute is empty"),
        ("clus", "@ATTRIBUTE c hierarchical a\n@ATTRIBUTE d hierarchical a\n", "FILE:2: a second hierarchical"),
        ("obo", "[Term]\nname: x\n", "FILE:1: a [Term] without an id"),
        ("obo", "[Term]\nid: a\nid: b\n", "FILE:3: a second id in the term 'a'; is '[Term]' missing above it?"),
        ("obo", "[Term]\nid a\n", "FILE:2: 'tag: value' or a stanza such as [Term] is expected, got 'id a'"),
        ("obo", "[Term]\nid: a\nalt_id: x\n[Term]\nid: b\nalt_id: x\n", "FILE:6: alt_id 'x' is given for 'a' too"),
        ("obo", "[Term]\nid: a\nis_a: z\n", "FILE:1: parent 'z' of label 'a' is not in the taxonomy"),
        ("obo", "[Term]\nid: a\nrelationship:\n", "FILE:3: a relation and a term are expected, as in part_of GO:00000"),
        ("mesh", "Eye\n", "FILE:1: 'name;tree number', as in 'Eye;A01.456.505.420', is expected, got 'Eye'"),
        ("mesh", "Eye;A01\nEar;A01\n", "FILE:2: tree number A01 stands on line 1 already"),
        ("mesh", "Eye;A01.100\n", "FILE:1: parent 'A01' of label 'Eye' is not in the taxonomy"),
        ("mesh", "<a>\n<b></a>", "FILE:1: <DescriptorRecordSet> is expected, got <a>"),
        ("mesh", "<DescriptorRecordSet>\n<x>", "FILE:2: this is not XML (no element found)"),
        ("iab", "a\tb\n", "FILE:1: no header with the columns 'Unique ID', 'Parent' and 'Name'"),
        ("iab", "Unique ID\tParent\tName\n1\t\t\n", "FILE:2: a row needs a Unique ID and a Name"),
    ],
)  # fmt: skip
def test_bad_lines_of_every_format(complaint, format, text, message):
    assert message in complaint(text, format)


SKOS = "@prefix skos: <http://www.w3.org/2004/02/skos/core#> .\n@prefix : <http://x.org/> .\n"


def test_broken_turtle_names_its_line(complaint):
    assert "FILE:3: this cannot be read as RDF in turtle (" in complaint(SKOS + ":a a a a .\n", "skos")


def test_broken_rdf_xml_names_its_line(complaint):
    assert "FILE:2: this cannot be read as RDF in xml (" in complaint("<?xml version='1.0'?>\n<rdf:RDF", "skos")


def test_turtle_nested_too_deeply_is_refused(complaint):
    assert "nested too deeply" in complaint(SKOS + ":a :b " + "(" * 20_000, "skos")


def test_a_concept_with_a_parent_outside_the_file_is_reported_with_its_line(complaint):
    message = complaint(SKOS + ":a a skos:Concept .\n:b a skos:Concept ; skos:broader :z .\n")
    assert message.startswith("FILE:4: parent 'http://x.org/z' of label 'http://x.org/b' is not in the taxonomy")


def test_concepts_without_one_notation_cannot_have_it_as_id(complaint):
    message = complaint(SKOS + ":a a skos:Concept .\n", ids="notation")
    assert message.startswith("FILE:3: 'http://x.org/a' has 0 notations, so none can be its id; read it with ids=")


BOMB = (
    '<?xml version="1.0"?>\n<!DOCTYPE {top} [<!ENTITY a "aaaaaaaaaa">\n<!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>\n'
    "<{top}>&b;</{top}>"
)


@pytest.mark.parametrize(
    ("format", "top", "message"),
    [
        ("skos", "rdf:RDF", "FILE:2: the file declares XML entities, which are refused"),
        ("mesh", "DescriptorRecordSet", "FILE:2: the file declares the XML entity 'a', which is refused"),
    ],
)
def test_xml_entities_are_refused(complaint, format, top, message):
    assert message in complaint(BOMB.format(top=top), format)


def test_external_xml_entities_are_refused_unread(complaint, tmp_path):
    (tmp_path / "secret").write_text("secret")
    top = "DescriptorRecordSet"
    text = f'<!DOCTYPE {top} [<!ENTITY x SYSTEM "{tmp_path}/secret">]>\n<{top}>&x;</{top}>'
    for format in ("mesh", "skos"):
        message = complaint(text, format)
        assert "refused" in message
        assert "secret" not in message


@pytest.mark.parametrize("format", [None, *FORMATS])
def test_an_empty_file_is_refused(complaint, format):
    for text in ("", "\n \n", "# nothing here\n"):
        assert complaint(text, format).startswith("FILE")


def test_an_empty_file_is_called_empty(complaint):
    assert complaint("\n") == "FILE: the file is empty, or has only comments; a taxonomy has a label at least"


@pytest.mark.parametrize("format", [None, *FORMATS])
def test_invalid_utf8_is_named_with_its_line(complaint, format):
    text = (
        b"@RELATION x\n\xff\n"
        if format == "clus"
        else b"\n\xff\n"
        if format
        else b'{"label": "a", "parents": []}\n\xff\n'
    )
    assert complaint(text, format) == "FILE:2: not valid UTF-8 (byte 0xff); save the file as UTF-8"


def test_invalid_utf8_far_below_is_named_with_its_line(complaint):
    rows = b"".join(b'{"label": "%d", "parents": []}\n' % i for i in range(20_000))
    assert complaint(rows + b"\xff\n") == "FILE:20001: not valid UTF-8 (byte 0xff); save the file as UTF-8"


def test_utf16_is_refused_large_or_small(complaint):
    small = "parent,child\na,b\n".encode("utf-16")
    assert complaint(small) == "FILE: the file is in UTF-16; save it as UTF-8"
    assert "UTF-8" in complaint("parent,child\na,b\n".encode("utf-16") * 20_000)


def test_a_binary_file_is_refused(complaint):
    assert "the file has NUL bytes" in complaint(b"PK\x03\x04\x00\x00")


@pytest.mark.parametrize("format", ["jsonl", "edges", "paths", "indented", "clus", "obo"])
def test_a_10_mb_line_is_refused(complaint, format):
    assert "FILE:2: the line is longer than 8,000,000 bytes" in complaint("\n" + "x" * 10_000_000, format)


def test_a_10_mb_line_is_refused_where_the_format_is_not_named(complaint):
    line = '{"label": "a", "name": "' + "x" * 10_000_000 + '", "parents": []}\n'
    assert "FILE:1: the line is longer than 8,000,000 bytes" in complaint(line)


def test_a_table_without_a_parent_is_not_taken_for_edges_or_levels(complaint):
    for text in ("id,name\n1,A\n2,B\n", "id\tname\tsize\n1\tA\t7\n", "Code;Title\n1;A\n"):
        assert "FILE:1: there is no column for the parent" in complaint(text)


@pytest.mark.parametrize(
    ("relation", "hint"), [("partof", "did you mean 'part_of'?"), ("zzz", "the file has is_a, part_of")]
)
def test_a_relation_that_no_term_has_is_refused(complaint, relation, hint):
    text = "[Term]\nid: a\n[Term]\nid: b\nrelationship: part_of a\n"
    assert f"FILE: no term has the relation {relation!r}; {hint}" in complaint(text, relations=("is_a", relation))


def test_a_truncated_compressed_file_is_refused(complaint):
    raw = gzip.compress((ROW * 1000).encode())
    assert complaint(raw[:-20]) == "FILE: the compressed file ends too early; it is truncated, get it again"


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(TaxonomyError, match=r"no\.tsv: there is no such file; check the path"):
        read(tmp_path / "no.tsv")
    with pytest.raises(TaxonomyError, match="this is a folder; a file is needed"):
        read(tmp_path)


def test_a_plain_list_of_words_is_not_guessed_at(complaint):
    assert complaint("bread\nbutter\n") == (
        "FILE: the format is not recognised from the content ('bread' ...); "
        "name it, for example format='indented' for a plain list, or format='edges'"
    )


@pytest.mark.parametrize(
    ("text", "root", "message"),
    [
        ("Topp\ta\n", "Top", "FILE: there is no label 'Top' that could be the root; did you mean 'Topp'?"),
        ("a\tb\nb\tc\n", "b", "FILE:1: 'b' has a parent and cannot be the root; name the label at the top"),
    ],
)
def test_a_root_that_cannot_be_one(complaint, text, root, message):
    assert complaint(text, "edges", root=root) == message


@pytest.mark.parametrize(("format", "text"), [("paths", "A > B\nC\n"), ("nested-json", '["A", "C"]')])
def test_a_root_that_is_not_alone_at_the_top(complaint, format, text):
    message = "FILE: 'Top' is not the one label at the top ('A', 'C'); name that label, or leave root out"
    assert complaint(text, format, root="Top") == message


def test_a_header_against_the_direction(complaint):
    message = complaint("child,parent\na,b\n", direction="parent-child")
    assert message.startswith("FILE:1: the header says child-parent, but direction='parent-child' is asked for")


def test_numbers_that_are_missing(complaint):
    assert "FILE:2: 'id - path' is expected, as in '166 - Apparel', got 'A > B'" in complaint(
        "1 - A\nA > B\n", numbered=True
    )
    assert "FILE:1: no column is called id or" in complaint("level 1,level 2\nA,B\n", numbered=True)


def test_a_missing_package_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "yaml", None)
    path = tmp_path / "file"
    path.write_text("a: [b]\n")
    with pytest.raises(
        MissingExtraError, match=r"yaml is needed here; install it with: pip install 'hilap\[formats\]'"
    ):
        read_draft(path)


def test_small_hostile_files_do_not_grow(complaint):
    """Paths are ids: a long chain with many leaves below it must be stopped by the limits, and quickly."""
    start = time.perf_counter()
    deep = "".join("\t" * i + "x" * 100 + "\n" for i in range(99)) + ("\t" * 99 + "leaf\n") * 1_000
    assert "is longer than 1,000 characters" in complaint(deep, "indented")
    assert "is expected, got" in complaint("parent: a" + " child: " * 100_000 + "\n", "rcv1")
    assert complaint('{"a": ' * 300 + "1" + "}" * 300, "nested-json")
    assert time.perf_counter() - start < 5
