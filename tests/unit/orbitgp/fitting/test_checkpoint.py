import json
import os
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from orbitgp import files
from orbitgp.fitting import checkpoint
from orbitgp.fitting.checkpoint import History, Snapshot, newest, save

DIGEST = "0123456789abcdef" * 4


def variables(step=0, scale=1.0):
    return {
        "step": tf.Variable(step, dtype=tf.int64),
        "model/0": tf.Variable(scale * np.array([[0.1, np.pi], [-1e-300, 3.0]])),
        "adam/kernel/1": tf.Variable(np.float32(scale / 3)),
    }


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
    return [save(folder, Snapshot.take(variables(step, step), history()), DIGEST) for step in steps]


# -- snapshots -----------------------------------------------------------------------------------------------------


def test_a_snapshot_keeps_its_values_whatever_happens_later():
    state, told = variables(5), history()
    snapshot = Snapshot.take(state, told)
    before = {name: variable.numpy().tobytes() for name, variable in state.items()}
    for variable in state.values():
        variable.assign(variable * 7)
    told.rows.append({"step": 9})
    told.rows[0]["test_nll"] = 7.0
    told.events[0]["kind"] = "changed"
    again = snapshot.bring_back(state)
    assert {name: variable.numpy().tobytes() for name, variable in state.items()} == before
    assert again == history()
    again.rows.clear()  # what is done with the one brought back does not reach the snapshot either
    assert snapshot.bring_back(state) == history()


# -- round trip ----------------------------------------------------------------------------------------------------


def test_what_is_saved_comes_back_to_the_bit(tmp_path):
    state = variables(3)
    path = save(tmp_path / "new folder", Snapshot.take(state, history()), DIGEST)
    assert path == tmp_path / "new folder" / "checkpoint-000000003.npz"
    fresh = variables(0, 5.0)
    found, trouble = newest(tmp_path / "new folder", fresh, DIGEST)
    assert trouble == []
    assert found.history == history()
    assert [type(entry) for entry in found.history.timing] == [tuple, tuple]
    found.bring_back(fresh)
    for name, variable in state.items():
        assert fresh[name].numpy().tobytes() == variable.numpy().tobytes()


def test_the_newest_is_found_and_two_are_kept(tmp_path):
    save_at(tmp_path, 9, 100, 1000)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint-000000100.npz", "checkpoint-000001000.npz"]
    found, _ = newest(tmp_path, variables(), DIGEST)
    assert found.values["step"] == 1000


def test_there_may_be_none(tmp_path):
    assert newest(tmp_path, variables(), DIGEST) == (None, [])
    assert newest(tmp_path / "absent", variables(), DIGEST) == (None, [])


def test_clear_takes_the_checkpoints_and_nothing_else(tmp_path):
    save_at(tmp_path, 1, 2)
    for name in ("lock", "metrics.csv"):
        (tmp_path / name).write_text("")
    checkpoint.clear(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lock", "metrics.csv"]
    checkpoint.clear(tmp_path)


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


# -- damage --------------------------------------------------------------------------------------------------------


def truncate(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path):
    path.write_bytes(b"")


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


def set_in(place, name, value):
    return rewrite(lambda arrays, about: (arrays if place == "arrays" else about).__setitem__(name, value))


def no_json(path):
    files.write_npz(path, files.read_npz(path) | {"about": np.array("{")})


DAMAGE = {
    "half": (truncate, "is not a whole .npz"),
    "nothing": (empty, "is not a whole .npz"),
    "one bit": (flip, "is not a whole .npz"),
    "an array less": (rewrite(lambda arrays, about: arrays.pop("model/0")), "lacks the arrays model/0"),
    "another shape": (
        set_in("arrays", "model/0", np.zeros((3, 2))),
        r"model/0 is float64 \[3, 2\], this run has float64 \[2, 2\]",
    ),
    "another type": (
        set_in("arrays", "adam/kernel/1", np.zeros(())),
        r"adam/kernel/1 is float64 \[\], this run has float32 \[\]",
    ),
    "foreign": (set_in("about", "config_digest", "f" * 64), "belongs to another configuration, ffffffffffff$"),
    "no digest": (rewrite(lambda arrays, about: about.pop("config_digest")), "does not say what it is"),
    "no history": (rewrite(lambda arrays, about: about.pop("history")), "does not say what it is"),
    "another history": (
        rewrite(lambda arrays, about: about["history"].update(mood="good")),
        "does not say what it is.*mood",
    ),
    "bad timing": (rewrite(lambda arrays, about: about["history"].update(timing=[3])), "does not say what it is"),
    "no json": (no_json, "does not say what it is"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_newest_is_named_and_the_one_before_is_taken(tmp_path, kind):
    damage, says = DAMAGE[kind]
    _, last = save_at(tmp_path, 10, 20)
    assert newest(tmp_path, variables(), DIGEST)[0].values["step"] == 20
    damage(last)
    found, trouble = newest(tmp_path, variables(), DIGEST)
    assert found.values["step"] == 10
    assert found.values["model/0"].tobytes() == variables(10, 10)["model/0"].numpy().tobytes()
    assert len(trouble) == 1
    with pytest.raises(AssertionError, match=rf"checkpoint passed over: .*checkpoint-000000020\.npz.*{says}"):
        raise AssertionError(trouble[0])


def test_if_all_are_damaged_there_is_none_and_each_is_named(tmp_path):
    for path in save_at(tmp_path, 10, 20):
        truncate(path)
    found, trouble = newest(tmp_path, variables(), DIGEST)
    assert found is None
    assert [f"{step:09d}" in line for step, line in zip((20, 10), trouble, strict=True)] == [True, True]


def test_a_snapshot_holds_only_what_a_checkpoint_needs(tmp_path):
    path = save_at(tmp_path, 4)[0]
    arrays = files.read_npz(path)
    assert set(arrays) == {"about", *variables()}
    assert json.loads(str(arrays["about"])) == json.loads(
        json.dumps({"config_digest": DIGEST, "history": asdict(history())})
    )


def test_the_newest_is_the_one_of_the_latest_step_whatever_the_dates_say(tmp_path):
    """Clocks of machines that share a folder differ, and a clock can be set back."""
    for path, date in zip(save_at(tmp_path, 10, 20), (4e9, 1.0), strict=True):
        os.utime(path, (date, date))
    found, trouble = newest(tmp_path, variables(), DIGEST)
    assert (found.values["step"], trouble) == (20, [])
    save_at(tmp_path, 30)
    assert sorted(path.name[-6:] for path in tmp_path.iterdir()) == ["20.npz", "30.npz"]
