import errno
import io
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
    for text in ("première ligne\n", "β\r\n", ""):
        files.write_text(path, text)
        assert path.read_bytes() == text.encode()
    assert [*path.parent.iterdir()] == [path]


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt(), OSError(errno.EIO, "broken disk")])
def test_what_fails_half_way_leaves_the_old_file(tmp_path: Path, error: BaseException) -> None:
    path = tmp_path / "numbers.csv"
    path.write_text("old")

    def write(file: io.BufferedWriter) -> None:
        file.write(b"half of the ne")
        assert [*tmp_path.glob(".numbers.csv.*.part")]  # as those who clear up after a kill look for it
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


def test_the_content_is_on_the_disk_before_the_name_and_then_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, seen = tmp_path / "a.txt", []
    fsync, replace = os.fsync, os.replace

    def synced(descriptor: int) -> None:
        fsync(descriptor)
        found = os.fstat(descriptor)
        seen.append("folder" if os.path.samestat(found, tmp_path.stat()) else f"{found.st_size} bytes")

    def renamed(source: Path, target: Path) -> None:
        replace(source, target)
        seen.append("name")

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", renamed)
    files.write_text(path, "12345")
    assert seen == ["5 bytes", "name", "folder"]


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_others_may_read_what_the_umask_lets_them(tmp_path: Path, mask: int, monkeypatch: pytest.MonkeyPatch) -> None:
    before = os.umask(mask)
    try:
        with monkeypatch.context() as patch:
            patch.delattr(os, "umask")  # it is the whole process's: other threads would write under another
            files.write_text(tmp_path / "a", "")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o666 & ~mask


def test_a_folder_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    (tmp_path / "c").mkdir()
    for path in (tmp_path / "a" / "b.txt", tmp_path / "c"):
        with pytest.raises(OSError, match=str(tmp_path / path.relative_to(tmp_path).parts[0])):
            files.write_text(path, "")
    assert sorted(tmp_path.iterdir()) == [tmp_path / "a", tmp_path / "c"]


# -- JSON and CSV --------------------------------------------------------------------------------------------------


def test_json_comes_back_and_what_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    content = {"label": "from 20°", "numbers": [0.1, 1e-300, -3], "none": None, "true": True}
    files.write_json(path, content)
    assert '"label": "from 20°"' in path.read_bytes().decode("utf-8")
    for bad in (float("nan"), float("inf"), {1, 2}):
        with pytest.raises((ValueError, TypeError)):
            files.write_json(path, {"elbo": bad})
    assert files.read_json(path) == content


@pytest.mark.parametrize("content", [b"", b'{"a": 1', b'{"a": "\xff"}', b'{"a": NaN}', b"[" * 100_000])
def test_damaged_json_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "final.json"
    with pytest.raises(FileNotFoundError, match=r"final\.json"):
        files.read_json(path)
    path.write_bytes(content)
    with pytest.raises(DamagedFile, match=f"{path} is not whole JSON"):
        files.read_json(path)


def test_in_any_locale_and_without_tensorflow(tmp_path: Path) -> None:
    files.write_json(tmp_path / "a.json", "α")
    code = (
        "import sys; from pathlib import Path; from orbitgp.files import read_json; "
        "import orbitgp.optimizers.recipe; "
        "import orbitgp_paper.sources, orbitgp_paper.config, orbitgp_paper.experiments.images; "
        "print(ascii(read_json(Path(sys.argv[1]))), *{'tensorflow', 'gpflow', 'tf_keras'} & set(sys.modules))"
    )
    environment = os.environ | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    command = [sys.executable, "-c", code, str(tmp_path / "a.json")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "'\\u03b1'\n"


def test_numbers_in_csv_are_exact(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=20) * 10.0 ** rng.integers(-30, 30, 20)
    files.write_csv(tmp_path / "a", ["x", "y", "empty", "text"], ([float(x), x, None, "a,b"] for x in numbers))
    header, *lines = (tmp_path / "a").read_text().split("\n")
    assert header == "x,y,empty,text"
    assert lines.pop() == ""
    for x, line in zip(numbers, lines, strict=True):
        first, second, rest = line.split(",", 2)
        assert (float(first), float(second), rest) == (x, x, ',"a,b"')


# -- arrays --------------------------------------------------------------------------------------------------------


@pytest.fixture(params=[False, True], ids=["stored", "compressed"])
def archive(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    files.write_npz(tmp_path / "a.npz", ARRAYS, compress=request.param)
    files.write_npz(tmp_path / "b", ARRAYS, compress=request.param)  # no ending is added
    assert (tmp_path / "b").read_bytes() == (tmp_path / "a.npz").read_bytes()
    return tmp_path / "a.npz"


def test_arrays_come_back_to_the_bit(archive: Path) -> None:
    assert same(ARRAYS, files.read_npz(archive))
    assert list(files.read_npz(archive, ["one", "counts"])) == ["one", "counts"]
    with pytest.raises(DamagedFile, match=r"a\.npz lacks the arrays precision, step; it has counts, "):
        files.read_npz(archive, ["step", "one", "precision"])


def test_a_file_cut_short_anywhere_is_seen(archive: Path) -> None:
    whole = archive.read_bytes()
    for length in [*range(0, len(whole), 13), len(whole) - 1]:
        archive.write_bytes(whole[:length])
        with pytest.raises(DamagedFile, match=r"a\.npz"):
            files.read_npz(archive)


def test_a_wrong_byte_anywhere_changes_nothing_or_is_seen(archive: Path) -> None:
    whole, rng, seen = archive.read_bytes(), np.random.default_rng(0), 0
    for place in range(0, len(whole), 4):
        wrong = bytearray(whole)
        wrong[place] ^= int(rng.integers(1, 256))
        archive.write_bytes(wrong)
        try:
            found = files.read_npz(archive, [*ARRAYS])
        except DamagedFile as error:
            assert str(archive) in str(error)
            seen += 1
        else:
            assert same(ARRAYS, found)
    assert seen > len(whole) / 8


def content_of(save, *arrays) -> bytes:
    content = io.BytesIO()
    save(content, *arrays)
    return content.getvalue()


@pytest.mark.parametrize(
    "content",
    [b"", b"PK", content_of(np.savez, np.array([{"a": 1}], dtype=object)), content_of(np.save, np.zeros(3))],
    ids=["empty", "PK", "pickle", "npy"],
)
def test_what_is_no_archive_of_plain_arrays_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.npz"
    with pytest.raises(FileNotFoundError, match=r"a\.npz"):
        files.read_npz(path)
    path.write_bytes(content)
    with pytest.raises(DamagedFile, match=f"{path} is not a whole .npz of plain arrays"):
        files.read_npz(path)
    with pytest.raises(DamagedFile, match=str(tmp_path)):
        files.read_npz(tmp_path)
