import numpy as np
import pytest

from orbitgp_paper.figures import fig4


def test_the_table_has_ours_beside_the_papers(made, texts_of):
    texts = texts_of(fig4.draw(made.mnist_runs(), made.mnist_table()))
    for text in ("RBF", "2.14 ± 0.04", "2.15 ± 0.03", "local deformations", "1.52 ± 0.06", "1.47 ± 0.05"):
        assert texts.count(text) == 1
    assert "ours: mean ± std over 3 seeds" in texts


def test_one_seed_has_no_spread(made, texts_of, assert_tidy):
    figure = fig4.draw(made.mnist_runs(1), made.mnist_table(1))
    assert "2.14" in texts_of(figure)
    assert "ours: one seed" in texts_of(figure)
    assert_tidy(figure)


def test_a_variant_that_was_not_run_says_so(made, texts_of, assert_tidy):
    table = made.mnist_table()
    table.loc[3, ["error_mean", "error_std", "n_seeds"]] = np.nan
    runs = made.mnist_runs()
    figure = fig4.draw(runs[runs.variant != "local"], table)
    assert texts_of(figure).count("not measured") == 1
    assert "local" in texts_of(figure)
    assert_tidy(figure)


def test_without_any_run_the_panels_say_so(made, texts_of):
    figure = fig4.draw(made.mnist_runs().iloc[:0], made.mnist_table().assign(error_mean=np.nan, n_seeds=0))
    assert texts_of(figure).count("not measured") == 2 + 4
    assert "ours: no runs" in texts_of(figure)


def test_a_variant_of_ones_own_stands_below_with_no_number_of_the_papers(made, texts_of, assert_tidy):
    table = made.mnist_table()
    table.loc[4] = {"variant": "mine", "error_mean": 1.2, "error_std": 0.1, "n_seeds": 2}
    runs = made.mnist_runs().replace({"local": "mine", "local deformations": "a very long name of a model of mine"})
    figure = fig4.draw(runs, table)
    assert "1.20 ± 0.10" in texts_of(figure)
    assert any(text.startswith("a very long") and text.endswith("…") for text in texts_of(figure))
    assert "–" in texts_of(figure)
    assert "ours: mean ± std over 2 to 3 seeds" in texts_of(figure)
    assert_tidy(figure)


def test_a_variant_without_a_number_because_it_diverged(made, texts_of):
    table = made.mnist_table().assign(n_diverged=[0, 0, 0, 1])
    table.loc[3, ["error_mean", "error_std"]] = np.nan
    texts = texts_of(fig4.draw(made.mnist_runs(), table))
    assert texts.count("diverged") == 1
    assert "not measured" not in texts


def test_labels_of_the_table_serve_variants_without_curves(made, texts_of):
    table = made.mnist_table().assign(label=["RBF", "rot only", "all affine", "local deformations"])
    assert "local deformations" in texts_of(fig4.draw(made.mnist_runs().query("variant == 'rbf'"), table))


def test_a_missing_column_is_named(made):
    with pytest.raises(ValueError, match="table must have the columns n_seeds"):
        fig4.draw(made.mnist_runs(), made.mnist_table().drop(columns="n_seeds"))
