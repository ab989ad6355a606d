"""Each format, read from a small file written by hand: labels, names, parents and lines are what a person would say."""

from __future__ import annotations

from pathlib import Path

import pytest

from hilap.taxonomy.draft import Draft
from hilap.taxonomy.readers import read_draft


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


# -- our own ----------------------------------------------------------------------------------------------------------


def test_jsonl_gives_each_label_with_its_line(drafted):
    draft = drafted(
        '{"label": "food", "name": "Restaurants", "parents": []}\n\n'
        '{"label": 7, "parents": ["food"], "aliases": ["seven", 8]}\n'
    )
    assert draft.format == "jsonl"
    assert rows(draft) == [("food", "Restaurants", (), 1), ("7", "7", ("food",), 3)]
    assert draft.aliases == {"seven": "7", "8": "7"}


def test_jsonl_keeps_numbers_as_they_are_written(drafted):
    draft = drafted('{"label": 1.50, "parents": []}\n{"label": 1e999, "parents": [1.50]}\n')
    assert parents(draft) == {"1.50": (), "1e999": ("1.50",)}


def test_jsonl_keeps_duplicates_unknown_parents_and_cycles(drafted):
    draft = drafted('{"label": "a", "parents": ["b"]}\n{"label": "a", "parents": ["a", "a"]}\n')
    assert rows(draft) == [("a", "a", ("b",), 1), ("a", "a", ("a", "a"), 2)]


def test_jsonl_remarks_on_keys_that_are_not_read(drafted):
    draft = drafted('{"label": "a", "name": "A", "parents": [], "notes": "x"}\n')
    assert draft.remarks == [(1, "the key 'notes' is not read; a label has label, name, parents, definition, aliases")]


def test_hilap_json_is_read_with_lines(drafted):
    draft = drafted(
        '{"format": 1,\n "labels": [\n  {"label": "a", "name": "A", "parents": []},\n'
        '  {"label": "b", "name": "B", "parents": ["a"]}],\n "aliases": {"x": "b"}}'
    )
    assert draft.format == "json"
    assert rows(draft) == [("a", "A", (), 3), ("b", "B", ("a",), 4)]
    assert draft.aliases == {"x": "b"}


# -- edges ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "parent\tchild\nfood\tbars\nfood\tshops\nbars\tbeer\n",
        "child,parent\nbars,food\nshops,food\nbeer,bars\n",
        "Broader;Narrower\nfood;bars\nfood;shops\nbars;beer\n",
        "narrower,broader\r\nbars,food\r\nshops,food\r\nbeer,bars\r\n",
        "name;parent\nfood;\nbars;food\nshops;food\nbeer;bars\n",
        "\ufefffood\tbars\nfood\tshops\n# a comment\n\nbars\tbeer\n",
        "bars,food\nshops,food\nbeer,bars\n",  # no header: no label of the first column is repeated
        "Root,food\nfood,bars\nfood,shops\nbars,beer\n",
        "food\tROOT\nbars\tfood\nshops\tfood\nbeer\tbars\n",
        '"food","bars"\n"food","shops"\n"bars","beer"\n',
    ],
)
def test_edges_mean_the_same_in_either_direction_with_any_delimiter(drafted, text):
    draft = drafted(text)
    assert draft.format == "edges"
    assert parents(draft) == {"food": (), "bars": ("food",), "shops": ("food",), "beer": ("bars",)}


def test_a_direction_that_is_named_is_followed(drafted):
    text = "a,b\nc,b\n"
    assert parents(drafted(text, direction="parent-child")) == {"a": (), "b": ("a", "c"), "c": ()}
    assert parents(drafted(text, direction="child-parent")) == {"a": ("b",), "b": (), "c": ("b",)}


def test_a_dag_without_header_is_read_as_parent_child_with_a_remark(drafted):
    draft = drafted("a\tc\nb\tc\na\td\nb\td\n")
    assert parents(draft) == {"a": (), "b": (), "c": ("a", "b"), "d": ("a", "b")}
    assert "read as parent-child" in draft.remarks[0][1]


