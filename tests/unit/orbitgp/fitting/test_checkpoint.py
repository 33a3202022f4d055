import json
import os
import re
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from orbitgp import files
from orbitgp.fitting import checkpoint
from orbitgp.fitting.checkpoint import History, Snapshot, data_digest, newest, save

IDENTITY = "0123456789abcdef" * 4


def variables(step=0, scale=1.0):
    return {
        "step": tf.Variable(step, dtype=tf.int64),
        "model/0": tf.Variable(scale * np.array([[0.1, np.pi], [-1e-300, 3.0]])),
        "adam/kernel/1": tf.Variable(np.float32(scale / 3)),
    }


def bytes_of(state):
    return {name: variable.numpy().tobytes() for name, variable in state.items()}


def history():
    return History(
        rows=[{"step": 0, "elbo": None, "test_nll": 0.1}, {"step": 3, "elbo": -1 / 3, "test_nll": 1e-17}],
        timing=[(0, 0.25), (3, 1.5)],
        events=[{"step": 2, "kind": "not finite", "detail": "jitter 1e-05 – β"}],
        seconds=1.625,
        resumed=2,
    )


def save_at(folder, *steps):
    """A checkpoint for each step, with numbers of its own."""
    return [save(folder, Snapshot.take(variables(step, step), history()), IDENTITY) for step in steps]


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_snapshot_keeps_its_values_whatever_happens_later():
    state, told = variables(5), history()
    snapshot = Snapshot.take(state, told)
    before = bytes_of(state)
    for variable in state.values():
        variable.assign(variable * 7)
    told.rows.append({"step": 9})
    told.rows[0]["test_nll"] = 7.0
    told.events[0]["kind"] = "changed"
    again = snapshot.bring_back(state)
    assert bytes_of(state) == before
    assert again == history()
    again.rows.clear()  # what is done with the one brought back does not reach the snapshot either
    assert snapshot.bring_back(state) == history()


def test_what_is_saved_comes_back_to_the_bit(tmp_path):
    state, folder = variables(3), tmp_path / "new folder"
    path = save(folder, Snapshot.take(state, history()), IDENTITY)
    assert path == folder / "checkpoint-000000003.npz"
    arrays = files.read_npz(path)
    assert set(arrays) == {"about", *state}
    about = {"identity": IDENTITY, "history": asdict(history())}
    assert json.loads(str(arrays["about"])) == json.loads(json.dumps(about))
    fresh = variables(0, 5.0)
    found, trouble = newest(folder, fresh, IDENTITY)
    assert trouble == []
    assert found.history == history()
    assert [type(entry) for entry in found.history.timing] == [tuple, tuple]
    found.bring_back(fresh)
    assert bytes_of(fresh) == bytes_of(state)


def test_the_newest_by_step_is_found_and_two_are_kept_whatever_the_dates_say(tmp_path):
    """Clocks of machines that share a folder differ, and a clock can be set back."""
    for path, date in zip(save_at(tmp_path, 9, 100), (4e9, 1.0), strict=True):
        os.utime(path, (date, date))
    assert newest(tmp_path, variables(), IDENTITY)[0].values["step"] == 100
    save_at(tmp_path, 1000)
    assert names(tmp_path) == ["checkpoint-000000100.npz", "checkpoint-000001000.npz"]
    assert newest(tmp_path, variables(), IDENTITY)[0].values["step"] == 1000
    for name in ("lock", "metrics.csv"):
        (tmp_path / name).write_text("")
    for _ in range(2):
        checkpoint.clear(tmp_path)
        assert names(tmp_path) == ["lock", "metrics.csv"]
    assert newest(tmp_path, variables(), IDENTITY) == (None, [])
    assert newest(tmp_path / "absent", variables(), IDENTITY) == (None, [])


