"""Claims and verdicts."""

import contextlib
import csv
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orbitgp_paper import config as configuration
from orbitgp_paper.analysis import claims
from orbitgp_paper.analysis import tables as tables_module
from orbitgp_paper.analysis.references import ClaimError


def claim(**form: Any) -> dict[str, Any]:
    return {"id": "c", "claim": "It is so.", "where": "section 1", **form}


def verdict(tables: dict[str, pd.DataFrame], **form: Any) -> tuple[str, str]:
    row = claims.judge([claim(**form)], tables).iloc[0]
    return row["verdict"], row["evidence"]


@pytest.fixture()
def tables():
    mnist = pd.DataFrame(
        {
            "variant": ["rbf", "affine", "local", "lost"],
            "error_mean": [4.0, 2.0, 3.0, np.nan],
            "error_std": [0.5, np.nan, 0.25, np.nan],
            "elbo_mean": [10.0, 30_000.0, 20.0, 5.0],
            "n_seeds": [2, 1, 2, 2],
            "n_diverged": [0, 0, 1, 2],
        }
    )
    many = pd.DataFrame({"variant": [f"v{i}" for i in range(9)], "error_mean": np.arange(9.0), "n_seeds": 1})
    return {"mnist": mnist, "many": many}


# ---- verdicts ----


@pytest.mark.parametrize(
    ("comparison", "expected"),
    [
        (["mnist/affine/error_mean", "<", "mnist/rbf/error_mean"], "holds"),
        (["mnist/rbf/error_mean", "<", "mnist/affine/error_mean"], "fails"),
        (["mnist/rbf/error_mean", "<", 4], "fails"),
        (["mnist/rbf/error_mean", "<=", 4], "holds"),
        (["mnist/rbf/error_mean", ">", 4.0], "fails"),
        (["mnist/rbf/error_mean", ">=", 4], "holds"),
        (["mnist/affine/error_mean", "<=", {"of": "mnist/rbf/error_mean", "times": 0.5}], "holds"),
        (["mnist/affine/error_mean", "<", {"of": "mnist/rbf/error_mean", "times": 0.5}], "fails"),
        (["mnist/affine/error_mean", ">", {"of": "mnist/rbf/error_mean", "plus": -2.5}], "holds"),
        ([{"of": "mnist/affine/error_mean", "times": 3, "plus": 1}, ">", "mnist/rbf/error_mean"], "holds"),
        (["mnist/none/error_mean", "<", 4], "not measured"),
        (["mnist/rbf/error_mean", "<", "rotated/rbf/error_mean"], "not measured"),
        (["mnist/lost/error_mean", "<", 4], "not measured"),
    ],
)
def test_one_comparison(tables, comparison, expected):
    assert verdict(tables, all=[comparison])[0] == expected
    assert verdict(tables, any=[comparison])[0] == expected


YES = ["mnist/affine/error_mean", "<", 3]
NO = ["mnist/affine/error_mean", ">", 3]
UNKNOWN = ["mnist/none/error_mean", ">", 3]


@pytest.mark.parametrize(
    ("comparisons", "all_of_them", "any_of_them"),
    [
        ([YES, YES], "holds", "holds"),
        ([YES, NO], "fails", "holds"),
        ([NO, NO], "fails", "fails"),
        ([YES, UNKNOWN], "not measured", "holds"),
        ([NO, UNKNOWN], "not measured", "not measured"),
    ],
)
def test_all_and_any(tables, comparisons, all_of_them, any_of_them):
    assert verdict(tables, all=comparisons)[0] == all_of_them
    assert verdict(tables, any=comparisons)[0] == any_of_them


def test_pattern_means_every_row(tables):
    assert verdict(tables, all=[["many/v*/error_mean", "<", 9]])[0] == "holds"
    assert verdict(tables, all=[["many/v*/error_mean", "<", 8]])[0] == "fails"
    assert verdict(tables, any=[["many/v*/error_mean", "<", 8]])[0] == "fails"
    assert verdict(tables, all=[["many/x*/error_mean", "<", 8]])[0] == "not measured"
    assert verdict(tables, all=[["mnist/*/error_mean", "<", 8]])[0] == "not measured"  # one of them is blank


