"""Reading and writing: what comes out, and every sentence about what cannot be read or written."""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import lzma
import os
import stat
import sys
from pathlib import Path

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hilap import files
from hilap.errors import CorpusError, HilapError, MissingExtraError, TaxonomyError

COMPRESSORS = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstandard.ZstdCompressor().compress,
}
LINES = "".join(f"line {i} of a file that is worth packing: {i * 7919}\n" for i in range(5000)).encode()


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder that is the current one, so that messages show short names."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def lines_of(content: bytes, **options) -> list[tuple[int, str]]:
    Path("file.txt").write_bytes(content)
    return list(files.read_lines("file.txt", TaxonomyError, **options))


def complaint(content: bytes, **options) -> str:
    with pytest.raises(TaxonomyError) as caught:
        lines_of(content, **options)
    return str(caught.value)


def stdin_of(content: bytes) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BufferedReader(io.BytesIO(content)))


# -- reading -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", []),
        (b"a", [(1, "a")]),
        (b"a\nb\n", [(1, "a"), (2, "b")]),
        (b"a\r\nb\r\n", [(1, "a"), (2, "b")]),
        (b"\n\n", [(1, ""), (2, "")]),
        (b"\xef\xbb\xbfa\n\xef\xbb\xbfb", [(1, "a"), (2, "\ufeffb")]),
        ("naïve\u2028漢\x0b字\n".encode(), [(1, "naïve\u2028漢\x0b字")]),  # only \n ends a line
    ],
)
def test_lines_have_numbers_and_no_ends(place, content, lines):
    assert lines_of(content) == lines


@pytest.mark.parametrize("packing", COMPRESSORS)
def test_compressed_files_are_known_by_their_content_not_their_name(place, packing):
    assert [line for _, line in lines_of(COMPRESSORS[packing](LINES))] == LINES.decode().splitlines()


@pytest.mark.parametrize("packing", COMPRESSORS)
def test_compressed_parts_one_after_the_other_are_one_file(place, packing):
    pack = COMPRESSORS[packing]
    assert lines_of(pack(b"a\nb") + pack(b"c\n")) == [(1, "a"), (2, "bc")]


@pytest.mark.parametrize("packing", COMPRESSORS)
@pytest.mark.parametrize("left", [0.3, 0.7, 0.99])
def test_a_truncated_compressed_file(place, packing, left):
    whole = COMPRESSORS[packing](LINES)
    said = complaint(whole[: int(left * len(whole))])
    assert said == "file.txt: the compressed file ends too early; it is truncated, get it again"


@pytest.mark.parametrize("packing", COMPRESSORS)
def test_a_damaged_compressed_file(place, packing):
    broken = bytearray(COMPRESSORS[packing](LINES))
    middle = len(broken) // 2
    broken[middle : middle + 40] = b"\xff" * 40
    said = complaint(bytes(broken))
    assert said.startswith("file.txt: the compressed file is damaged (")
    assert said.endswith("); get it again")


@pytest.mark.parametrize("packing", ["gz", "zst"])
def test_rubbish_behind_a_compressed_file(place, packing):
    assert "the compressed file is damaged" in complaint(COMPRESSORS[packing](LINES) + b"rubbish, and more of it")


def test_a_zst_bomb_is_eaten_in_small_bites(place):
    import tracemalloc

    bomb = zstandard.ZstdCompressor().compress(b"\0" * 500_000_000)
    tracemalloc.start()
    said = complaint(bomb)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "longer than 8,000,000 bytes" in said
    assert most < 200_000_000


def test_zst_without_the_package(place, monkeypatch):
    monkeypatch.setitem(sys.modules, "zstandard", None)
    Path("file.txt").write_bytes(COMPRESSORS["zst"](LINES))
    with pytest.raises(
        MissingExtraError, match=r"zstandard is needed here; install it with: pip install 'hilap\[formats\]'"
    ):
        list(files.read_lines("file.txt", TaxonomyError))


def test_invalid_utf8_names_line_and_byte(place):
    assert complaint(b"fine\nna\xefve\n") == "file.txt:2: not valid UTF-8 (byte 0xef); save the file as UTF-8"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf16_is_recognised_by_its_mark(place, encoding):
    marked = ("a" if encoding == "utf-16" else "\ufeffa").encode(encoding)
    assert complaint(marked) == "file.txt: the file is in UTF-16; save it as UTF-8"


def test_a_line_too_long(place):
    said = complaint(b"short\n" + b"x" * 101 + b"\n", most_bytes=100)
    assert said == (
        "file.txt:2: the line is longer than 100 bytes; is this the right file? split such documents, or cut them"
    )


