"""Reading what runs left behind."""

import json
import runpy
import shutil
from pathlib import Path

import numpy as np
import pytest

from orbitgp.files import DamagedFile, sums
from orbitgp_paper.runs.reading import read_runs

SCRIPTS = Path(__file__).resolve().parents[4] / "workflow" / "scripts"


def edit(path, **changes):
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def sign(folder):
    """Brings the sums of a run's files up to what they are now."""
    edit(folder / "final.json", files=sums(folder, ("config.yaml", "metrics.csv")))
    edit(folder / "provenance.json", files=sums(folder, ["final.json"]))


def test_two_frames(write_run):
    rotation = {"orbit.alpha": 33.0, "kernel.variance": 0.1}
    runs = read_runs([write_run(seed=1), write_run(seed=0), write_run(variant="rotation", parameters=rotation)])
    assert list(zip(runs.finals.variant, runs.finals.seed, strict=True)) == [("rbf", 1), ("rbf", 0), ("rotation", 0)]
    expected = {"label": "RBF", "dataset": "mnist", "inducing": 16, "steps": 6, "events": 0, "diverged": False}
    expected |= {"elbo": -101.0, "test_error": 11.0, "test_nll": 0.25}
    expected |= {"wall_s": 12.5, "device": "two cores", "commit": "ab"}
    assert runs.finals.iloc[0][list(expected)].to_dict() == expected
    assert list(runs.finals["orbit.alpha"].isna()) == [True, True, False]
    assert list(runs.finals["start"].isna()) == [True, True, False] and runs.finals["start"][2] == 33.0
    assert runs.finals.iloc[0][["optimiser", "transform", "shared"]].to_list() == ["natural", None, False]
    names = (
        "experiment",
        "variant",
        "label",
        "seed",
        "dataset",
        "alpha_true",
        "step",
        "elbo",
        "test_error",
        "test_nll",
    )
    assert tuple(runs.metrics.columns[:10]) == names
    assert list(runs.metrics["step"]) == [0, 6] * 3
    assert np.isnan(runs.metrics["elbo"][0])
    assert list(runs.metrics[runs.metrics["variant"] == "rotation"]["orbit.alpha"]) == [33.0, 33.0]


@pytest.mark.parametrize(
    ("curve", "rise"),
    [
        ({0: "", 80: 0.0, 81: 1.0, 90: 3.0, 91: 4.0, 95: 6.0, 100: 8.0}, 6.0 - 2.0),
        ({0: "", 80: 5.0, 100: 8.0}, np.nan),
        ({0: "", 85: 5.0, 90: "", 95: "", 100: 2.0}, -3.0),
        ({0: ""}, np.nan),
        ({0: "", 85: 5.0, 100: "inf"}, np.inf),
        ({0: "", 85: 0.0, 100: repr(0.1 + 0.2)}, 0.1 + 0.2),  # every digit
    ],
)
def test_how_much_the_bound_still_rose(write_run, curve, rise):
    folder = write_run()
    rows = [f"{step},{elbo},9.0,0.2,0.5" for step, elbo in curve.items()]
    (folder / "metrics.csv").write_text("\n".join(["step,elbo,test_error,test_nll,kernel.variance", *rows]) + "\n")
    sign(folder)
    np.testing.assert_equal(read_runs([folder]).finals["late_rise"][0], rise)


def test_true_angle_of_parity_and_a_folder_as_a_word(write_run, monkeypatch):
    dataset = {"name": "parity90", "kind": "parity", "alpha": 90, "train": 200, "test": 100}
    folder = write_run("parity", "rbf_90", dataset=dataset)
    monkeypatch.chdir(folder.parent)
    runs = read_runs(iter([folder.name]))
    assert runs.finals["alpha_true"][0] == runs.metrics["alpha_true"][0] == 90.0


def test_widths_of_intervals_whose_ends_may_have_changed_places(write_run):
    ends = {"lower.a_xy": 0.2, "upper.a_xy": -0.1, "lower.t_x": -0.5, "upper.t_x": 0.5, "lower.alone": 1.0}
    row = read_runs([write_run(parameters={f"orbit.{name}": value for name, value in ends.items()})]).finals.iloc[0]
    assert (row["orbit.width.a_xy"], row["orbit.width.t_x"]) == (pytest.approx(0.3), 1.0)
    assert "orbit.width.alone" not in row


def test_diverged_run_stays_with_what_it_has(write_run):
    events = [{"step": 3, "kind": "not finite", "detail": "x"}] * 5 + [{"step": 3, "kind": "given up", "detail": "y"}]
    row = read_runs([write_run(diverged=True, events=events, elbo=None, test_error=None)]).finals.iloc[0]
    assert row["diverged"] and np.isnan(row["elbo"]) and np.isnan(row["test_error"])
    assert (row["events"], row["event_kinds"]) == (6, "given up, not finite ×5")


