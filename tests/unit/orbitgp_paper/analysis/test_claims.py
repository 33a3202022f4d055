"""Claims and verdicts."""

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ttest_1samp, ttest_ind

from orbitgp_paper.analysis import claims
from orbitgp_paper.analysis.formats import read_table
from orbitgp_paper.analysis.tables import read_paper_values
from orbitgp_paper.analysis.verdicts import DOCUMENT


def sample(mean: float, std: float, count: int) -> np.ndarray:
    """Numbers with exactly this mean and this standard deviation (ddof = 1)."""
    numbers = np.arange(float(count))
    return mean + std * (numbers - numbers.mean()) / numbers.std(ddof=1)


def claim(**form: Any) -> dict[str, Any]:
    return {"id": "c", "section": "1 Start", "claim": "It is so.", "where": "section 1", **form}


def verdict(tables: dict[str, pd.DataFrame], **form: Any) -> tuple[str, str]:
    row = claims.judge([claim(**form)], tables).iloc[0]
    return row["verdict"], row["numbers"]


def evidence(tables: dict[str, pd.DataFrame], **form: Any) -> str:
    return claims.judge([claim(**form)], tables).iloc[0]["evidence"]


@pytest.fixture()
def tables():
    mnist = pd.DataFrame(
        {
            "variant": ["rbf", "affine", "local", "lost"],
            "label": ["RBF", "affine", "local deformations", "lost"],
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
HOLDS, EXCEEDS, TIE, FAILS, OPEN = claims.VERDICTS


@pytest.mark.parametrize(
    ("comparisons", "all_of_them", "any_of_them"),
    [
        ([[AFFINE, "<", RBF]], HOLDS, HOLDS),
        ([[RBF, "<", AFFINE]], FAILS, FAILS),
        ([[AFFINE, "<", 2]], FAILS, FAILS),
        ([[AFFINE, "<=", 2]], HOLDS, HOLDS),
        ([[AFFINE, ">", 2.0]], FAILS, FAILS),
        ([[AFFINE, ">=", 2]], HOLDS, HOLDS),
        ([[AFFINE, "<=", {"of": RBF, "times": 0.5}]], HOLDS, HOLDS),
        ([[AFFINE, "<", {"of": RBF, "times": 0.5}]], FAILS, FAILS),
        ([[AFFINE, ">", {"of": RBF, "plus": -2.5}]], HOLDS, HOLDS),
        ([[{"of": AFFINE, "times": 3, "plus": 1}, ">", RBF]], HOLDS, HOLDS),
        ([[RBF, "<", "rotated/rbf/error_mean"]], OPEN, OPEN),
        ([[LOST, "<", 4]], OPEN, OPEN),
        # by how much seeds differ
        ([[RBF, "<", "mnist/local/error_mean"]], TIE, TIE),
        ([[RBF, ">", "mnist/local/error_mean"]], TIE, TIE),
        ([[RBF, ">", "mnist/local/error_mean"], YES], TIE, HOLDS),
        ([[RBF, ">", "mnist/local/error_mean"], NO], FAILS, TIE),
        ([[RBF, ">", "mnist/local/error_mean"], UNKNOWN], OPEN, OPEN),
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
    state, numbers = verdict(tables, all=[YES], given=[["mnist/rbf/n_seeds", ">=", 3]])
    assert (state, numbers) == (OPEN, "mnist/rbf/n_seeds 2 < 3")
    assert verdict(tables, all=[YES], given=[["mnist/rbf/n_seeds", ">=", 2]])[0] == HOLDS
    assert verdict(tables, all=[YES], given=[UNKNOWN])[0] == OPEN


def test_same_best(tables):
    found = {"lowest": "mnist/*/error_mean", "highest": "mnist/*/elbo_mean"}
    assert verdict(tables, same_best=found)[0] == OPEN  # one error is blank
    rows = {"mnist": tables["mnist"][:3]}
    assert verdict(rows, same_best=found)[0] == HOLDS
    assert verdict(rows, same_best=found, all=[YES])[0] == HOLDS
    assert verdict(rows, same_best=found, all=[NO])[0] == FAILS
    rows["mnist"] = rows["mnist"].assign(elbo_mean=[3.0, 2.0, 1.0])
    state, numbers = verdict(rows, same_best=found)
    assert state == FAILS
    assert numbers == (
        "of 3, the highest is mnist/rbf/elbo_mean 3 (2 seeds); mnist/rbf/error_mean 4 ± 0.5 (2 seeds) "
        "against mnist/affine/error_mean 2 (one seed)"
    )
    said = "of 3, the highest bound is 3.00 nats (RBF); its error 4.00 ± 0.50 % against 2.00 % (affine), not lower"
    assert evidence(rows, same_best=found) == said
    assert verdict({"mnist": rows["mnist"][:1]}, same_best=found)[0] == OPEN
    assert verdict({}, same_best=found)[0] == OPEN


def test_the_best_of_several_may_be_so_by_chance(tables):
    rows = pd.DataFrame({"variant": ["a", "b"], "error_mean": [2.0, 2.1], "n_seeds": 2})
    form = {"same_best": {"lowest": "pair/*/error_mean", "highest": "pair/*/elbo_mean"}}
    for bounds in ([9.0, 5.0], [5.0, 9.0]):  # the one with the lower error, and the other
        pair = rows.assign(error_std=0.2, elbo_mean=bounds, elbo_std=0.2)
        state, numbers = verdict({"pair": pair}, **form)
        assert state == TIE and numbers.endswith(" (a tie: Welch's t, p = 0.67)")
        assert verdict({"pair": pair.assign(error_std=1e-3)}, **form)[0] == (HOLDS if bounds[0] == 9.0 else FAILS)


# ---- better than it says ----


WORSE = [["mnist/rbf/error_mean", "<", "mnist/local/error_mean"]]  # false, by noise


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ({"all": [NO], "exceeds": [YES]}, EXCEEDS),
        ({"all": [NO], "exceeds": [NO]}, FAILS),
        ({"all": [NO], "exceeds": [UNKNOWN]}, FAILS),
        ({"all": [YES], "exceeds": [YES]}, HOLDS),  # nothing exceeds what holds
        ({"all": [UNKNOWN], "exceeds": [YES]}, OPEN),
        ({"all": WORSE, "exceeds": [YES]}, EXCEEDS),
        ({"all": [YES], "exceeds": WORSE}, HOLDS),
        ({"all": WORSE, "exceeds": WORSE}, TIE),
        ({"all": [NO], "exceeds": WORSE}, FAILS),  # what is within noise does not exceed
        ({"any": [NO], "exceeds": [YES, YES]}, EXCEEDS),
        ({"any": [NO], "exceeds": [YES, NO]}, FAILS),
    ],
)
def test_what_is_better_than_it_says_exceeds_by_a_predicate_of_its_own(tables, form, expected):
    assert verdict(tables, **form)[0] == expected


def test_evidence_of_what_exceeds_leaves_out_what_is_false(tables):
    form = {"all": [["mnist/rbf/error_mean", ">", AFFINE], NO], "exceeds": [YES]}
    assert (
        evidence(tables, **form)
        == "error 4.00 ± 0.50 % (RBF) against 2.00 % (affine); error 2.00 % (affine), below 3.00 %"
    )


def test_a_cause_is_of_a_verdict(tables):
    cause = {"fails": "So.", "exceeds": "Thus."}
    own = [claim(all=[YES], cause=cause), claim(all=[NO], cause=cause), claim(all=[NO], exceeds=[YES], cause=cause)]
    assert list(claims.judge(own, tables)["cause"]) == ["", "So.", "Thus."]


# ---- noise ----


@pytest.mark.parametrize("seeds", [2, 3, 8])
@pytest.mark.parametrize(("mean", "times"), [(3.0, 1.0), (4.9, 1.0), (5.5, 1.0), (6.0, 0.5), (20.0, 0.5)])
def test_means_that_seeds_may_turn_round_are_a_tie_by_welchs_t(tables, mean, times, seeds):
    """The p-value is that of SciPy for samples with these means and deviations, 0.5 and times · 0.8."""
    tables["mnist"].loc[0, ["error_std", "n_seeds"]] = [0.5, seeds]
    other = ["other", mean, 0.8, 4, 0]
    tables["mnist"].loc[3, ["variant", "error_mean", "error_std", "n_seeds", "n_diverged"]] = other
    right: Any = {"of": "mnist/other/error_mean", "times": times}
    state, numbers = verdict(tables, all=[["mnist/rbf/error_mean", ">", right]])
    p = ttest_ind(sample(4.0, 0.5, seeds), sample(times * mean, times * 0.8, 4), equal_var=False).pvalue
    assert state == (TIE if p > 0.05 else HOLDS if times * mean < 4 else FAILS)
    assert numbers.endswith(f" (a tie: Welch's t, p = {p:.2g})") == (p > 0.05)
    assert ("a tie" in numbers) == (p > 0.05)


@pytest.mark.parametrize("limit", [3.4, 2.0, 0.5, -5.0])
def test_beside_a_constant_it_is_the_t_test_of_one_sample(tables, limit):
    p = ttest_1samp(sample(4.0, 0.5, 2), limit).pvalue
    state, numbers = verdict(tables, all=[["mnist/rbf/error_mean", ">", limit]])
    assert numbers.endswith(f" (a tie: Welch's t, p = {p:.2g})" if p > 0.05 else f"(2 seeds) > {limit:g}")
    assert state == (TIE if p > 0.05 else HOLDS)


def test_a_share_of_draws_is_tested_as_the_mean_of_zeros_and_ones():
    for true in (98, 110, 130):
        draws = np.arange(200) < true
        error = 100 * draws.std(ddof=1) / np.sqrt(200)
        row = {"statement": "s", "label": "it rains", "rate": true / 2, "rate_std_error": error, "n_draws": 200}
        rates = {"toy_rates": pd.DataFrame([row | {"in_figure": true > 100}])}
        form = {"all": [["toy_rates/s/rate", ">", 50]]}
        p = ttest_1samp(draws, 0.5).pvalue
        assert verdict(rates, **form)[0] == (TIE if p > 0.05 else HOLDS)
        among = "" if true > 100 else "not "
        start = f"it rains: in {true / 2:.1f} % of 200 draws, the figure's {among}among them, above 50.0 %"
        assert evidence(rates, **form).startswith(start)


def test_of_one_seed_no_tie_can_be_told(tables):
    tables["mnist"].loc[1, "error_mean"] = 3.99
    state, numbers = verdict(tables, all=[["mnist/rbf/error_mean", ">", "mnist/affine/error_mean"]])
    assert state == HOLDS and "a tie" not in numbers


def test_a_limit_that_has_noise_in_it_is_not_tested_again(tables):
    tables["mnist"] = tables["mnist"].assign(paper_error=4.5, paper_std=0.2)
    for stds, expected in ((-3, HOLDS), (-2, FAILS)):
        limit = {"of": "mnist/rbf/paper_error", "stds": stds}
        state, numbers = verdict(tables, all=[["mnist/rbf/error_mean", ">=", limit]])
        assert state == expected and "a tie" not in numbers
    assert numbers == (
        "mnist/rbf/error_mean 4 ± 0.5 (2 seeds) < mnist/rbf/paper_error 4.5 − 2 standard deviations = 4.1"
    )


# ---- evidence ----


@pytest.mark.parametrize(
    ("comparison", "numbers"),
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
def test_the_csv_has_the_numbers_by_their_names(tables, comparison, numbers):
    assert verdict(tables, all=[comparison])[1] == numbers


PARITY = pd.DataFrame(
    {
        "variant": ["from_20", "from_60"],
        "label": ["from 20°", "from 60°"],
        "alpha_true": 90.0,
        "angle_mean": [133.0, 133.4],
        "n_seeds": 3,
    }
)
HALVES = pd.DataFrame({"model": ["invariant", "plain"], "seen": "below", "rmse": [0.673, 0.623]})
BOUNDS = pd.DataFrame({"model": "plain", "inducing": [2, 40], "gap": [18.2, 0.5], "elbo": [-30.0, -11.0]})


@pytest.mark.parametrize(
    ("comparisons", "words"),
    [
        ([["mnist/rbf/error_mean", ">", 1]], "error 4.00 ± 0.50 % (RBF), above 1.00 % (a tie: Welch's t, p = 0.075)"),
        ([[AFFINE, "<", RBF]], "error 2.00 % (affine) against 4.00 ± 0.50 % (RBF)"),
        (
            [[AFFINE, "<=", {"of": RBF, "times": 0.8}]],
            "error 2.00 % (affine), at most 3.20 % (0.8 × 4.00 ± 0.50 % of RBF)",
        ),
        # what ends alike is said once
        (
            [["parity/from_*/angle_mean", "<=", {"of": "parity/from_*/alpha_true", "times": 1.15}]],
            "angle 133.0° (from 20°, ±90°), 133.4° (from 60°, ±90°), not at most 103.5° (1.15 × true angle 90°)",
        ),
        (
            [["toy_halves/invariant:below/rmse", "<", "toy_halves/plain:below/rmse"]],
            "RMSE of the second half 0.673 (invariant, below) against 0.623 (plain, below), not lower",
        ),
        (
            [["toy_bounds/plain:max/gap", "<=", {"of": "toy_bounds/plain:min/gap", "times": 0.1}]],
            "gap 0.50 nats (plain, 40 inducing points), at most 1.82 nats (0.1 × 18.20 nats of plain, "
            "2 inducing points)",
        ),
        ([["toy_bounds/plain:max/elbo", ">", -20]], "bound −11.00 nats (plain, 40 inducing points), above −20.00 nats"),
    ],
)
def test_evidence_reads_as_a_person_would_say_it(tables, comparisons, words):
    tables |= {"parity": PARITY, "toy_halves": HALVES, "toy_bounds": BOUNDS}
    assert evidence(tables, all=comparisons) == words


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({}, "it compares nothing"),
        (
            {"all": [["mnist/rbf/error_mean", "<", {"of": "mnist/rbf/error_mean", "time": 2}]]},
            "no 'time', only of, times",
        ),
        ({"all": [["mnist/rbf/error_mean", "==", 3]]}, "=="),
        ({"all": [["mnist/rbf/error_mean", "<", "3"]]}, "to unpack"),
        ({"all": [["mnist/rbf/eror", "<", 3]]}, "mnist/rbf/eror: the table mnist has no column 'eror'"),
    ],
)
def test_a_slip_names_the_claim(tables, form, words):
    with pytest.raises(ValueError, match=f"^the claim c cannot be judged: .*{words}"):
        claims.judge([claim(**form)], tables)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("- {id: a, claim: b, where: c}", "the claim a has no 'section'"),
        ("- {claim: b}", "the claim number 1 has no 'id'"),
        ("- {id: a, section: s, claim: b, where: c, al: []}", "the claim a has 'al'; expected id, claim"),
        ("- {id: a, section: s, claim: b, where: c, cause: {fail: d}}", "a cause for 'fail'; verdicts: holds, exceeds"),
    ],
)
def test_a_file_with_a_slip_is_refused(tmp_path, text, words):
    (tmp_path / "own.yaml").write_text(text)
    with pytest.raises(ValueError, match=words):
        claims.read_claims(tmp_path / "own.yaml")


