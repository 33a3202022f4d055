"""Files made to do harm are refused before they do any."""

import copy
import io
import os
import re
import resource
import subprocess
import sys
import tracemalloc
import warnings
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


def archive(path: Path, *members: tuple[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> None:
    with zipfile.ZipFile(path, "w", method) as made, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of two members of one name
        for name, content in members:
            made.writestr(f"{name}.npy", content)


def pickled(path: Path) -> None:
    trap = np.array([Trap(path.with_suffix(".sprung"))], dtype=object)
    np.savez(path, **dict.fromkeys(("images", "labels", *ARRAYS), trap))


def swells(path: Path) -> None:
    """Sixty-five kilobytes that unpack to 6.8 gigabytes: the directory lists one packed member a hundred times."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("images.npy", head((2**26,)) + bytes(2**26))
        for i in range(100):
            copied = copy.copy(made.getinfo("images.npy"))
            copied.filename = f"a{i}.npy"
            made.filelist.append(copied)


ENDLESS = head((10**6, 10**4, 10**4))
HOSTILE: dict[str, tuple[Callable[[Path], object], str]] = {
    "pickles": (pickled, "allow_pickle=False"),
    "terabytes promised": (
        lambda path: archive(path, ("images", ENDLESS), ("train_images", ENDLESS)),
        "images.npy promises 100,000,000,000,000 bytes and holds 0",
    ),
    "gigabytes packed": (swells, "bytes, more than the 4,294,967,296 that are read"),
    "another packing": (
        lambda path: archive(path, ("images", head((2**24,)) + bytes(2**24)), method=zipfile.ZIP_LZMA),
        "is compressed in a way that NumPy does not use",
    ),
    "two of one name": (lambda path: archive(path, *[("images", head((3,)) + bytes(3))] * 2), "two arrays of one name"),
    "one array alone": (lambda path: path.write_bytes(ENDLESS), ""),
}
READERS: dict[str, Callable[[Path], object]] = {"arrays": files.read_npz, "data set": read_dataset, "images": images}


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("hostile")
    made = {kind: folder / f"{kind}.npz" for kind in HOSTILE}
    for kind, path in made.items():
        HOSTILE[kind][0](path)
    return made


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("kind", HOSTILE)
def test_it_is_refused_and_named_and_not_unpacked(hostile: dict[str, Path], kind: str, reader: str) -> None:
    path = hostile[kind]
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


def test_the_trap_works_where_pickles_are_loaded(hostile: dict[str, Path]) -> None:
    path = hostile["pickles"]
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


UNSAFE = re.compile(
    r"^\s*(import|from) (pickle|cPickle|dill|cloudpickle|joblib|shelve|marshal)\b"
    r"|\b(eval|exec|unsafe_load|full_load|load_all|read_pickle|load_model)\("
    r"|allow_pickle=(?!False)|\b(np|numpy)\.load\((?!.*allow_pickle)"
    r"|yaml\.load\((?!.*\b(_Loader|yaml\.SafeLoader)\))",
    re.M,
)


def test_no_source_can_load_code_from_a_file() -> None:
    sources = [path for folder in ("src", "workflow") for path in (ROOT / folder).rglob("*.py")]
    assert len(sources) > 60
    assert [path for path in sources if UNSAFE.search(path.read_text(encoding="utf-8"))] == []
    for text in (
        *("import pickle", "from joblib import load", "np.load(x)", "np.load(x, allow_pickle=True)"),
        *("yaml.load(x, yaml.Loader)", "yaml.unsafe_load(x)", "eval(x)", "pd.read_pickle(x)"),
    ):
        assert UNSAFE.search(text), text


def test_bombs_need_no_memory(hostile: dict[str, Path]) -> None:
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
        [sys.executable, "-c", code, *(str(hostile[name]) for name in names)],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (limit, limit)),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert len(done.stdout.splitlines()) == len(names), done.stdout