def test_what_it_is_about_must_have_been_run(tables):
    state, evidence = verdict(tables, all=[YES], given=[["mnist/rbf/n_seeds", ">=", 3]])
    assert state == "not measured"
    assert "mnist/rbf/n_seeds 2 < 3" in evidence
    assert verdict(tables, all=[YES], given=[["mnist/rbf/n_seeds", ">=", 2]])[0] == "holds"
    assert verdict(tables, all=[YES], given=[UNKNOWN])[0] == "not measured"


def test_same_best(tables):
    found = {"lowest": "mnist/*/error_mean", "highest": "mnist/*/elbo_mean"}
    assert verdict(tables, same_best=found)[0] == "not measured"  # one error is blank
    rows = {"mnist": tables["mnist"][:3]}
    assert verdict(rows, same_best=found)[0] == "holds"
    rows["mnist"] = rows["mnist"].assign(elbo_mean=[3.0, 2.0, 1.0])
    state, evidence = verdict(rows, same_best=found)
    assert state == "fails"
    assert "the lowest is mnist/affine/error_mean 2" in evidence
    assert "the highest mnist/rbf/elbo_mean 3" in evidence
    assert verdict({"mnist": rows["mnist"][:1]}, same_best=found)[0] == "not measured"
    assert verdict({}, same_best=found)[0] == "not measured"


def test_what_cannot_be_measured_says_why(tables):
    assert verdict(tables, unmeasured="There is no such model.") == ("not measured", "There is no such model.")


# ---- evidence ----


def test_evidence_has_the_numbers(tables):
    evidence = verdict(tables, all=[["mnist/affine/error_mean", "<=", {"of": "mnist/rbf/error_mean", "times": 0.5}]])[1]
    assert evidence == "mnist/affine/error_mean 2 (one seed) ≤ 0.5 × mnist/rbf/error_mean 4 ± 0.5 (2 seeds) = 2"


@pytest.mark.parametrize(
    ("std", "said"), [(0.0123, "0.012"), (9.9, "9.9"), (9.96, "10"), (99.7, "100"), (1234.5, "1,234"), (np.inf, "inf")]
)
def test_a_spread_is_said_without_exponents(tables, std, said):
    tables["mnist"].loc[0, "error_std"] = std
    assert f"4 ± {said} (2 seeds)" in verdict(tables, all=[["mnist/rbf/error_mean", ">", 1]])[1]


@pytest.mark.parametrize(("sign", "written"), [("<", "≥"), ("<=", ">"), (">", "≤"), (">=", "<")])
def test_evidence_of_what_fails_is_the_opposite(tables, sign, written):
    limit = 1 if sign.startswith("<") else 9
    evidence = verdict(tables, all=[["mnist/rbf/error_mean", sign, limit]])[1]
    assert evidence == f"mnist/rbf/error_mean 4 ± 0.5 (2 seeds) {written} {limit}"


NEAR = " (by less than two standard errors)"


@pytest.mark.parametrize(
    ("mean", "times", "near"),
    [(3.2, 1.0, True), (4.8, 1.0, True), (2.8, 1.0, False), (5.2, 1.0, False), (6.5, 0.5, True), (6.4, 0.5, False)],
)
@pytest.mark.parametrize("seeds", [2, 8])
def test_evidence_tells_of_means_that_seeds_may_turn_round(tables, mean, times, near, seeds):
    """4 and times · mean with standard errors of 0.5/√2 and times · 0.5/√2, whatever the number of seeds."""
    std = 0.5 * np.sqrt(seeds / 2)
    tables["mnist"].loc[0, ["error_std", "n_seeds"]] = [std, seeds]
    other = ["other", mean, std, seeds, 0]
    tables["mnist"].loc[3, ["variant", "error_mean", "error_std", "n_seeds", "n_diverged"]] = other
    right: Any = {"of": "mnist/other/error_mean", "times": times}
    state, evidence = verdict(tables, all=[["mnist/rbf/error_mean", ">", right]])
    assert state == ("holds" if times * mean < 4 else "fails")
    assert evidence.endswith(NEAR) == near
    assert near == (abs(4 - times * mean) < 2 * np.sqrt(0.125 + times**2 * 0.125))