# ---- the paper's ----


@pytest.fixture()
def paper_claims(root):
    return claims.read_claims(root / "config" / "claims.yaml")


def test_every_claim_of_the_paper_has_a_verdict_and_a_cause_where_it_does_not_hold(paper_claims, root):
    """Nothing is asked of the verdicts but that the paper's size leaves no claim without one, and none unexplained."""
    shipped = {file.stem: read_table(file) for file in (root / "results" / "paper" / "tables").glob("*.csv")}
    found = claims.judge(paper_claims, shipped)
    for row in found.itertuples():
        assert row.verdict != OPEN, (row.id, row.evidence)
        assert row.verdict == HOLDS or row.cause, row.id
    assert found["id"].is_unique
    assert set(claims.judge(paper_claims, {})["verdict"]) == {OPEN}


def test_causes_name_documents_that_are_there(paper_claims, root):
    named = [
        text for own in paper_claims for cause in own.get("cause", {}).values() for text in DOCUMENT.findall(cause)
    ]
    assert named
    for name in named:
        file, _, anchor = name.partition("#")
        assert (root / file).is_file(), name
        heads = re.findall(r"^#+ (.*)$", (root / file).read_text(encoding="utf-8"), flags=re.M)
        assert not anchor or anchor in [re.sub(r"[^\w -]", "", head).lower().replace(" ", "-") for head in heads], name


def test_figures_of_claims_are_there(paper_claims, root):
    for own in paper_claims:
        assert "figure" not in own or (root / "results/paper/figures" / f"{own['figure']}.png").is_file(), own["id"]


def test_the_tables_numbers_are_those_of_paper_values(paper_claims, root):
    values = read_paper_values(root / "config" / "paper_values.yaml")
    by_id = {own["id"]: own for own in paper_claims}
    for variant in ("rbf", "rotation", "affine", "local"):
        own, value = by_id[f"mnist_table_{variant}"], values[f"mnist/{variant}/error"]
        assert f"{value['value']} ± {value['std']}" in own["claim"]