def test_a_ten_megabyte_line_is_too_long_by_default(place):
    assert complaint(b"x" * 10_000_000).startswith("file.txt:1: the line is longer than 8,000,000 bytes;")


def test_the_kind_of_error_is_the_readers_choice(place):
    for kind in (CorpusError, TaxonomyError):
        with pytest.raises(kind, match=r"^gone\.txt: there is no such file; check the path$"):
            list(files.read_lines("gone.txt", kind))


def test_a_folder_is_no_file(place):
    Path("folder").mkdir()
    with pytest.raises(TaxonomyError, match=r"^folder: this is a folder; a file is needed$"):
        files.read_text("folder", TaxonomyError)


def test_a_name_that_no_file_can_have(place):
    with pytest.raises(TaxonomyError, match=r"^'a\\x00b': this cannot be the name of a file; check the path$"):
        files.read_text("a\0b", TaxonomyError)


def test_what_else_the_system_says_is_passed_on(place, monkeypatch):
    def refused(*args, **kwargs):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("builtins.open", refused)
    with pytest.raises(TaxonomyError, match=r"^secret\.txt: cannot be read \(Permission denied\)$"):
        files.read_text("secret.txt", TaxonomyError)


@pytest.mark.parametrize("pack", [bytes, *COMPRESSORS.values()])
def test_standard_input_is_read_and_unpacked(monkeypatch, pack):
    monkeypatch.setattr(sys, "stdin", stdin_of(pack(b"a\nb\n")))
    assert list(files.read_lines("-", TaxonomyError)) == [(1, "a"), (2, "b")]


@pytest.mark.parametrize("pack", [bytes, *COMPRESSORS.values()])
def test_standard_input_is_not_closed(monkeypatch, pack):
    monkeypatch.setattr(sys, "stdin", stdin_of(pack(b"a\n")))
    files.read_text("-", TaxonomyError)
    assert not sys.stdin.buffer.closed


def test_standard_input_has_a_name_in_messages(monkeypatch):
    monkeypatch.setattr(sys, "stdin", stdin_of(b"\xff\n"))
    with pytest.raises(
        TaxonomyError, match=r"^standard input:1: not valid UTF-8 \(byte 0xff\); save the file as UTF-8$"
    ):
        list(files.read_lines("-", TaxonomyError))


def test_whole_text_without_its_mark(place):
    Path("a.json").write_bytes(b"\xef\xbb\xbf{}\r\n")
    assert files.read_text("a.json", TaxonomyError) == "{}\r\n"


def test_whole_text_names_the_line_of_a_bad_byte(place):
    Path("a.json").write_bytes(b"\xef\xbb\xbf1\n2\n\xff")
    with pytest.raises(TaxonomyError, match=r"^a\.json:3: not valid UTF-8 \(byte 0xff\); save the file as UTF-8$"):
        files.read_text("a.json", TaxonomyError)


def test_whole_text_too_large(place):
    Path("a.json").write_bytes(b"x" * 11)
    with pytest.raises(TaxonomyError, match=r"^a\.json: the file is larger than 10 bytes; split it$"):
        files.read_text("a.json", TaxonomyError, most_bytes=10)
    assert files.read_text("a.json", TaxonomyError, most_bytes=11) == "x" * 11


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from([b"", b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"BZh9", b"\xfd7zXZ\x00"]), st.binary(max_size=80))
def test_any_bytes_give_lines_or_our_own_error(tmp_path, head, rest):
    path = tmp_path / "any"
    path.write_bytes(head + rest)
    for read in (files.read_text, lambda *a: list(files.read_lines(*a))):
        try:
            read(path, CorpusError)
        except CorpusError as error:
            assert str(path) in str(error)  # noqa: PT017


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(sorted(COMPRESSORS)), st.integers(0, 10_000), st.integers(1, 255))
def test_one_flipped_byte_gives_lines_or_our_own_error(tmp_path, packing, where, flip):
    packed = bytearray(COMPRESSORS[packing](LINES[:3000]))
    packed[where % len(packed)] ^= flip
    (tmp_path / "flipped").write_bytes(packed)
    try:
        list(files.read_lines(tmp_path / "flipped", CorpusError))
    except CorpusError as error:
        assert "flipped" in str(error)  # noqa: PT017


# -- writing -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.jsonl.zst"])
def test_what_is_written_can_be_read(place, name):
    with files.writing(name) as stream:
        stream.write("naïve\n漢字\n")
    assert list(files.read_lines(name, CorpusError)) == [(1, "naïve"), (2, "漢字")]
    with files.writing(name, "wb") as stream:
        stream.write(b"bytes\n")
    assert list(files.read_lines(name, CorpusError)) == [(1, "bytes")]
    assert os.listdir() == [name]


