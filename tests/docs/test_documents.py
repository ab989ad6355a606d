"""The Python code of the documents runs as it stands, and what its comments claim is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hilap import samples
from hilap.taxonomy import Taxonomy
from hilap.taxonomy.readers import FORMATS, read

ROOT = Path(__file__).resolve().parents[2]
CODE = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FORMAT_ROW = re.compile(r"^\| \[`([\w-]+)`\]\(#[\w-]+\) \|[^|]*\| (yes|no) \|([^|]*)\|", re.MULTILINE)


def text_of(document: str) -> str:
    return (ROOT / document).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "document",
    [
        "README.md",
        "docs/metrics.md",
        "docs/formats/corpora.md",
        "docs/formats/taxonomies.md",
        "docs/baselines/trees.md",
    ],
)
def test_the_code_of_a_document_runs(document, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("taxonomy.tsv").write_text("child\tparent\nfood\t\nbars\tfood\n")
    Path("go.obo").write_text("[Term]\nid: a\n[Term]\nid: b\nis_a: a\nrelationship: part_of a\n")
    found = CODE.findall(text_of(document))
    assert found
    for code in found:
        exec(compile(code, document, "exec"), {})


def test_what_the_readme_says_of_the_sample_is_true():
    taxonomy: Taxonomy = read(samples.path("pypi_topics") / "taxonomy.jsonl")
    assert taxonomy.close(["Internet :: WWW/HTTP"]) == ("Internet", "Internet :: WWW/HTTP")
    assert not taxonomy.is_consistent(["Internet :: WWW/HTTP"])


def test_the_table_of_taxonomy_formats_is_that_of_the_code():
    rows = {
        name: (written == "yes", set(re.findall(r"`([^`]+)`", endings)))
        for name, written, endings in FORMAT_ROW.findall(text_of("docs/formats/taxonomies.md"))
    }
    assert rows == {name: (entry.writer is not None, set(entry.endings)) for name, entry in FORMATS.items()}