def test_edges_of_one_child_become_one_entry_at_its_first_line(drafted):
    draft = drafted("parent\tchild\nb\tc\na\tb\na\tc\nb\tc\n")
    assert rows(draft) == [("b", "b", ("a",), 3), ("c", "c", ("b", "a"), 2), ("a", "a", (), 3)]
    assert draft.remarks == [(5, "the edge from 'b' to 'c' stands here again (first on line 2)")]


def test_a_table_with_names_reports_parents_without_a_row_of_their_own(drafted):
    draft = drafted("id,label,parent_id,note\n1,Food,,x\n2,Bars,1,\n3,Beer,9,\n")
    assert rows(draft) == [("1", "Food", (), 2), ("2", "Bars", ("1",), 3), ("3", "Beer", ("9",), 4)]
    assert draft.remarks == [(1, "columns that are not read: 'note'")]


def test_two_names_for_one_id_stay_two_entries(drafted):
    draft = drafted("child,parent,name\na,,A\nb,a,B\nb,a,Bee\n")
    assert rows(draft) == [("a", "A", (), 2), ("b", "B", ("a",), 3), ("b", "Bee", ("a",), 4)]


def test_quotes_in_a_tsv_are_ordinary_unless_they_enclose_the_cell(drafted):
    draft = drafted('parent\tchild\npipes\t5" pipes\npipes\t"small ""ones"""\n')
    assert [entry.label for entry in draft] == ["pipes", '5" pipes', 'small "ones"']


def test_a_quoted_csv_cell_may_hold_commas_and_line_ends(drafted):
    draft = drafted('child,parent,note\n"a, b",,"two\nlines"\nc,"a, b",\n')
    assert rows(draft) == [("a, b", "a, b", (), 2), ("c", "c", ("a, b",), 4)]


def test_hashtags_are_labels_and_no_comments(drafted):
    assert parents(drafted("parent\tchild\n#music\t#jazz\n# music\tis a comment\n")) == {
        "#music": (),
        "#jazz": ("#music",),
    }


@pytest.mark.parametrize("root", [False, ""])
def test_a_root_is_kept_where_that_is_asked_for(drafted, root):
    assert parents(drafted("Root\ta\nRoot\tb\n", root=root)) == {"Root": (), "a": ("Root",), "b": ("Root",)}


def test_a_root_of_any_name_is_left_out_where_it_is_named(drafted):
    assert parents(drafted("Top\ta\nTop\tb\na\tc\n", root="Top")) == {"a": (), "b": (), "c": ("a",)}


def test_a_label_called_root_below_another_is_no_root(drafted):
    assert parents(drafted("parent,child\nplants,root\nroot,tuber\n")) == {
        "plants": (),
        "root": ("plants",),
        "tuber": ("root",),
    }


def test_a_parent_with_all_its_children_a_row(drafted):
    draft = drafted("Root\tfood\tshops\nbars\tbeer\tfood and drink\nfood\tbars\n")
    assert draft.format == "children"
    assert rows(draft) == [
        ("food", "food", (), 1),
        ("shops", "shops", (), 1),
        ("bars", "bars", ("food",), 3),
        ("beer", "beer", ("bars",), 2),
        ("food and drink", "food and drink", ("bars",), 2),
    ]


# -- paths ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("separator", "text"),
    [
        (" > ", "A\nA > B\nA > B > C\nD > B\n"),
        (">", "A\nA>B\nA>B>C\nD>B\n"),
        ("/", "A\nA/B\nA/B/C\nD/B\n"),
        (" :: ", "A\nA :: B\nA :: B :: C\nD :: B\n"),
        ("::", "A\r\nA::B\r\nA::B::C\r\nD::B\r\n"),
        (" / ", "A\nA / B\nA / B / C\nD / B\n"),
        (" | ", "A\nA | B\nA | B | C\nD | B\n"),
    ],
)
def test_paths_with_the_usual_separators(drafted, separator, text):
    draft = drafted(text)
    assert draft.format == "paths"
    ab, abc, db = (separator.join(path) for path in ("AB", "ABC", "DB"))
    assert rows(draft) == [
        ("A", "A", (), 1),
        (ab, "B", ("A",), 2),
        (abc, "C", (ab,), 3),
        ("D", "D", (), 4),
        (db, "B", ("D",), 4),
    ]
    assert draft.remarks == [(4, "1 label never listed alone, but inside longer paths, became labels too: first 'D'")]