@pytest.mark.parametrize(("limit", "near"), [(3.4, True), (4.6, True), (3.2, False), (4.8, False)])
def test_a_constant_has_no_error_of_its_own(tables, limit, near):
    """Beside 4 ± 0.5 of two seeds, two standard errors of which are 0.71."""
    assert verdict(tables, all=[["mnist/rbf/error_mean", ">", limit]])[1].endswith(NEAR) == near


def test_of_one_seed_no_error_is_known(tables):
    tables["mnist"].loc[1, "error_mean"] = 3.99
    assert "standard errors" not in verdict(tables, all=[["mnist/rbf/error_mean", ">", "mnist/affine/error_mean"]])[1]


def test_the_best_of_several_may_be_so_by_chance(tables):
    rows = pd.DataFrame({"variant": ["a", "b"], "error_mean": [2.0, 2.1], "elbo_mean": [9.0, 5.0], "n_seeds": 2})
    tables["pair"] = rows.assign(error_std=0.2, elbo_std=0.2)
    found = verdict(tables, same_best={"lowest": "pair/*/error_mean", "highest": "pair/*/elbo_mean"})
    said = f"pair/a/error_mean 2 ± 0.2 (2 seeds){NEAR}, the highest pair/a/elbo_mean 9 ± 0.2 (2 seeds)"
    assert found == ("holds", f"of 2, the lowest is {said}")


def test_evidence_tells_of_divergence(tables):
    assert "(1 of 2 diverged)" in verdict(tables, all=[["mnist/local/error_mean", "<", 4]])[1]
    assert (
        "mnist/lost/error_mean is blank (2 of 2 diverged)"
        in verdict(tables, all=[["mnist/lost/error_mean", "<", 4]])[1]
    )


def test_evidence_of_many_rows_is_summed_up(tables):
    evidence = verdict(tables, all=[["many/v*/error_mean", "<", 9]])[1]
    assert evidence == "true of 9 among 9, the nearest to failing: many/v8/error_mean 8 (one seed) < 9"
    evidence = verdict(tables, all=[["many/v*/error_mean", "<", 7.5]])[1]
    assert evidence == "true of 8 among 9, the worst: many/v8/error_mean 8 (one seed) ≥ 7.5"


def test_evidence_survives_infinity(tables):
    tables["many"].loc[3, "error_mean"] = np.inf
    state, evidence = verdict(tables, all=[["many/v*/error_mean", "<", 9]])
    assert state == "fails"
    assert "many/v3/error_mean inf (one seed) ≥ 9" in evidence


