"""The command line as a user meets it: a process of its own, its output and its exit code."""

from __future__ import annotations

import gzip
import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from hilap import samples
from hilap.cli import main

TAXONOMY = [
    {"label": "food", "name": "Food", "parents": []},
    {"label": "bars", "name": "Bars", "parents": ["food"]},
    {"label": "beer", "name": "Beer Bars", "parents": ["bars"]},
]
DOCUMENTS = [
    {"id": str(i), "text": f"text {i}", "labels": [["beer"], ["bars"], ["food"]][i % 3], "group": f"g{i // 4}"}
    for i in range(20)
]


def run(*words: object, stdin: bytes | None = None, cwd: Path | None = None) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-c", "from hilap.cli import main; main()", *map(str, words)]
    return subprocess.run(command, input=stdin, capture_output=True, timeout=120, cwd=cwd, check=False)


def answer(*words: object, **options) -> object:
    """What a command says with --json: standard output holds that and nothing else."""
    done = run(*words, "--json", **options)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stderr == b""
    return json.loads(done.stdout)


def lines(path: Path, records: list[dict]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


@pytest.fixture
def taxonomy(tmp_path) -> Path:
    return lines(tmp_path / "taxonomy.jsonl", TAXONOMY)


@pytest.fixture
def refused(monkeypatch, capsys):
    """The sentence with which a command ends, run in this process: many cases take no time."""

    def of(*words: object) -> str:
        monkeypatch.setattr(sys, "argv", ["hilap", *map(str, words)])
        with pytest.raises(SystemExit) as end:
            main()
        printed = capsys.readouterr()
        assert (end.value.code, printed.out) == (2, "")
        return printed.err

    return of


@pytest.fixture
def corpus(tmp_path) -> Path:
    return lines(tmp_path / "corpus.jsonl", DOCUMENTS)


def test_help_comes_in_well_under_a_second():
    times = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = run("--help")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        # The processor's seconds, not the clock's: other work on the machine is not our doing.
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        assert done.returncode == 0
        assert all(word in done.stdout.decode() for word in ("taxonomy", "corpus", "evaluate"))
    assert min(times) < 1.0


def test_help_imports_nothing_heavy():
    heavy = ("torch", "sklearn", "scipy", "numpy", "pandas")
    code = f"import sys; import hilap.cli; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout.strip() == b"[]"


def test_the_version_is_printed():
    import hilap

    assert run("--version").stdout.decode().strip() == f"hilap {hilap.__version__}"


def test_the_installed_command_is_there():
    script = Path(sys.executable).with_name("hilap")
    assert subprocess.run([script, "--version"], capture_output=True, check=True).stdout.startswith(b"hilap ")


def test_check_finds_nothing_in_a_good_taxonomy(taxonomy):
    found = answer("taxonomy", "check", taxonomy)
    assert (found["labels"], found["errors"], found["format"]) == (3, 0, "jsonl")


def test_check_names_line_and_cycle_and_fails(tmp_path):
    bad = lines(
        tmp_path / "bad.jsonl",
        [{"label": "a", "name": "a", "parents": ["b"]}, {"label": "b", "name": "b", "parents": ["a"]}],
    )
    done = run("taxonomy", "check", bad)
    assert done.returncode == 2
    assert b"bad.jsonl:1: error (cycle)" in done.stdout
    assert json.loads(run("taxonomy", "check", bad, "--json").stdout)["findings"][0]["code"] == "cycle"


def test_check_strict_fails_on_warnings(tmp_path):
    lonely = lines(tmp_path / "lonely.jsonl", [*TAXONOMY, {"label": "x", "name": "x", "parents": []}])
    assert run("taxonomy", "check", lonely).returncode == 0
    assert run("taxonomy", "check", lonely, "--strict").returncode == 2


def test_show_draws_a_tree_and_an_svg(taxonomy, tmp_path):
    assert run("taxonomy", "show", taxonomy).stdout.decode().splitlines()[-1].strip("└─│ ") == "Beer Bars"
    assert run("taxonomy", "show", taxonomy, "--svg", tmp_path / "t.svg").returncode == 0
    assert (tmp_path / "t.svg").read_text().startswith("<svg")
    assert [r["label"] for r in answer("taxonomy", "show", taxonomy, "--label", "bars")] == ["bars", "beer"]


def test_show_as_json_is_never_cut(refused, taxonomy):
    assert "--depth and --children cut only drawings" in refused("taxonomy", "show", taxonomy, "--json", "--depth", 1)


def test_convert_there_and_back_is_the_same_taxonomy(taxonomy, tmp_path):
    there = answer("taxonomy", "convert", taxonomy, tmp_path / "t.tsv")
    back = answer("taxonomy", "convert", tmp_path / "t.tsv", tmp_path / "t.jsonl.gz")
    assert there["fingerprint"] == back["fingerprint"]
    assert len(gzip.decompress((tmp_path / "t.jsonl.gz").read_bytes()).splitlines()) == 3


def test_convert_takes_options_of_the_format(tmp_path):
    (tmp_path / "edges.tsv").write_text("Top\tfood\nfood\tbars\n")
    record = answer("taxonomy", "convert", tmp_path / "edges.tsv", tmp_path / "o.jsonl", "--option", "root=Top")
    assert record["labels"] == 2


def test_stats_of_a_taxonomy(taxonomy):
    figures = answer("taxonomy", "stats", taxonomy)
    assert (figures["kind"], figures["labels"], figures["levels"]) == ("tree", 3, 3)
    assert b"fingerprint" in run("taxonomy", "stats", taxonomy).stdout


def test_a_taxonomy_comes_from_standard_input(taxonomy):
    assert answer("taxonomy", "stats", "-", stdin=taxonomy.read_bytes())["labels"] == 3


def test_formats_are_listed():
    assert {"jsonl", "obo", "skos", "mesh"} <= set(answer("taxonomy", "formats"))


def test_check_of_a_corpus_counts_what_it_skips_and_drops(tmp_path, taxonomy):
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"id": "1", "text": "t", "labels": ["beer", "wine"]}\nnot json\n')
    found = answer("corpus", "check", broken, "-t", taxonomy, "--unknown", "drop", "--bad-lines", "skip")
    assert (found["documents"], found["skipped"], found["dropped_labels"]) == (1, 1, {"wine": 1})
    assert found["skipped_lines"][0]["line"] == 2