@pytest.mark.parametrize(("name", "unpack"), [("a.gz", gzip.decompress), ("a.zst", zstandard.decompress), ("a", bytes)])
def test_the_name_decides_the_packing(place, name, unpack):
    with files.writing(name, "wb") as stream:
        stream.write(b"content")
    packed = Path(name).read_bytes()
    if name.endswith(".zst"):
        assert zstandard.ZstdDecompressor().decompressobj().decompress(packed) == b"content"
    else:
        assert unpack(packed) == b"content"


def test_gz_holds_no_time_and_no_name(place):
    for name in ("one.gz", "two.gz"):
        with files.writing(name) as stream:
            stream.write("the same\n" * 100)
    assert Path("one.gz").read_bytes() == Path("two.gz").read_bytes()
    assert Path("one.gz").read_bytes()[3:8] == bytes(5)  # no flags, so no name; time zero


@pytest.mark.parametrize("name", ["a.txt", "a.gz", "a.zst"])
@pytest.mark.parametrize("fault", [RuntimeError("on the way"), KeyboardInterrupt(), CorpusError("bad line")])
def test_an_exception_leaves_the_older_file_and_nothing_else(place, name, fault):
    Path(name).write_bytes(b"older")
    with pytest.raises(type(fault)), files.writing(name) as stream:  # noqa: PT012
        stream.write("x" * 100_000)
        raise fault
    assert Path(name).read_bytes() == b"older"
    assert os.listdir() == [name]


def test_an_exception_leaves_no_file_where_there_was_none(place):
    with pytest.raises(RuntimeError), files.writing("new.txt") as stream:  # noqa: PT012
        stream.write("half")
        raise RuntimeError
    assert os.listdir() == []


def test_nothing_is_to_be_seen_before_the_end(place):
    with files.writing("a.txt") as stream:
        stream.write("half")
        stream.flush()
        assert not Path("a.txt").exists()
    assert Path("a.txt").read_text() == "half"


def test_a_written_file_has_ordinary_rights(place):
    umask = os.umask(0o027)
    try:
        with files.writing("a.txt") as stream:
            stream.write("a")
    finally:
        os.umask(umask)
    assert stat.S_IMODE(os.stat("a.txt").st_mode) == 0o640


def test_a_link_stays_a_link(place):
    Path("real.txt").write_text("older")
    os.symlink("real.txt", "link.txt")
    with files.writing("link.txt") as stream:
        stream.write("newer")
    assert Path("link.txt").is_symlink()
    assert Path("real.txt").read_text() == "newer"


def test_a_device_is_written_to_and_not_replaced(place):
    os.mkfifo("pipe")
    reader = os.open("pipe", os.O_RDONLY | os.O_NONBLOCK)
    with files.writing("pipe") as stream:
        stream.write("through")
    assert os.read(reader, 100) == b"through"
    os.close(reader)
    assert stat.S_ISFIFO(os.stat("pipe").st_mode)
    assert os.listdir() == ["pipe"]


def test_writing_into_no_folder(place):
    with pytest.raises(HilapError) as caught, files.writing("no/such/a.txt"):
        pass
    assert str(caught.value) == ("no/such/a.txt: cannot be written (No such file or directory); does the folder exist?")


def test_writing_over_a_folder(place):
    Path("folder").mkdir()
    with pytest.raises(HilapError) as caught, files.writing("folder"):
        pass
    assert str(caught.value) == "folder: this is a folder; give the name of a file in it"


def test_writing_to_a_name_that_no_file_can_have(place):
    with pytest.raises(HilapError, match="this cannot be the name of a file; check the path"), files.writing("a\0b"):
        pass


def test_writing_what_utf8_cannot_hold(place):
    with pytest.raises(HilapError) as caught, files.writing("a.txt") as stream:
        stream.write("lone \ud800")
    assert str(caught.value) == "a.txt: cannot be written, as '\\ud800' is no character that UTF-8 can hold"
    assert os.listdir() == []


def test_a_full_disk(place):
    with pytest.raises(HilapError) as caught, files.writing("a.txt"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert str(caught.value) == "a.txt: cannot be written (No space left on device); nothing was left behind"
    assert os.listdir() == []


def test_faults_of_the_writer_are_not_called_ours(place):
    with pytest.raises(FileNotFoundError), files.writing("a.txt"):
        open("another file")  # noqa: SIM115