# ---- claims that are none ----


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({}, "exactly one of all, any, same_best, unmeasured, got none"),
        ({"all": [YES], "any": [YES]}, "exactly one of"),
        ({"all": []}, "c.all must be a list of comparisons"),
        ({"all": YES}, "c.all.0 must be [number, sign, number]"),
        ({"all": "mnist/rbf/error_mean < 3"}, "c.all must be a list of comparisons"),
        ({"all": ["__import__('os').system('true')"]}, "must be [number, sign, number]"),
        ({"all": [["mnist/rbf/error_mean", "==", 3]]}, "the sign must be one of <, <=, >, >=, got '=='"),
        ({"all": [["mnist/rbf/error_mean", ["<"], 3]]}, "the sign must be one of"),
        ({"all": [["mnist/rbf/error_mean", "<"]]}, "must be [number, sign, number]"),
        ({"all": [[3, "<", "mnist/rbf/error_mean"]]}, "must begin with table/row/column, got 3"),
        ({"all": [["mnist/rbf/error_mean", "<", "3"]]}, "expected table/row/column, got '3'"),
        ({"all": [["mnist/rbf/error_mean", "<", "1e-3"]]}, "expected table/row/column, got '1e-3'"),
        ({"all": [["mnist/rbf/error_mean", "<", float("nan")]]}, "a finite number, got nan"),
        ({"all": [["mnist/rbf/error_mean", "<", float("inf")]]}, "a finite number, got inf"),
        ({"all": [["mnist/rbf/error_mean", "<", True]]}, "a finite number, got True"),
        ({"all": [["mnist/rbf/error_mean", "<", None]]}, "a finite number, got None"),
        ({"all": [["mnist/rbf/error_mean", "<", {"times": 2}]]}, "has the keys of, times and plus"),
        ({"all": [["mnist/rbf/error_mean", "<", {"of": "mnist/rbf/x", "by": 2}]]}, "has the keys of, times and plus"),
        ({"all": [["mnist/rbf/error_mean", "<", {"of": "mnist/rbf/x", "times": "2"}]]}, "a finite number, got '2'"),
        ({"all": [["toy/a:b/x", "<", 3]]}, "a row of toy is named by model"),
        ({"given": [["x", "<", 1]], "all": [YES]}, "c.given.0: expected table/row/column"),
        ({"same_best": {"lowest": "mnist/*/a"}}, "must have the keys lowest and highest"),
        ({"same_best": {"lowest": "mnist/*/a", "highest": "rotated/*/a"}}, "must name the same rows twice"),
        ({"unmeasured": ""}, "c.unmeasured must be text"),
        ({"unmeasured": True}, "c.unmeasured must be text"),
        ({"all": [YES], "reading": 3}, "c.reading must be text"),
        ({"all": [YES], "verdict": "holds"}, "unknown keys verdict"),
        ({"all": [YES], "claim": None}, "c.claim must be text"),
        ({"all": [YES], "where": "  "}, "c.where must be text"),
        ({"all": [YES], "id": 7}, "7.id must be text"),
    ],
)
def test_claim_that_is_none(tables, form, words):
    with pytest.raises(ClaimError) as error:
        claims.judge([claim(**form)], tables)
    assert words in str(error.value)


@pytest.mark.parametrize("wrong", [None, {}, "all", 3])
def test_claims_must_be_a_list(wrong):
    with pytest.raises(ClaimError, match="must be a list"):
        claims.judge(wrong, {})


def test_claims_must_be_blocks_of_different_names():
    with pytest.raises(ClaimError, match="claim 0 must be a block of keys, not 3"):
        claims.judge([3], {})
    with pytest.raises(ClaimError, match="c stands twice"):
        claims.judge([claim(all=[YES])] * 2, {})


def test_slip_in_a_column_names_the_claim(tables):
    with pytest.raises(ClaimError, match=r"^c: mnist/rbf/eror: the table mnist has no column 'eror'"):
        claims.judge([claim(all=[["mnist/rbf/eror", "<", 3]])], tables)


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from([*claims.ALLOWED, "x"]),
            st.none()
            | st.text(max_size=8)
            | st.integers()
            | st.lists(st.lists(st.text(max_size=8), max_size=3), max_size=2),
        ),
        max_size=3,
    )
)
def test_any_block_is_judged_or_refused(found):
    with contextlib.suppress(ClaimError):
        claims.judge(found, {})


# ---- files ----


def test_files_of_claims(tables, tmp_path):
    own = [
        claim(all=[YES], reading="As it stands | or not."),
        {**claim(all=[NO]), "id": "d"},
        {**claim(unmeasured="No."), "id": "e"},
    ]
    found = claims.judge(own, tables)
    files = claims.write_claims(found, tmp_path / "claims", "What the paper claims.")
    assert files == [tmp_path / "claims.csv", tmp_path / "claims.md"]
    with files[0].open() as file:
        rows = list(csv.DictReader(file))
    assert [row["verdict"] for row in rows] == ["holds", "fails", "not measured"]
    assert list(rows[0])[:4] == ["claim", "where", "verdict", "evidence"]
    text = files[1].read_text()
    assert text.startswith("What the paper claims. Of 3 claims: 1 hold, 1 fail, 1 not measured.\n\n| claim | where |")
    assert "As it stands \\| or not." in text
    before = [file.read_bytes() for file in files]
    claims.write_claims(found, tmp_path / "claims", "What the paper claims.")
    assert [file.read_bytes() for file in files] == before


