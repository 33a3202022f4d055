"""Claims and verdicts."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ttest_1samp, ttest_ind

from orbitgp_paper.analysis import claims
from orbitgp_paper.analysis.formats import read_table
from orbitgp_paper.analysis.tables import read_paper_values


def sample(mean: float, std: float, count: int) -> np.ndarray:
    """Numbers with exactly this mean and this standard deviation (ddof = 1)."""
    numbers = np.arange(float(count))
    return mean + std * (numbers - numbers.mean()) / numbers.std(ddof=1)


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
    many["elbo_mean"] = np.where(many.error_mean == 0, -np.inf, 1.0)
    return {"mnist": mnist, "many": many}


# ---- verdicts ----


RBF, AFFINE, LOST = (f"mnist/{name}/error_mean" for name in ("rbf", "affine", "lost"))
YES, NO, UNKNOWN = [AFFINE, "<", 3], [AFFINE, ">", 3], ["mnist/none/error_mean", ">", 3]
HOLDS, FAILS, OPEN = "holds", "fails", "not measured"


@pytest.mark.parametrize(
    ("comparisons", "all_of_them", "any_of_them"),
    [
        ([[AFFINE, "<", RBF]], HOLDS, HOLDS),
        ([[RBF, "<", AFFINE]], FAILS, FAILS),
        ([[RBF, "<", 4]], FAILS, FAILS),
        ([[RBF, "<=", 4]], HOLDS, HOLDS),
        ([[RBF, ">", 4.0]], FAILS, FAILS),
        ([[RBF, ">=", 4]], HOLDS, HOLDS),
        ([[AFFINE, "<=", {"of": RBF, "times": 0.5}]], HOLDS, HOLDS),
        ([[AFFINE, "<", {"of": RBF, "times": 0.5}]], FAILS, FAILS),
        ([[AFFINE, ">", {"of": RBF, "plus": -2.5}]], HOLDS, HOLDS),
        ([[{"of": AFFINE, "times": 3, "plus": 1}, ">", RBF]], HOLDS, HOLDS),
        ([[RBF, "<", "rotated/rbf/error_mean"]], OPEN, OPEN),
        ([[LOST, "<", 4]], OPEN, OPEN),
        # several
        ([YES, YES], HOLDS, HOLDS),
        ([YES, NO], FAILS, HOLDS),
        ([NO, NO], FAILS, FAILS),
        ([YES, UNKNOWN], OPEN, HOLDS),
        ([NO, UNKNOWN], OPEN, OPEN),
        # a pattern means every row
        ([["many/v*/error_mean", "<", 9]], HOLDS, HOLDS),
        ([["many/v*/error_mean", "<", 8]], FAILS, FAILS),
        ([["many/x*/error_mean", "<", 8]], OPEN, OPEN),
        ([["mnist/*/error_mean", "<", 8]], OPEN, OPEN),  # one of them is blank
    ],
)
def test_verdicts(tables, comparisons, all_of_them, any_of_them):
    assert verdict(tables, all=comparisons)[0] == all_of_them
    assert verdict(tables, any=comparisons)[0] == any_of_them


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


@pytest.mark.parametrize(
    ("comparison", "evidence"),
    [
        (
            [AFFINE, "<=", {"of": RBF, "times": 0.5}],
            f"{AFFINE} 2 (one seed) ≤ 0.5 × {RBF} 4 ± 0.5 (2 seeds) = 2",
        ),
        # of what fails, the opposite
        ([RBF, "<", -9], f"{RBF} 4 ± 0.5 (2 seeds) ≥ -9"),
        ([RBF, "<=", -9], f"{RBF} 4 ± 0.5 (2 seeds) > -9"),
        ([RBF, ">", 19], f"{RBF} 4 ± 0.5 (2 seeds) ≤ 19"),
        ([RBF, ">=", 19], f"{RBF} 4 ± 0.5 (2 seeds) < 19"),
        (["mnist/local/error_mean", "<", 99], "mnist/local/error_mean 3 ± 0.25 (2 seeds) (1 of 2 diverged) < 99"),
        ([LOST, "<", 4], f"{LOST} is blank (2 of 2 diverged)"),
        # many rows are summed up
        (
            ["many/v*/error_mean", "<", 9],
            "true of 9 among 9, the nearest to failing: many/v8/error_mean 8 (one seed) < 9",
        ),
        (["many/v*/elbo_mean", ">", 9], "true of 0 among 9, the worst: many/v0/elbo_mean -inf (one seed) ≤ 9"),
        (["many/v*/error_mean", "<", 7.5], "true of 8 among 9, the worst: many/v8/error_mean 8 (one seed) ≥ 7.5"),
    ],
)
def test_evidence_has_the_numbers(tables, comparison, evidence):
    assert verdict(tables, all=[comparison])[1] == evidence


@pytest.mark.parametrize("seeds", [2, 3, 8])
@pytest.mark.parametrize(("mean", "times"), [(3.0, 1.0), (4.9, 1.0), (5.5, 1.0), (6.0, 0.5), (20.0, 0.5)])
def test_means_that_seeds_may_turn_round_are_a_tie_by_welchs_t(tables, mean, times, seeds):
    """The p-value is that of SciPy for samples with these means and deviations, 0.5 and times · 0.8."""
    tables["mnist"].loc[0, ["error_std", "n_seeds"]] = [0.5, seeds]
    other = ["other", mean, 0.8, 4, 0]
    tables["mnist"].loc[3, ["variant", "error_mean", "error_std", "n_seeds", "n_diverged"]] = other
    right: Any = {"of": "mnist/other/error_mean", "times": times}
    state, evidence = verdict(tables, all=[["mnist/rbf/error_mean", ">", right]])
    assert state == ("holds" if times * mean < 4 else "fails")
    p = ttest_ind(sample(4.0, 0.5, seeds), sample(times * mean, times * 0.8, 4), equal_var=False).pvalue
    assert evidence.endswith(f" (a tie: Welch's t, p = {p:.2g})") == (p > 0.05)
    assert ("a tie" in evidence) == (p > 0.05)


@pytest.mark.parametrize("limit", [3.4, 2.0, 0.5, -5.0])
def test_beside_a_constant_it_is_the_t_test_of_one_sample(tables, limit):
    p = ttest_1samp(sample(4.0, 0.5, 2), limit).pvalue
    evidence = verdict(tables, all=[["mnist/rbf/error_mean", ">", limit]])[1]
    assert evidence.endswith(f" (a tie: Welch's t, p = {p:.2g})" if p > 0.05 else f"(2 seeds) > {limit:g}")


def test_of_one_seed_no_tie_can_be_told(tables):
    tables["mnist"].loc[1, "error_mean"] = 3.99
    assert "a tie" not in verdict(tables, all=[["mnist/rbf/error_mean", ">", "mnist/affine/error_mean"]])[1]


def test_the_best_of_several_may_be_so_by_chance(tables):
    rows = pd.DataFrame({"variant": ["a", "b"], "error_mean": [2.0, 2.1], "elbo_mean": [9.0, 5.0], "n_seeds": 2})
    tables["pair"] = rows.assign(error_std=0.2, elbo_std=0.2)
    found = verdict(tables, same_best={"lowest": "pair/*/error_mean", "highest": "pair/*/elbo_mean"})
    tie = " (a tie: Welch's t, p = 0.67)"
    said = f"pair/a/error_mean 2 ± 0.2 (2 seeds){tie}, the highest pair/a/elbo_mean 9 ± 0.2 (2 seeds)"
    assert found == ("holds", f"of 2, the lowest is {said}")


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({}, "any"),
        ({"all": [["mnist/rbf/error_mean", "==", 3]]}, "=="),
        ({"all": [["mnist/rbf/error_mean", "<", "3"]]}, "to unpack"),
        ({"all": [["mnist/rbf/eror", "<", 3]]}, "mnist/rbf/eror: the table mnist has no column 'eror'"),
    ],
)
def test_a_slip_names_the_claim(tables, form, words):
    with pytest.raises(ValueError, match=f"^the claim c cannot be judged: .*{words}"):
        claims.judge([claim(**form)], tables)


# ---- files ----


def test_files_of_claims(tables, tmp_path):
    own = [claim(all=[YES], reading="As it stands | or not."), claim(all=[NO]), claim(unmeasured="No.")]
    files = claims.write_claims(claims.judge(own, tables), tmp_path / "claims", "What the paper claims.")
    assert files == [tmp_path / "claims.csv", tmp_path / "claims.md"]
    assert list(pd.read_csv(files[0])["verdict"]) == ["holds", "fails", "not measured"]
    text = files[1].read_text()
    assert text.startswith("What the paper claims. Of 3 claims: 1 hold, 1 fail, 1 not measured.\n\n| claim | where |")
    assert "As it stands \\| or not." in text


# ---- the paper's ----


@pytest.fixture()
def paper_claims(root):
    return claims.read_claims(root / "config" / "claims.yaml")


def test_every_claim_of_the_paper_finds_its_numbers(paper_claims, root):
    """Nothing is asked of the verdicts, only that the paper's size leaves no claim without one."""
    shipped = {file.stem: read_table(file) for file in (root / "results" / "paper" / "tables").glob("*.csv")}
    found = claims.judge(paper_claims, shipped)
    for own, row in zip(paper_claims, found.itertuples(), strict=True):
        assert (row.verdict == "not measured") == ("unmeasured" in own), (own["id"], row.evidence)
    assert len({own["id"] for own in paper_claims}) == len(paper_claims)
    assert set(claims.judge(paper_claims, {})["verdict"]) == {"not measured"}


def test_the_tables_numbers_are_those_of_paper_values(paper_claims, root):
    values = read_paper_values(root / "config" / "paper_values.yaml")
    by_id = {own["id"]: own for own in paper_claims}
    for variant in ("rbf", "rotation", "affine", "local"):
        own, value = by_id[f"mnist_table_{variant}"], values[f"mnist/{variant}/error"]
        assert f"{value['value']} ± {value['std']}" in own["claim"]
        assert [side["plus"] for _, _, side in own["all"]] == pytest.approx([-3 * value["std"], 3 * value["std"]])