def test_stats_of_a_corpus_are_those_of_table_1(corpus, taxonomy):
    figures = answer("corpus", "stats", corpus, "-t", taxonomy)
    assert (figures["documents"], figures["most_labels"]) == (20, 3)
    assert figures["average_labels"] == pytest.approx((7 * 3 + 7 * 2 + 6) / 20)


def test_a_corpus_comes_from_standard_input(corpus, taxonomy):
    assert answer("corpus", "stats", "-", "-t", taxonomy, stdin=corpus.read_bytes())["documents"] == 20


@pytest.mark.parametrize("by", ["random", "group", "stratified"])
def test_split_writes_every_document_once(corpus, taxonomy, tmp_path, by):
    out = tmp_path / "parts"
    extra = [] if by == "random" else ["--group", "group"]
    parts = answer(
        "corpus", "split", corpus, "-t", taxonomy, "--out", out, "--by", by, "--shares", "train=0.6,test=0.4", *extra
    )
    ids = [json.loads(line)["id"] for name in ("train", "test") for line in (out / f"{name}.jsonl").open()]
    assert sorted(ids, key=int) == [d["id"] for d in DOCUMENTS]
    assert parts["parts"]["train"]["documents"] == 12
    if by == "group":
        groups = [{json.loads(line)["group"] for line in (out / f"{name}.jsonl").open()} for name in ("train", "test")]
        assert not groups[0] & groups[1]


def test_split_by_group_needs_groups(corpus, taxonomy, tmp_path):
    done = run("corpus", "split", corpus, "-t", taxonomy, "--out", tmp_path / "parts", "--by", "group")
    assert done.returncode == 2
    assert not (tmp_path / "parts").exists()


def test_split_keeps_groups_together_where_they_are_given(corpus, taxonomy, tmp_path):
    out = tmp_path / "parts"
    words = ("corpus", "split", corpus, "-t", taxonomy, "--out", out, "--group", "group", "--shares", "a=0.5,b=0.5")
    assert run(*words, "--by", "random").returncode == 2
    assert not out.exists()
    answer(*words)
    groups = [{json.loads(line)["group"] for line in (out / f"{name}.jsonl").open()} for name in ("a", "b")]
    assert not groups[0] & groups[1]