def test_damaged_file_of_claims_is_named(tmp_path):
    (tmp_path / "claims.yaml").write_text("- {id: a, claim: b, where: c}\n")
    with pytest.raises(ClaimError, match=r"claims\.yaml: a must have exactly one"):
        claims.read_claims(tmp_path / "claims.yaml")
    (tmp_path / "claims.yaml").write_text("- {id: a, id: b}\n")
    with pytest.raises(configuration.ConfigError, match="a second time"):
        claims.read_claims(tmp_path / "claims.yaml")


# ---- the paper's ----


@pytest.fixture()
def paper_claims(root):
    return claims.read_claims(root / "config" / "claims.yaml")


@pytest.fixture()
def all_tables(root, finals, toy_metrics, toy_halves, toy_bounds, insensitivity_frame, estimators_frame):
    """Every table that a run of the paper's size makes, as the files have them."""
    config = configuration.load("paper", root / "config")
    rows = []
    for run in config.all_runs():
        spec = config.spec(run)
        own = finals(run.experiment, {run.variant: [3.0]}, train_size=spec.dataset.train).assign(seed=run.seed)
        if spec.orbit.kind == "rotation":
            own["orbit.alpha"] = spec.orbit.alpha
        if spec.orbit.kind == "affine":
            own["orbit.width.a_xy"] = own["orbit.width.a_yx"] = 0.1
        rows.append(own.assign(alpha_true=getattr(spec.dataset, "alpha", np.nan)))
    frame = pd.concat(rows, ignore_index=True)
    values = tables_module.read_paper_values(root / "config" / "paper_values.yaml")
    return {
        "toy": tables_module.toy_table(toy_metrics),
        "toy_halves": tables_module.toy_halves_table(toy_halves),
        "toy_bounds": tables_module.toy_bounds_table(toy_bounds),
        "parity": tables_module.parity_table(frame, frame.assign(step=0)),
        "mnist": tables_module.mnist_table(frame, values),
        "rotated": tables_module.experiment_table(frame, "rotated"),
        "insensitivity": tables_module.insensitivity_table(insensitivity_frame),
        "estimators": tables_module.estimators_table(estimators_frame),
        "runs": tables_module.runs_table(frame),
    }


def test_every_claim_of_the_paper_finds_its_numbers(paper_claims, all_tables):
    """Nothing is asked of the verdicts, only that the paper's size leaves no claim without one."""
    found = claims.judge(paper_claims, all_tables)
    for own, row in zip(paper_claims, found.itertuples(), strict=True):
        assert (row.verdict == "not measured") == ("unmeasured" in own), (own["id"], row.evidence)


def test_claims_can_be_judged_from_the_files(paper_claims, all_tables, tmp_path):
    for name, table in all_tables.items():
        tables_module.write_table(table, tmp_path / name, "x")
    read = {name: tables_module.read_table(tmp_path / f"{name}.csv") for name in all_tables}
    pd.testing.assert_frame_equal(claims.judge(paper_claims, read), claims.judge(paper_claims, all_tables))


def test_nothing_measured_is_said_of_every_claim(paper_claims):
    assert set(claims.judge(paper_claims, {})["verdict"]) == {"not measured"}


def test_the_words_that_leave_a_number_open_have_a_reading(paper_claims):
    for own in paper_claims:
        if any(word in own["claim"] for word in ("large margin", "much ", "slightly", "similar", "well", "very")):
            assert own.get("reading"), own["id"]


def test_the_tables_numbers_are_those_of_paper_values(paper_claims, root):
    values = tables_module.read_paper_values(root / "config" / "paper_values.yaml")
    by_id = {own["id"]: own for own in paper_claims}
    for variant in ("rbf", "rotation", "affine", "local"):
        own, value = by_id[f"mnist_table_{variant}"], values[f"mnist/{variant}/error"]
        assert f"{value['value']} ± {value['std']}" in own["claim"]
        assert [side["plus"] for _, _, side in own["all"]] == pytest.approx([-3 * value["std"], 3 * value["std"]])