def test_a_separator_that_is_named_is_followed(drafted):
    assert parents(drafted("A -> B/C\n", "paths", separator="->")) == {"A": (), "A->B/C": ("A",)}


def test_google_product_taxonomy_has_numbers_as_ids(drafted):
    draft = drafted(
        "# Google_Product_Taxonomy_Version: 2021-09-21\n166 - Apparel & Accessories\n"
        "1604 - Apparel & Accessories > Clothing\n5322 - Apparel & Accessories > Clothing > Activewear/Sports\n"
    )
    assert draft.format == "paths"
    assert rows(draft) == [
        ("166", "Apparel & Accessories", (), 2),
        ("1604", "Clothing", ("166",), 3),
        ("5322", "Activewear/Sports", ("1604",), 4),
    ]


def test_lines_may_stand_in_any_order(drafted):
    draft = drafted("3 - A > B > C\n2 - A > B\n1 - A\n")
    assert parents(draft) == {"3": ("2",), "2": ("1",), "1": ()}
    assert not draft.remarks


def test_names_can_be_ids(drafted):
    assert parents(drafted("A > B\nA > B > C\n", ids="name")) == {"A": (), "B": ("A",), "C": ("B",)}


def test_one_top_called_root_is_left_out_of_paths(drafted):
    assert parents(drafted("Root/A\nRoot/A/B\n")) == {"A": (), "A/B": ("A",)}
    assert parents(drafted("Top/A\nTop/A/B\nTop\n", root="Top")) == {"A": (), "A/B": ("A",)}


@pytest.mark.parametrize(
    "text",
    [
        "level 1,level 2,level 3\nA,,\nA,B,\nA,B,C\nD,B,\n",
        "Tier 1\tTier 2\tTier 3\nA\nA\tB\nA\tB\tC\nD\tB\n",
        "A,,\nA,B,\nA,B,C\nD,B,\n",
        "L1;L2;L3\nA;;\n;B;\n;;C\nD;B;\n",  # an outline: empty cells at the start repeat the row above
    ],
)
def test_a_column_for_each_level(drafted, text):
    draft = drafted(text)
    assert draft.format == "columns"
    assert parents(draft) == {"A": (), "A > B": ("A",), "A > B > C": ("A > B",), "D": (), "D > B": ("D",)}
    assert [entry.name for entry in draft] == ["A", "B", "C", "D", "B"]


def test_categories_and_subcategories_are_levels(drafted):
    draft = drafted("Category,Sub-Category,Sub Sub Category\nFood,Bars,Beer\n")
    assert draft.format == "columns"
    assert list(parents(draft)) == ["Food", "Food > Bars", "Food > Bars > Beer"]


def test_columns_with_an_id(drafted):
    draft = drafted("id,level 1,level 2,note\n1,A,,x\n2,A,B,\n")
    assert rows(draft) == [("1", "A", (), 2), ("2", "B", ("1",), 3)]
    assert draft.remarks == [(1, "columns that are not read: 'note'")]
    assert rows(drafted("1,A,\n2,A,B\n", "columns", numbered=True)) == [("1", "A", (), 1), ("2", "B", ("1",), 2)]


# -- nested and indented ----------------------------------------------------------------------------------------------

NESTED_JSON = """[
 {"name": "A", "children": [
  {"name": "B", "id": 7, "children": ["C"]},
  {"D": {"E": {}, "F": ["G", "H"], "I": null}}
 ]},
 "B"
]"""
NESTED_YAML = """
- name: A
  children:
  - {name: B, id: 007}
  - D:
      E:
      F: [G, NO]
- B
"""


