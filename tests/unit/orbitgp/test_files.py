import errno
import io
import json
import os
import resource
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from orbitgp import files
from orbitgp.files import DamagedFile

ARRAYS = {
    "counts": np.arange(6, dtype=np.int64).reshape(2, 3),
    "numbers": np.array([[0.1, -0.0], [np.nan, np.inf]]),
    "one": np.float32(1 / 3),
    "text": np.array("{…}"),
    "none": np.zeros((0, 4), np.uint8),
}


def same(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> bool:
    """To the bit, with NaN and the sign of zero."""
    return one.keys() == other.keys() and all(
        np.asarray(one[name]).dtype == other[name].dtype
        and np.shape(one[name]) == other[name].shape
        and np.asarray(one[name]).tobytes() == other[name].tobytes()
        for name in one
    )


# -- whole or not at all -------------------------------------------------------------------------------------------


def test_folders_are_made_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "c.txt"
    files.write_text(path, "première ligne\n")
    files.write_text(path, "β\r\n")
    assert path.read_bytes() == "β\r\n".encode()
    assert [*path.parent.iterdir()] == [path]
    files.write_text(path, "")
    assert path.read_bytes() == b""


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt(), OSError(errno.EIO, "broken disk")])
def test_what_fails_half_way_leaves_the_old_file(tmp_path: Path, error: BaseException) -> None:
    path = tmp_path / "numbers.csv"
    path.write_text("old")

    def write(file: io.BufferedWriter) -> None:
        file.write(b"half of the ne")
        raise error

    with pytest.raises(type(error)) as caught:
        files.write_whole(path, write)
    assert path.read_text() == "old"
    assert [*tmp_path.iterdir()] == [path]
    if isinstance(error, OSError):
        assert caught.value.errno == errno.EIO
        assert f"cannot write {path}: broken disk" in str(caught.value)


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "numbers.csv"
    files.write_text(path, "old")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, limits[1]))
    try:
        with pytest.raises(OSError, match=f"cannot write {path}"):
            files.write_text(path, "new" * 10_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_text() == "old"
    assert [*tmp_path.iterdir()] == [path]


def test_the_content_is_on_the_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, seen = tmp_path / "a.txt", []
    fsync, replace = os.fsync, os.replace

    def synced(descriptor: int) -> None:
        fsync(descriptor)
        seen.append(("synced", os.fstat(descriptor).st_size, path.exists()))

    def renamed(source: str, target: Path) -> None:
        seen.append(("renamed", Path(source).stat().st_size, path.exists()))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", renamed)
    files.write_text(path, "12345")
    assert seen == [("synced", 5, False), ("renamed", 5, False)]


@pytest.mark.parametrize("mask", [0o022, 0o027, 0o077])
def test_others_may_read_what_the_umask_lets_them(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        files.write_text(tmp_path / "a", "")
        assert os.umask(mask) == mask  # it is as it was
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o666 & ~mask


def test_a_folder_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    with pytest.raises(OSError, match=str(tmp_path / "a")):
        files.write_text(tmp_path / "a" / "b.txt", "")
    (tmp_path / "c").mkdir()
    with pytest.raises(OSError, match=f"cannot write {tmp_path / 'c'}"):
        files.write_text(tmp_path / "c", "")
    assert sorted(tmp_path.iterdir()) == [tmp_path / "a", tmp_path / "c"]


# -- JSON ----------------------------------------------------------------------------------------------------------


def test_json_comes_back_and_is_readable(tmp_path: Path) -> None:
    content = {"label": "from 20°", "numbers": [0.1, 1e-300, -3], "none": None, "true": True}
    files.write_json(tmp_path / "a.json", content)
    assert files.read_json(tmp_path / "a.json") == content
    text = (tmp_path / "a.json").read_bytes().decode("utf-8")
    assert '"label": "from 20°"' in text
    assert text.endswith("}\n")


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), {1, 2}])
def test_what_is_no_json_is_refused_and_the_old_file_stays(tmp_path: Path, bad: object) -> None:
    files.write_json(tmp_path / "a.json", 1)
    with pytest.raises((ValueError, TypeError)):
        files.write_json(tmp_path / "a.json", {"elbo": bad})
    assert files.read_json(tmp_path / "a.json") == 1


@pytest.mark.parametrize("content", [b"", b'{"a": 1', b'{"a": "\xff"}', b"nonsense"])
def test_damaged_json_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "final.json"
    path.write_bytes(content)
    with pytest.raises(DamagedFile, match=f"{path} is not whole JSON"):
        files.read_json(path)


def test_json_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"final\.json"):
        files.read_json(tmp_path / "final.json")