def test_no_runs_one_twice_or_one_under_another_name(write_run):
    with pytest.raises(ValueError, match="no runs"):
        read_runs([])
    folder = write_run(seed=0)
    with pytest.raises(ValueError, match="a second time"):
        read_runs([folder, folder])
    shutil.copytree(folder, folder.parent / "seed1")
    with pytest.raises(DamagedFile, match=r"seed1/final\.json is of mnist/rbf/seed0"):
        read_runs([folder.parent / "seed1"])


@pytest.mark.parametrize("name", ["final.json", "provenance.json", "config.yaml", "metrics.csv"])
def test_file_that_is_damaged_or_missing_is_named(write_run, name):
    folder = write_run()
    for content in (b"", b"\xff\xfe\x00", b"{", b"[]", b"<html>error 403</html>"):
        (folder / name).write_bytes(content)
        with pytest.raises(DamagedFile, match=name):
            read_runs([folder])
    (folder / name).unlink()
    with pytest.raises(FileNotFoundError, match=name):
        read_runs([folder])


HEAD = "step,elbo,test_error,test_nll\n"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"elbo": "high"}, "final.*elbo must be a number, not 'high'"),
        ({"seed": "0"}, "final.*seed must be of type int"),
        ({"diverged": "no"}, "final.*diverged must be of type bool"),
        ({"events": ["boom"]}, "final.*an event must be a block of keys, not 'boom'"),
        ({"parameters": []}, "final.*parameters must be of type dict"),
        ({"parameters": {"orbit.alpha": "wide"}}, "final.*orbit.alpha must be a number"),
        ("step,elbo\n0,1\n", "metrics.*lacks the columns test_error, test_nll"),
        (HEAD, "metrics.*has no rows"),
        (f"{HEAD}5,,1,1\n3,1,1,1\n", "metrics.*step must increase"),
        (f"{HEAD}0,high,1,1\n", "metrics.*elbo must be numbers, but holds 'high'"),
        (f"{HEAD}0,1,1,1,9,9\n1,1,1\n0,1,2,3,4,5,6,7\n", "metrics.*is not a table"),
    ],
)
def test_numbers_that_are_not_what_they_should_be(write_run, content, words):
    folder = write_run()
    if isinstance(content, dict):
        edit(folder / "final.json", **content)
    else:
        (folder / "metrics.csv").write_text(content)
    with pytest.raises(DamagedFile, match=words):
        read_runs([folder])
    (folder / "final.json").write_text("{}")
    with pytest.raises(DamagedFile, match=r"final\.json lacks experiment, variant"):
        read_runs([folder])


@pytest.mark.parametrize("name", ["metrics.csv", "config.yaml", "final.json"])
def test_a_file_of_another_run_or_edited_by_hand_is_named(write_run, name):
    """It is whole and fits in every other way: only its sum gives it away."""
    folder = write_run(seed=1)
    path = folder / name
    text = path.read_text()
    changed = text.replace("-100.25", "-99.25").replace("count: 16", "count: 17").replace("0.5,", "0.25,")
    assert changed != text
    path.write_text(changed)
    with pytest.raises(DamagedFile, match=rf"{name} is not the file that (final|provenance)\.json beside it"):
        read_runs([folder])


@pytest.mark.parametrize("made", ["table.py runs.csv", "figure.py fig5.svg", "figure.py parts.svg"])
def test_neither_tables_nor_figures_are_made_of_it(write_run, made, tmp_path, monkeypatch):
    script, output = made.split()
    folder = write_run()
    metrics = folder / "metrics.csv"
    metrics.write_text(metrics.read_text().replace("-100.25", "-99.25"))
    more = ["--caption", "", "--paper", "config/paper_values.yaml"] if script == "table.py" else []
    words = [script, "--output", str(tmp_path / "made" / output), *more, str(folder / "final.json")]
    monkeypatch.setattr("sys.argv", words)
    monkeypatch.syspath_prepend(str(SCRIPTS))
    with pytest.raises(DamagedFile, match=r"metrics\.csv is not the file that final\.json beside it"):
        runpy.run_path(str(SCRIPTS / script), run_name="__main__")
    assert not (tmp_path / "made").exists()


def test_sums_of_files_that_did_not_travel_and_sums_that_are_none(write_run):
    folder = write_run()

    def signed(found):
        edit(folder / "final.json", files=found)
        edit(folder / "provenance.json", files=sums(folder, ["final.json"]))

    for found, words in (
        ({}, "does not say which files belong to it"),
        (["metrics.csv"], "does not say which files belong to it"),
        ({"../../elsewhere": "0" * 64}, "names a file elsewhere"),
    ):
        signed(found)
        with pytest.raises(DamagedFile, match=rf"final\.json {words}"):
            read_runs([folder])
    signed({"params.npz": "0" * 64})
    read_runs([folder])  # parameters are not in the repository
    (folder / "params.npz").write_bytes(b"of another run")
    with pytest.raises(DamagedFile, match=r"params\.npz is not the file"):
        read_runs([folder])