def test_split_into_what_is_no_folder_is_one_sentence(refused, corpus, taxonomy):
    for out in (corpus, corpus / "below"):
        assert "cannot be made a folder" in refused("corpus", "split", corpus, "-t", taxonomy, "--out", out)


def test_a_failed_split_leaves_no_folder_at_any_depth(refused, corpus, taxonomy, tmp_path):
    before = sorted(tmp_path.iterdir())
    refused("corpus", "split", corpus, "-t", taxonomy, "--out", tmp_path / "a" / "b", "--suffix", ".foo")
    assert sorted(tmp_path.iterdir()) == before


def test_separators_of_labels_and_paths_can_be_named(taxonomy, tmp_path):
    table = tmp_path / "c.csv"
    table.write_text("id,text,labels\n1,t,Food~Bars;food\n")
    words = ("-t", taxonomy, "--label-separator", ";")
    figures = answer("corpus", "stats", table, *words, "--path-separator", "~")
    assert (figures["documents"], figures["average_labels"]) == (1, 2)
    table.write_text("id,text,labels\n1,t,food;bars\n")
    assert answer("evaluate", table, table, *words)["scores"]["micro_f1"] == 1


def test_split_refuses_standard_input(taxonomy, corpus, tmp_path):
    done = run("corpus", "split", "-", "-t", taxonomy, "--out", tmp_path / "parts", stdin=corpus.read_bytes())
    assert done.returncode == 2
    assert b"standard input can be read only once" in done.stderr


@pytest.mark.parametrize("shares", ["train", "train=x", "=1", "train=0.5", "a/b=1"])
def test_bad_shares_are_refused(corpus, taxonomy, tmp_path, shares):
    done = run("corpus", "split", corpus, "-t", taxonomy, "--out", tmp_path / "parts", "--shares", shares)
    assert done.returncode == 2
    assert b"shares must" in done.stderr


def test_evaluate_gives_every_metric(corpus, taxonomy, tmp_path):
    predicted = lines(
        tmp_path / "p.jsonl",
        [{"id": d["id"], "labels": [{"label": "food", "probability": 0.9}]} for d in reversed(DOCUMENTS)],
    )
    found = answer("evaluate", predicted, corpus, "-t", taxonomy)
    expected = 2 * 20 / (20 + 7 * 3 + 7 * 2 + 6)
    assert found["scores"]["micro_f1"] == pytest.approx(expected)
    assert found["scores"]["inconsistent_share"] == 0
    assert b"Micro-F1" in run("evaluate", predicted, corpus, "-t", taxonomy).stdout
    assert run("evaluate", predicted, corpus, "-t", taxonomy, "--markdown").stdout.startswith(b"|")


def test_evaluate_judges_predictions_as_they_are_unless_told_to_close_them(corpus, taxonomy):
    assert answer("evaluate", corpus, corpus, "-t", taxonomy)["scores"]["inconsistent_share"] == pytest.approx(14 / 20)
    closed = answer("evaluate", corpus, corpus, "-t", taxonomy, "--close")
    assert closed["scores"]["micro_f1"] == 1
    assert any("--close" in note for note in closed["notes"])


def test_evaluate_compares_two_systems(corpus, taxonomy, tmp_path):
    weak = lines(tmp_path / "weak.jsonl", [{"id": d["id"], "labels": ["food"]} for d in DOCUMENTS])
    found = answer("evaluate", corpus, corpus, "-t", taxonomy, "--close", "--against", weak, "--bootstrap", 50)
    assert found["differences"]["micro_f1"]["first"] == 1
    assert found["differences"]["micro_f1"]["second"] == pytest.approx(2 * 20 / (20 + 7 * 3 + 7 * 2 + 6))
    assert 0 < found["differences"]["micro_f1"]["p_value"] < 0.1


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--against", "CORPUS", "--scores", "CORPUS"], "--against compares sets of labels only"),
        (["--against", "CORPUS", "--per-label", "--json"], "--against compares sets of labels only"),
        (["--per-label"], "--per-label is for --json"),
        (["--markdown", "--json"], "--json and --markdown exclude each other"),
    ],
)
def test_evaluate_refuses_options_it_would_not_use(refused, corpus, taxonomy, words, says):
    given = (corpus if word == "CORPUS" else word for word in words)
    assert says in refused("evaluate", corpus, corpus, "-t", taxonomy, *given)