def test_halves_of_files_are_taken_away_and_nothing_else(tmp_path, monkeypatch):
    whole = save_at(tmp_path, 1)[0]
    (tmp_path / ".hidden").write_text("somebody's")

    def killed(source, target):
        raise SystemExit

    monkeypatch.setattr(os, "replace", killed)
    monkeypatch.setattr(Path, "unlink", lambda self, missing_ok=False: None)  # a kill lets nobody clean up
    with pytest.raises(SystemExit):
        save_at(tmp_path, 2)
    monkeypatch.undo()
    assert len([*tmp_path.iterdir()]) == 3
    checkpoint.discard_leftovers(tmp_path)
    assert sorted(tmp_path.iterdir()) == [tmp_path / ".hidden", whole]
    checkpoint.discard_leftovers(tmp_path / "absent")


def test_the_digest_of_data_has_their_types_shapes_and_values():
    X, Y = np.arange(6.0).reshape(3, 2), np.arange(3)
    changed = X.copy()
    changed[1, 1] += 1e-12
    others = [(X.reshape(2, 3), Y), (X.astype(np.float32), Y), (X, Y + 1), (changed, Y), (Y, X)]
    assert len({data_digest(*data) for data in [(X, Y), *others]}) == 6
    assert data_digest(np.asfortranarray(X), Y.copy()) == data_digest(X, Y)


# -- damage --------------------------------------------------------------------------------------------------------


def truncate(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip(path):
    content = bytearray(path.read_bytes())
    content[content.index(np.float64(np.pi * 20).tobytes()) + 3] ^= 1
    path.write_bytes(content)


def rewrite(change):
    """Damages the content of a whole file."""

    def damage(path):
        arrays = files.read_npz(path)
        about = json.loads(str(arrays.pop("about")))
        change(arrays, about)
        files.write_npz(path, {"about": np.array(json.dumps(about)), **arrays})

    return damage


DAMAGE = {
    "half": (truncate, "is not a whole .npz"),
    "nothing": (lambda path: path.write_bytes(b""), "is not a whole .npz"),
    "one bit": (flip, "is not a whole .npz"),
    "an array less": (rewrite(lambda arrays, about: arrays.pop("model/0")), "lacks the arrays model/0"),
    "another shape": (
        rewrite(lambda arrays, about: arrays.update({"model/0": np.zeros((3, 2))})),
        r"model/0 is float64 \[3, 2\], this run has float64 \[2, 2\]",
    ),
    "another type": (
        rewrite(lambda arrays, about: arrays.update({"adam/kernel/1": np.zeros(())})),
        r"adam/kernel/1 is float64 \[\], this run has float32 \[\]",
    ),
    "foreign": (rewrite(lambda arrays, about: about.update(identity="f" * 64)), "belongs to .*ffffffffffff$"),
    "no identity": (rewrite(lambda arrays, about: about.pop("identity")), "does not say what it is"),
    "no history": (rewrite(lambda arrays, about: about.pop("history")), "does not say what it is"),
    "another history": (
        rewrite(lambda arrays, about: about["history"].update(mood="good")),
        "does not say what it is.*mood",
    ),
    "bad timing": (rewrite(lambda arrays, about: about["history"].update(timing=[3])), "does not say what it is"),
    "no json": (
        lambda path: files.write_npz(path, files.read_npz(path) | {"about": np.array("{")}),
        "does not say what it is",
    ),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_newest_is_named_and_the_one_before_is_taken(tmp_path, kind):
    damage, says = DAMAGE[kind]
    first, last = save_at(tmp_path, 10, 20)
    damage(last)
    found, trouble = newest(tmp_path, variables(), IDENTITY)
    assert found.values["step"] == 10
    assert found.values["model/0"].tobytes() == variables(10, 10)["model/0"].numpy().tobytes()
    assert len(trouble) == 1
    assert re.search(rf"checkpoint passed over: .*checkpoint-000000020\.npz.*{says}", trouble[0]), trouble
    truncate(first)
    found, trouble = newest(tmp_path, variables(), IDENTITY)
    assert found is None and len(trouble) == 2 and "000000010" in trouble[1]