def test_nested_json_in_every_style(drafted):
    draft = drafted(NESTED_JSON)
    assert draft.format == "nested-json"
    assert rows(draft) == [
        ("A", "A", (), 2),
        ("7", "B", ("A",), 3),
        ("A > B > C", "C", ("7",), 3),
        ("A > D", "D", ("A",), 4),
        ("A > D > E", "E", ("A > D",), 4),
        ("A > D > F", "F", ("A > D",), 4),
        ("A > D > F > G", "G", ("A > D > F",), 4),
        ("A > D > F > H", "H", ("A > D > F",), 4),
        ("A > D > I", "I", ("A > D",), 4),
        ("B", "B", (), 6),
    ]


def test_nested_yaml_keeps_every_scalar_as_written(drafted):
    draft = drafted(NESTED_YAML)
    assert draft.format == "nested-yaml"
    assert rows(draft) == [
        ("A", "A", (), 2),
        ("007", "B", ("A",), 4),
        ("A > D", "D", ("A",), 5),
        ("A > D > E", "E", ("A > D",), 6),
        ("A > D > F", "F", ("A > D",), 7),
        ("A > D > F > G", "G", ("A > D > F",), 7),
        ("A > D > F > NO", "NO", ("A > D > F",), 7),
        ("B", "B", (), 8),
    ]


def test_yaml_with_paths_in_it_is_recognised(drafted):
    draft = drafted('- id: "A"\n  name: "A"\n  children:\n    - id: "A > B"\n      name: "B"\n')
    assert draft.format == "nested-yaml"
    assert parents(draft) == {"A": (), "A > B": ("A",)}


@pytest.mark.parametrize("below", ["children", "narrower", "subcategories", "nodes", "items"])
def test_nested_json_on_one_line_is_no_jsonl(drafted, below):
    draft = drafted(f'{{"label": "A", "{below}": [{{"label": "B"}}]}}\n')
    assert draft.format == "nested-json"
    assert parents(draft) == {"A": (), "A > B": ("A",)}


def test_yaml_as_a_plain_mapping(drafted):
    draft = drafted("Food:\n  Bars:\n    - Beer\n    - Wine\n  Caribbean: {}\nShops:\n")
    assert draft.format == "nested-yaml"
    assert [entry.label for entry in draft] == [
        "Food",
        "Food > Bars",
        "Food > Bars > Beer",
        "Food > Bars > Wine",
        "Food > Caribbean",
        "Shops",
    ]


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "root", "children": [{"name": "A"}, {"name": "B"}]}',
        '{"children": [{"name": "A"}, {"name": "B"}]}',
        '{"Root": ["A", "B"]}',
        '{"A": {}, "B": {}}',
        '[{"label": "A", "name": "A"}, {"id": "B", "label": "B"}]',
    ],
)
def test_the_top_of_nested_json_is_no_label_where_it_is_the_root(drafted, text):
    assert parents(drafted(text, "nested-json")) == {"A": (), "B": ()}


def test_other_keys_of_nested_records_get_a_remark(drafted):
    draft = drafted('{"name": "A", "size": 3, "kids": ["B"]}')
    assert [entry.label for entry in draft] == ["A"]
    assert [remark for _, remark in draft.remarks] == [
        "the key 'size' is not read; if children stand below it, say children='size'",
        "the key 'kids' is not read; if children stand below it, say children='kids'",
    ]
    assert [entry.label for entry in drafted('{"name": "A", "kids": ["B"]}', children="kids")] == ["A", "A > B"]


@pytest.mark.parametrize("indent", ["\t", "  ", "    "])
def test_indented_text(drafted, indent):
    draft = drafted(f"Food\n{indent}Bars\n{indent * 2}Beer\n\n# comment\n{indent}Wine\nShops\n")
    assert draft.format == "indented"
    assert rows(draft) == [
        ("Food", "Food", (), 1),
        ("Food > Bars", "Bars", ("Food",), 2),
        ("Food > Bars > Beer", "Beer", ("Food > Bars",), 3),
        ("Food > Wine", "Wine", ("Food",), 6),
        ("Shops", "Shops", (), 7),
    ]