@pytest.mark.parametrize(
    ("last", "says"),
    [
        ('{"id": "19"}', "s.jsonl:20: a line must be"),
        ('{"id": "19", "scores": {"food": NaN}}', "s.jsonl:20: the score of 'food' must be a finite number, got nan"),
        ('{"id": "19", "scores": {"food": "1"}}', "s.jsonl:20: the score of 'food' must be a finite number, got 1"),
        ('{"id": "19", "scores": {"fod": 1}}', "s.jsonl:20: label 'fod' is not in the taxonomy; did you mean 'food'?"),
        ('{"id": "18", "scores": {"food": 1}}', "s.jsonl:20: document '18' has scores already"),
        ('{"id": "99", "scores": {"food": 1}}', "s.jsonl:20: document '99' is not in"),
        ("", "s.jsonl: there are no scores for 1 documents, first '19'"),
    ],
)
def test_bad_scores_are_named_with_their_line(refused, corpus, taxonomy, tmp_path, last, says):
    scores = lines(tmp_path / "s.jsonl", [{"id": d["id"], "scores": {"Food": 0.9}} for d in DOCUMENTS[:-1]])
    scores.write_text(scores.read_text() + last + "\n")
    assert says in refused("evaluate", corpus, corpus, "-t", taxonomy, "--scores", scores)


def test_evaluate_takes_scores_and_training_documents(corpus, taxonomy, tmp_path):
    scores = lines(tmp_path / "s.jsonl", [{"id": d["id"], "scores": {"food": 0.9, "bars": 0.5}} for d in DOCUMENTS])
    found = answer(
        "evaluate", corpus, corpus, "-t", taxonomy, "--scores", scores, "--training", corpus, "--macro", "both"
    )
    assert any(name.startswith("au_prc") for name in found["scores"])
    scores.write_text('{"id": "0", "scores": 3}\n')
    done = run("evaluate", corpus, corpus, "-t", taxonomy, "--scores", scores)
    assert done.returncode == 2
    assert b"s.jsonl:1: a line must be" in done.stderr


@pytest.mark.parametrize(
    ("records", "says"),
    [
        (DOCUMENTS[:-1], "there is no prediction for 1 of 20 documents"),
        ([*DOCUMENTS, {"id": "99", "text": "", "labels": []}], "1 documents are not in"),
        ([*DOCUMENTS, DOCUMENTS[0]], "id '0' stands there more than once"),
    ],
)
def test_evaluate_wants_the_same_documents(corpus, taxonomy, tmp_path, records, says):
    predicted = lines(tmp_path / "p.jsonl", records)
    done = run("evaluate", predicted, corpus, "-t", taxonomy)
    assert done.returncode == 2
    assert says in done.stderr.decode()


def test_prepare_names_the_missing_file(tmp_path):
    done = run("corpus", "prepare", "rcv1", "--from", tmp_path, "--out", tmp_path / "out")
    assert done.returncode == 2
    assert not (tmp_path / "out").exists()


@pytest.fixture
def official(tmp_path) -> Path:
    """RCV1's files, as small as they can be."""
    folder = tmp_path / "official"
    folder.mkdir()
    (folder / "rcv1.topics.hier.orig").write_text("parent: Root child: ECAT child-description: ECONOMICS\n")
    (folder / "docs.txt").write_text("".join(f"{i} words\n" for i in (*range(1, 21), 30001, 30002)))
    (folder / "rcv1-v2.topics.qrels").write_text("".join(f"ECAT {i} 1\n" for i in (*range(1, 21), 30001, 30002)))
    return folder


def test_prepare_without_a_folder_to_write_takes_the_name_of_the_set(official, tmp_path):
    found = answer("corpus", "prepare", "rcv1", "--from", "official", cwd=tmp_path)
    assert found["documents"] == {"train": 18, "valid": 2, "test": 2}
    assert (tmp_path / "rcv1" / "train.jsonl.gz").is_file()
    before = (tmp_path / "rcv1" / "about.json").read_bytes()
    again = run("corpus", "prepare", "rcv1", "--from", "official", "--seed", "1", cwd=tmp_path)
    assert again.returncode == 2
    assert b"rcv1: is there already and not an empty folder; choose another, or remove it" in again.stderr
    assert (tmp_path / "rcv1" / "about.json").read_bytes() == before


