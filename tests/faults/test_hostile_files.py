"""Files made to do harm are refused before they do any."""

import ast
import io
import os
import resource
import subprocess
import sys
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from orbitgp import files
from orbitgp.datasets import images
from orbitgp_paper.experiments.images import ARRAYS, read_dataset

ROOT = Path(__file__).resolve().parents[2]


class Trap:
    """Tells whether it was ever unpickled."""

    def __init__(self, sprung: Path) -> None:
        self.sprung = sprung

    def __reduce__(self) -> tuple[Callable[..., object], tuple[str]]:
        return os.mkdir, (str(self.sprung),)


def head(shape: tuple[int, ...], dtype: str = "|u1") -> bytes:
    """The first bytes of an array, whatever follows."""
    content = io.BytesIO()
    np.lib.format.write_array_header_1_0(content, {"descr": dtype, "fortran_order": False, "shape": shape})
    return content.getvalue()


def archive(path: Path, members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> None:
    with zipfile.ZipFile(path, "w", method) as made:
        for name, content in members.items():
            made.writestr(f"{name}.npy", content)


def pickled(path: Path) -> None:
    trap = np.array([Trap(path.with_suffix(".sprung"))], dtype=object)
    np.savez(path, **dict.fromkeys(("images", "labels", *ARRAYS), trap))


def promises_terabytes(path: Path) -> None:
    archive(path, dict.fromkeys(["images", "train_images"], head((10**6, 10**4, 10**4))))


def swells(path: Path) -> None:
    """Sixty-five kilobytes that unpack to 6.8 gigabytes: the directory lists one packed member a hundred times."""
    single = io.BytesIO()
    with zipfile.ZipFile(single, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("images.npy", head((2**26,)) + bytes(2**26))
        info = made.getinfo("images.npy")
        for i in range(100):
            copied = zipfile.ZipInfo(f"a{i}.npy")
            for name in ("compress_type", "CRC", "compress_size", "file_size", "header_offset", "flag_bits"):
                setattr(copied, name, getattr(info, name))
            made.filelist.append(copied)
            made.NameToInfo[copied.filename] = copied
    path.write_bytes(single.getvalue())


def packed_otherwise(path: Path) -> None:
    archive(path, {"images": head((2**24,)) + bytes(2**24)}, zipfile.ZIP_LZMA)


def two_of_one_name(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as made, pytest.warns(UserWarning, match="Duplicate"):
        for _ in range(2):
            made.writestr("images.npy", head((3,)) + bytes(3))


def not_packed_at_all(path: Path) -> None:
    path.write_bytes(head((10**6, 10**4, 10**4)))


HOSTILE: dict[str, tuple[Callable[[Path], None], str]] = {
    "pickles": (pickled, "allow_pickle=False"),
    "terabytes promised": (promises_terabytes, "images.npy promises 100,000,000,000,000 bytes and holds 0"),
    "gigabytes packed": (swells, "bytes, more than the 4,294,967,296 that are read"),
    "another packing": (packed_otherwise, "is packed in a way that NumPy does not pack"),
    "two of one name": (two_of_one_name, "has two arrays of one name"),
    "one array alone": (not_packed_at_all, ""),
}

READERS: dict[str, Callable[[Path], object]] = {
    "arrays": files.read_npz,
    "a data set": read_dataset,
    "a user's images": images,
}


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    folder, made = tmp_path_factory.mktemp("hostile"), {}

    def make(kind: str) -> Path:
        if kind not in made:
            made[kind] = folder / f"{kind.replace(' ', '_')}.npz"
            HOSTILE[kind][0](made[kind])
        return made[kind]

    return make


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("kind", HOSTILE)
def test_it_is_refused_and_named_and_not_unpacked(hostile: Callable[[str], Path], kind: str, reader: str) -> None:
    path = hostile(kind)
    tracemalloc.start()
    try:
        with pytest.raises((files.DamagedFile, ValueError), match=path.name) as error:
            READERS[reader](path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert HOSTILE[kind][1] in str(error.value)
    assert peak < 5_000_000
    assert not path.with_suffix(".sprung").exists()


def test_the_trap_works_where_pickles_are_loaded(hostile: Callable[[str], Path]) -> None:
    path = hostile("pickles")
    with np.load(path, allow_pickle=True) as loaded:
        loaded["images"]
    assert path.with_suffix(".sprung").exists()
    path.with_suffix(".sprung").rmdir()


def test_json_that_is_nested_without_end_or_is_no_json(tmp_path: Path) -> None:
    path = tmp_path / "final.json"
    for content in ("[" * 100_000, '{"a": ' * 100_000, "9" * 5000, '{"elbo": NaN}', "[-Infinity]"):
        path.write_text(content)
        with pytest.raises(files.DamagedFile, match=r"final\.json is not whole JSON"):
            files.read_json(path)


# -- in the source -------------------------------------------------------------------------------------------------

SOURCES = sorted(path for folder in ("src", "workflow") for path in (ROOT / folder).rglob("*.py"))
UNSAFE_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
UNSAFE_CALLS = {"eval", "exec", "unsafe_load", "full_load", "load_all", "read_pickle", "load_model"}


def dangers(text: str) -> list[str]:
    """What could run code that comes with a file."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.split(".")[0] in UNSAFE_MODULES]
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in UNSAFE_MODULES:
            found.append(node.module)
        elif isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            given = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
            if (
                name.rsplit(".", 1)[-1] in UNSAFE_CALLS
                or given.get("allow_pickle") not in (None, "False")
                or (name in ("np.load", "numpy.load") and "allow_pickle" not in given)
                or (name == "yaml.load" and given.get("Loader") not in ("_Loader", "yaml.SafeLoader"))
            ):
                found.append(ast.unparse(node))
    return found


def test_no_source_can_load_code_from_a_file() -> None:
    assert len(SOURCES) > 60
    assert {path.name: found for path in SOURCES if (found := dangers(path.read_text(encoding="utf-8")))} == {}
    for text in (
        *("import pickle", "from joblib import load", "np.load(x)", "np.load(x, allow_pickle=True)"),
        *("yaml.load(x, yaml.Loader)", "yaml.unsafe_load(x)", "eval(x)", "pd.read_pickle(x)"),
    ):
        assert dangers(text), text


# -- under a limit of memory, in a process of its own --------------------------------------------------------------


def test_bombs_need_no_memory(hostile: Callable[[str], Path]) -> None:
    """Under a limit that the system keeps: what NumPy itself allocates, tracemalloc need not see."""
    code = (
        "import sys; from pathlib import Path; from orbitgp.files import DamagedFile, read_npz\n"
        "for name in sys.argv[1:]:\n"
        "    try: read_npz(Path(name))\n"
        "    except DamagedFile as error: print(error)\n"
    )
    names = ["terabytes promised", "gigabytes packed", "one array alone"]
    limit = 2**30
    done = subprocess.run(
        [sys.executable, "-c", code, *(str(hostile(name)) for name in names)],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (limit, limit)),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert len(done.stdout.splitlines()) == len(names), done.stdout