def test_json_is_read_as_it_was_written_whatever_the_locale(tmp_path: Path) -> None:
    files.write_json(tmp_path / "a.json", "α")
    code = (
        "import sys; from pathlib import Path; from orbitgp.files import read_json; "
        "print(ascii(read_json(Path(sys.argv[1]))))"
    )
    environment = os.environ | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    command = [sys.executable, "-c", code, str(tmp_path / "a.json")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "'\\u03b1'\n"


# -- CSV -----------------------------------------------------------------------------------------------------------


def test_numbers_in_csv_are_exact_and_the_same_bytes(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=20) * 10.0 ** rng.integers(-30, 30, 20)
    rows = [[i, float(x), np.float64(x), None, "a,b"] for i, x in enumerate(numbers)]
    for name in "ab":
        files.write_csv(tmp_path / name, ["step", "x", "y", "empty", "text"], iter(rows))
    text = (tmp_path / "a").read_text()
    assert text == (tmp_path / "b").read_text()
    header, *lines = text.split("\n")
    assert header == "step,x,y,empty,text"
    assert lines.pop() == ""
    for row, line in zip(rows, lines, strict=True):
        step, x, y, empty, rest = line.split(",", 4)
        assert (int(step), float(x), float(y), empty, rest) == (row[0], row[1], row[2], "", '"a,b"')


# -- arrays --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compress", [False, True])
def test_arrays_come_back_to_the_bit_and_are_the_same_bytes(tmp_path: Path, compress: bool) -> None:
    files.write_npz(tmp_path / "a.npz", ARRAYS, compress=compress)
    assert same(ARRAYS, files.read_npz(tmp_path / "a.npz"))
    files.write_npz(tmp_path / "b", ARRAYS, compress=compress)  # no ending is added
    assert (tmp_path / "b").read_bytes() == (tmp_path / "a.npz").read_bytes()
    some = files.read_npz(tmp_path / "a.npz", ["one", "counts"])
    assert list(some) == ["one", "counts"]


def test_an_array_that_is_missing_is_named(tmp_path: Path) -> None:
    files.write_npz(tmp_path / "a.npz", {"linear": np.zeros(1), "constant": np.zeros(1)})
    with pytest.raises(DamagedFile, match=r"a\.npz lacks the arrays precision, step; it has linear, constant"):
        files.read_npz(tmp_path / "a.npz", ["step", "linear", "precision"])


@pytest.mark.parametrize("compress", [False, True])
def test_a_file_cut_short_anywhere_is_seen(tmp_path: Path, compress: bool) -> None:
    path = tmp_path / "a.npz"
    files.write_npz(path, ARRAYS, compress=compress)
    whole = path.read_bytes()
    for length in [*range(0, len(whole), 13), len(whole) - 1]:
        path.write_bytes(whole[:length])
        with pytest.raises(DamagedFile, match=r"a\.npz"):
            files.read_npz(path)


@pytest.mark.parametrize("compress", [False, True])
def test_a_wrong_byte_anywhere_changes_nothing_or_is_seen(tmp_path: Path, compress: bool) -> None:
    path = tmp_path / "a.npz"
    files.write_npz(path, ARRAYS, compress=compress)
    whole, rng, seen = path.read_bytes(), np.random.default_rng(0), 0
    for place in range(0, len(whole), 4):
        wrong = bytearray(whole)
        wrong[place] ^= int(rng.integers(1, 256))
        path.write_bytes(wrong)
        try:
            found = files.read_npz(path, [*ARRAYS])
        except DamagedFile as error:
            assert str(path) in str(error)
            seen += 1
        else:
            assert same(ARRAYS, found)
    assert seen > len(whole) / 8


def pickled() -> bytes:
    content = io.BytesIO()
    np.savez(content, a=np.array([{"a": 1}], dtype=object))
    return content.getvalue()


def single() -> bytes:
    content = io.BytesIO()
    np.save(content, np.zeros(3))
    return content.getvalue()


@pytest.mark.parametrize(
    "content", [b"", b"PK", b"text\n", pickled(), single()], ids=["empty", "PK", "text", "pickle", "npy"]
)
def test_what_is_no_archive_of_plain_arrays_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.npz"
    path.write_bytes(content)
    with pytest.raises(DamagedFile, match=f"{path} is not a whole .npz of plain arrays"):
        files.read_npz(path)


def test_a_folder_is_no_archive_and_nothing_is_nothing(tmp_path: Path) -> None:
    with pytest.raises(DamagedFile, match=str(tmp_path)):
        files.read_npz(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"absent\.npz"):
        files.read_npz(tmp_path / "absent.npz")


def test_tensorflow_stays_unloaded() -> None:
    code = (
        "import json, sys; import orbitgp.files, orbitgp_paper.sources, orbitgp_paper.config, orbitgp_paper.experiments.images; "
        "print(json.dumps([name.split('.')[0] for name in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"tensorflow", "gpflow", "tf_keras"} & set(json.loads(done.stdout))