def test_prepare_says_which_files_the_texts_are_from(official, tmp_path):
    done = run("corpus", "prepare", "rcv1", "--from", "official", cwd=tmp_path)
    assert b"texts as they were written, from docs.txt" in b" ".join(done.stdout.split())
    other = run("corpus", "prepare", "rcv1", "--from=official", "--option=text=tokens", "--out=o", cwd=tmp_path)
    assert other.returncode == 2
    assert b"a file of the stories (text='tokens') is missing: there is no lyrl2004_tokens_train.dat" in other.stderr


def test_prepare_makes_the_folders_above(official, tmp_path):
    done = run("corpus", "prepare", "rcv1", "--from", "official", "--out", "data/of/mine", cwd=tmp_path)
    assert done.returncode == 0, done.stderr.decode()
    assert (tmp_path / "data" / "of" / "mine" / "about.json").is_file()
    assert b"hilap train data/of/mine/train.jsonl.gz" in b" ".join((done.stdout + done.stderr).split())


def test_prepare_does_not_write_into_the_official_files(official, tmp_path):
    official.rename(tmp_path / "rcv1")
    done = run("corpus", "prepare", "rcv1", "--from", "rcv1", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"rcv1: this is the folder with the official files; name another to write (--out)" in done.stderr


def test_the_bundled_sample_passes_its_own_checks():
    folder = samples.path("pypi_topics")
    assert answer("taxonomy", "check", folder / "taxonomy.jsonl")["errors"] == 0
    found = answer("corpus", "check", folder / "train.jsonl.gz", "-t", folder / "taxonomy.jsonl")
    assert (found["documents"], found["skipped"]) == (2931, 0)


GOOD = '{"id": "1", "text": "t", "labels": ["beer"]}\n'
BAD_TAXONOMIES = {
    "cycle": (b'{"label": "a", "name": "a", "parents": ["b"]}\n{"label": "b", "name": "b", "parents": ["a"]}\n', ":1:"),
    "unknown parent": (
        b'{"label": "a", "name": "a", "parents": []}\n{"label": "b", "name": "b", "parents": ["aa"]}\n',
        ":2:",
    ),
    "duplicate id": (b'{"label": "a", "name": "a", "parents": []}\n' * 2, ":2:"),
    "broken JSON": (b'{"label": "a", "name": "a", "parents": []}\n{"label": \n', ":2:"),
    "empty": (b"", ""),
    "invalid UTF-8": (b'{"label": "a", "name": "\xff", "parents": []}\n', ":1:"),
    "truncated gz": (gzip.compress(b'{"label": "a", "name": "a", "parents": []}\n' * 999)[:-20], ""),
    "missing column": (b"id,name\n1,A\n", ":1:"),
    "10 MB line": (b'{"label": "a", "name": "' + b"x" * 10_000_000 + b'", "parents": []}\n', ":1:"),
}
BAD_CORPORA = {
    "unknown label": ("c.jsonl", b'{"id": "1", "text": "t", "labels": ["beers"]}\n', ":1:"),
    "broken JSON line": ("c.jsonl", GOOD.encode() + b'{"id": "2", \n', ":2:"),
    "invalid UTF-8": ("c.jsonl", GOOD.encode() + b'{"id": "2", "text": "\xe9", "labels": []}\n', ":2:"),
    "missing column": ("c.csv", b"id,body,labels\n1,t,beer\n", ":1:"),
    "empty file": ("c.jsonl", b"", ""),
    "10 MB line": (
        "c.jsonl",
        GOOD.encode() + b'{"id": "2", "text": "' + b"x" * 10_000_000 + b'", "labels": []}\n',
        ":2:",
    ),
    "NaN features": ("c.jsonl", b'{"id": "1", "features": [1.0, NaN], "labels": ["beer"]}\n', ":1:"),
    "truncated gz": ("c.jsonl.gz", gzip.compress(GOOD.encode() * 999)[:-20], ""),
}


def one_sentence(done: subprocess.CompletedProcess[bytes], name: str, where: str) -> None:
    said = done.stderr.decode().strip()
    assert done.returncode == 2, said
    assert said.startswith("error: ")
    assert len(said.splitlines()) == 1
    assert f"{name}{where}" in said
    assert "Traceback" not in said
    assert done.stdout == b""


@pytest.mark.parametrize("case", BAD_TAXONOMIES)
def test_a_bad_taxonomy_gets_one_sentence_and_leaves_no_file(case, tmp_path):
    content, where = BAD_TAXONOMIES[case]
    (tmp_path / "in").mkdir()
    bad = tmp_path / "in" / "t.jsonl"
    bad.write_bytes(content)
    one_sentence(run("taxonomy", "convert", bad, tmp_path / "out.jsonl"), "t.jsonl", where)
    assert [p.name for p in tmp_path.iterdir()] == ["in"]


@pytest.mark.parametrize("case", BAD_CORPORA)
def test_a_bad_corpus_gets_one_sentence_and_leaves_no_file(case, tmp_path, taxonomy):
    name, content, where = BAD_CORPORA[case]
    (tmp_path / "in").mkdir()
    bad = tmp_path / "in" / name
    bad.write_bytes(content)
    one_sentence(run("corpus", "split", bad, "-t", taxonomy, "--out", tmp_path / "parts"), name, where)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in", "taxonomy.jsonl"]


def test_an_unknown_label_gets_a_did_you_mean(tmp_path, taxonomy):
    bad = lines(tmp_path / "c.jsonl", [{"id": "1", "text": "t", "labels": ["Beer Bar"]}])
    assert "did you mean" in run("corpus", "check", bad, "-t", taxonomy).stderr.decode()


def test_a_failed_conversion_keeps_the_older_file(tmp_path, taxonomy):
    target = tmp_path / "out.jsonl"
    target.write_text("precious")
    bad = lines(tmp_path / "bad.jsonl", [{"label": "a", "name": "a", "parents": ["nowhere"]}])
    assert run("taxonomy", "convert", bad, target).returncode == 2
    assert target.read_text() == "precious"


def test_a_missing_file_is_one_sentence(tmp_path):
    done = run("taxonomy", "stats", tmp_path / "nowhere.jsonl")
    assert done.returncode == 2
    assert "there is no such file" in done.stderr.decode()


def test_a_bad_option_is_one_sentence(taxonomy):
    assert b"--option must be KEY=VALUE" in run("taxonomy", "stats", taxonomy, "--option", "root").stderr


def test_a_closed_pipe_ends_quietly(taxonomy):
    command = f"'{sys.executable}' -c 'from hilap.cli import main; main()' taxonomy show '{taxonomy}' --json | true"
    done = subprocess.run(["bash", "-c", command], capture_output=True, check=False)
    assert b"Traceback" not in done.stderr


def test_a_split_that_fails_half_way_keeps_the_older_parts(tmp_path, taxonomy, corpus):
    from hilap.cli.corpus import _write_parts
    from hilap.corpus import read
    from hilap.errors import CorpusError
    from hilap.taxonomy.readers import read as read_taxonomy

    out = tmp_path / "parts"
    out.mkdir()
    (out / "train.jsonl").write_text("precious")
    with pytest.raises(CorpusError, match="row 99 was asked for"):
        _write_parts(read(corpus, read_taxonomy(taxonomy)), {"train": [0, 1], "test": [99]}, out, ".jsonl")
    assert (out / "train.jsonl").read_text() == "precious"
    assert [path.name for path in out.iterdir()] == ["train.jsonl"]
    with pytest.raises(CorpusError):
        _write_parts(read(corpus, read_taxonomy(taxonomy)), {"test": [99]}, tmp_path / "new" / "parts", ".jsonl")
    assert not (tmp_path / "new").exists()


def test_a_bad_kind_of_part_is_named_without_the_draft(tmp_path, taxonomy, corpus):
    done = run("corpus", "split", corpus, "-t", taxonomy, "--out", tmp_path / "parts", "--suffix", ".doc")
    assert done.returncode == 2
    assert ".split." not in done.stderr.decode()
    assert not (tmp_path / "parts").exists()
