import gpflow
import numpy as np
import pytest
import yaml
from gpflow.utilities import parameter_dict

import orbitgp
from orbitgp import files, orbits
from orbitgp.datasets import ImageData, Images
from orbitgp.files import DamagedFile
from orbitgp.fitting.loop import final_scheme
from orbitgp.inducing import place
from orbitgp.likelihoods import (
    DirichletLabels,
    IndependentGroups,
    LogisticSoftmax,
    PolyaGammaBernoulli,
    RecognitionNetwork,
    Softmax,
    TiltTable,
)
from orbitgp.optimizers.recipe import NaturalRate, Recipe
from orbitgp.schemes import FullOrbit, Groups, WithoutReplacement
from orbitgp_paper.experiments.build import build_model, load_trained, make_orbit, make_scheme, recipe, targets
from orbitgp_paper.experiments.model_files import write_model_file
from orbitgp_paper.spec import plain, read_spec

SHAPE = (8, 8, 1)


def parameters(module):
    return {path.lstrip("."): np.asarray(parameter) for path, parameter in parameter_dict(module).items()}


# -- orbits, schemes, recipes --------------------------------------------------------------------------------------

BOX = {"lower": [0.5, 0, 0, 0, 0.5, 0], "upper": [1, 0.5, 0.5, 0.5, 1, 0.5]}
LOCAL = {"kind": "local", "deformation": 0.1, "generators": 0.2, "thickening": 0.3}
PARTS = [{"kind": "right_angles"}, {"kind": "composed", "parts": [{"kind": "rotation", "alpha": 20}]}]


@pytest.mark.parametrize(
    ("settings", "kind", "expected", "trainable"),
    [
        ({"kind": "identity"}, orbits.Identity, {}, 0),
        ({"kind": "rotation", "alpha": 20}, orbits.Rotation, {"alpha": 20}, 1),
        ({"kind": "rotation", "alpha": 20, "transform": "sigmoid"}, orbits.Rotation, {"alpha": 20}, 1),
        ({"kind": "rotation", "alpha": 180.0, "trainable": False}, orbits.Rotation, {"alpha": 180}, 0),
        (
            {"kind": "affine", "spread": 0.1},
            orbits.Affine,
            {"lower": [0.9, -0.1, -0.1, -0.1, 0.9, -0.1], "upper": [1.1, 0.1, 0.1, 0.1, 1.1, 0.1]},
            2,
        ),
        ({"kind": "affine", "trainable": False, **BOX}, orbits.Affine, BOX, 0),
        (
            {"kind": "interpretable_affine", "lower": [-45] + [0.5] * 6, "upper": [45] + [1] * 6},
            orbits.InterpretableAffine,
            {"lower": [-45] + [0.5] * 6, "upper": [45] + [1] * 6},  # the angle in degrees
            2,
        ),
        (LOCAL, orbits.LocalDeformation, {"deformation": 0.1, "generators": [0.2] * 6, "thickening": 0.3}, 3),
        (
            {**LOCAL, "generators": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6], "mode": "tangent", "trainable": False},
            orbits.LocalDeformation,
            {"deformation": 0.1, "generators": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6], "thickening": 0.3},
            0,
        ),
        ({"kind": "right_angles"}, orbits.RightAngles, {}, 0),
        ({"kind": "quantised_rotation", "order": 5}, orbits.QuantisedRotation, {}, 0),
        (
            {"kind": "own", "path": "orbitgp.orbits:Rotation", "settings": {"alpha": 40, "trainable": False}},
            orbits.Rotation,
            {"alpha": 40},
            0,
        ),
        ({"kind": "composed", "parts": PARTS}, orbits.Composed, {"orbits[1].orbits[0].alpha": 20}, 1),
    ],
)
def test_every_kind_of_orbit_can_be_made(settings, kind, expected, trainable, small_spec):
    orbit = make_orbit(small_spec(orbit=settings).orbit, SHAPE)
    assert type(orbit) is kind
    found = parameters(orbit)
    assert len(found) == len(expected)
    for value, wanted in zip(found.values(), expected.values(), strict=True):
        np.testing.assert_allclose(value, wanted, rtol=1e-9, atol=1e-12)
    assert len(orbit.trainable_variables) == trainable
    assert settings.get("mode", "warp") == getattr(orbit, "mode", "warp")
    assert kind is not orbits.QuantisedRotation or orbit.order == 5
    if kind is orbits.Composed:
        assert [type(part) for part in orbit.orbits] == [orbits.RightAngles, orbits.Composed]
    drawn = orbit.sample(np.random.default_rng(0).uniform(size=(2, 64)), 1, 3, [0, 0])
    assert drawn.shape == (2, 1, 3, 64)


@pytest.mark.parametrize(
    ("settings", "expected", "draws"),
    [
        ({"kind": "groups", "groups": 3, "size": 5, "sampler": "iid"}, Groups(3, 5, "iid"), 15),
        ({"kind": "groups", "groups": 2, "size": 8, "shared": True}, Groups(2, 8, shared=True), 16),
        ({"kind": "paper", "samples": 7}, Groups(7, 1, "iid"), 7),
        ({"kind": "paper", "samples": 7, "shared": True}, Groups(7, 1, "iid", shared=True), 7),
        ({"kind": "full"}, FullOrbit(), 4),
        ({"kind": "without_replacement", "count": 3}, WithoutReplacement(3), 3),
    ],
)
def test_every_kind_of_scheme_can_be_made_and_counts_its_draws(settings, expected, draws, small_spec):
    spec = small_spec(orbit={"kind": "right_angles"}, scheme=settings)
    assert make_scheme(spec.scheme) == expected
    assert spec.draws == draws


def test_a_recipe_has_every_setting_of_the_optimiser(small_spec):
    rates = dict.fromkeys(("inducing", "kernel", "likelihood", "orbit"), 0.01)
    natural = NaturalRate(0.5, 0.1, "precision")
    spec = small_spec(optimiser={"batches": "hard", "inducing_scale": "row", "natural": {"scale": "precision"}})
    assert recipe(spec) == Recipe("natural", 8, 30, "hard", rates, "row", natural, 0.1, 0.1)
    adam = recipe(small_spec(optimiser={"kind": "adam", "steps": 9, "batch": 7, "rates": {"variational": 0.5}}))
    assert (adam.kind, adam.steps, adam.batch, adam.rates["variational"]) == ("adam", 9, 7, 0.5)


# -- models --------------------------------------------------------------------------------------------------------


def test_a_model_is_what_its_specification_says(small_spec, small_images):
    spec = small_spec(kernel={"variance": 0.7}, evaluation={"samples": 9}, seed=5, jitter=1e-4)
    model = build_model(spec, small_images)
    assert model.kernel.base.variance.numpy() == pytest.approx(0.7)
    assert model.kernel.base.lengthscales.numpy() == pytest.approx(2.0)
    assert model.kernel.orbit.alpha.numpy() == pytest.approx(30.0)
    assert isinstance(model.likelihood, gpflow.likelihoods.Gaussian)
    assert model.likelihood.variance.numpy() == pytest.approx(0.1)
    assert (model.num_data, model.num_latent_gps) == (60, 3)
    assert (model.prediction_samples, model.seed) == (9, 5)
    assert model.compute_dtype == np.float32
    assert model.jitter.numpy() == 1e-4
    assert model.scheme == Groups(2, 2, "sobol")
    expected = place(model.kernel, small_images.train.inputs(), 8, method="kmeans", seed=5)
    np.testing.assert_array_equal(model.inducing_variable.Z, expected.Z)


def test_inducing_points_may_be_given_and_methods_differ(small_spec, small_images):
    Z = np.random.default_rng(0).uniform(size=(5, 64))
    np.testing.assert_array_equal(build_model(small_spec(), small_images, Z).inducing_variable.Z, Z)
    greedy = build_model(small_spec(inducing={"method": "greedy"}), small_images).inducing_variable.Z.numpy()
    kmeans = build_model(small_spec(), small_images).inducing_variable.Z.numpy()
    assert greedy.shape == kmeans.shape
    assert not np.allclose(greedy, kmeans)
    assert build_model(small_spec(precision="float64"), small_images, Z).compute_dtype == np.float64


@pytest.mark.parametrize(
    ("tilt", "kind"), [("network", RecognitionNetwork), ("table", TiltTable), ("groups", IndependentGroups)]
)
def test_signs_have_a_logistic_likelihood(tilt, kind, small_spec, small_signs):
    settings = {"kind": "polya_gamma", "tilt": tilt} | ({"hidden": [4, 3]} if tilt == "network" else {})
    spec = small_spec(likelihood=settings)
    model = build_model(spec, small_signs)
    assert isinstance(model.likelihood, PolyaGammaBernoulli)
    assert type(model.likelihood._tilt) is kind
    assert model.num_latent_gps == 1
    if tilt == "network":
        assert [tuple(weights.shape) for weights in model.likelihood._tilt.weights] == [(65, 4), (4, 3), (3, 1)]
        other = build_model(spec.changed(seed=4), small_signs).likelihood._tilt.weights[0]
        assert not np.array_equal(other, model.likelihood._tilt.weights[0])  # each seed has weights of its own
    if tilt == "table":
        assert model.likelihood._tilt.values.shape == (60, 1)
    Y = targets(spec, small_signs, small_signs.test)
    assert Y.shape == (30, 1)
    assert Y.dtype == np.float64
    np.testing.assert_array_equal(Y[:, 0], small_signs.test.labels)
    X = small_signs.train.inputs()
    assert np.isfinite(model.elbo((X, targets(spec, small_signs, small_signs.train), np.arange(60)), seed=[0, 0]))


@pytest.mark.parametrize(
    ("likelihood", "kind"),
    [
        ({"kind": "softmax", "tilt": "groups"}, Softmax),
        ({"kind": "softmax", "tilt": "network", "hidden": [4]}, Softmax),
        ({"kind": "logistic_softmax", "tilt": "table"}, LogisticSoftmax),
        ({"kind": "dirichlet", "concentration": 0.1}, DirichletLabels),
    ],
)
def test_several_classes_have_a_covariance_each(likelihood, kind, small_spec, small_images):
    spec = small_spec(likelihood=likelihood)
    model = build_model(spec, small_images)
    assert type(model.likelihood) is kind
    assert model.likelihood.classes == model.num_latent_gps == len(model.q_sqrt.numpy()) == 3
    Y = targets(spec, small_images, small_images.train)
    np.testing.assert_array_equal(Y, np.eye(3)[small_images.train.labels])
    assert np.isfinite(model.elbo((small_images.train.inputs(), Y, np.arange(60)), seed=[0, 0]))
    if kind is DirichletLabels:  # centred on its targets, without another number to learn
        centre = model.likelihood.mean_target()
        assert centre == pytest.approx(model.likelihood.targets(Y)[0].numpy().mean())
        np.testing.assert_allclose(model.mean_function(np.zeros((2, 64))), [[centre], [centre]])
        assert not model.mean_function.trainable_variables


def test_classes_are_counted_over_both_parts(small_spec, small_images):
    few = small_images.train.take(np.flatnonzero(small_images.train.labels < 2))
    for data in (ImageData("a", few, small_images.test), ImageData("b", small_images.test, few)):
        Y = targets(small_spec(), data, few)
        assert Y.shape == (len(few), 3)
        np.testing.assert_array_equal(Y.argmax(1), few.labels)
        np.testing.assert_array_equal(Y.sum(1), 1)
        assert build_model(small_spec(), data).num_latent_gps == 3


def test_two_classes_of_any_numbers_are_signs(small_spec, small_images, small_signs):
    spec = small_spec(likelihood={"kind": "polya_gamma", "tilt": "groups"})
    part = Images(small_signs.test.images, (small_signs.test.labels + 1) // 2)
    np.testing.assert_array_equal(targets(spec, ImageData("two", part, part), part)[:, 0], small_signs.test.labels)
    with pytest.raises(ValueError, match="polya_gamma is for two classes; small has 3"):
        targets(spec, small_images, small_images.train)
    with pytest.raises(ValueError, match=r"labels must lie in 0 … 1, not -1"):
        targets(small_spec(), small_signs, small_signs.train)


# -- from the files of a run ---------------------------------------------------------------------------------------


@pytest.fixture
def trained(tmp_path, small_spec, small_images):
    """A folder as a run leaves it, and its model, which has moved away from the start."""
    spec = small_spec(scheme={"kind": "paper", "samples": 2}, orbit={"kind": "affine", "spread": 0.1})
    model = build_model(spec, small_images)
    rng = np.random.default_rng(0)
    model.q_mu.assign(rng.normal(size=model.q_mu.shape))
    model.q_sqrt.assign(np.tril(rng.normal(size=model.q_sqrt.shape)))
    model.kernel.base.variance.assign(1.7)
    model.kernel.orbit.upper.assign(model.kernel.orbit.upper + 0.05)
    model.inducing_variable.Z.assign(model.inducing_variable.Z + 0.1)
    model.jitter.assign(1e-3)
    model.scheme = final_scheme(model.scheme, 8)
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(plain(spec), allow_unicode=True))
    files.write_npz(tmp_path / "params.npz", parameters(model))
    files.write_json(tmp_path / "final.json", {"files": files.sums(tmp_path, ("config.yaml", "params.npz"))})
    return tmp_path, model


def test_a_trained_model_comes_back(trained, small_images):
    folder, model = trained
    loaded = load_trained(folder, small_images)
    X = small_images.test.inputs()
    for mine, theirs in zip(loaded.predict_f(X), model.predict_f(X), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-7)
    data = (X, targets(read_spec(folder / "config.yaml"), small_images, small_images.test))
    np.testing.assert_allclose(loaded.elbo(data, seed=[1, 2]), model.elbo(data, seed=[1, 2]), rtol=1e-6)
    assert loaded.jitter.numpy() == 1e-3


def test_a_trained_model_becomes_a_file_of_the_estimator(trained, small_images, tmp_path):
    folder, model = trained
    final = files.read_json(folder / "final.json") | {"elbo": -12.0, "elbo_std_error": 0.5}
    files.write_json(folder / "final.json", final)
    files.write_json(folder / "provenance.json", {"wall_s": 3.0})
    write_model_file(folder, small_images, tmp_path / "model.orbitgp")
    estimator = orbitgp.load(tmp_path / "model.orbitgp")
    assert (estimator.orbit, estimator.evidence_, estimator.seconds_) == ("affine", -12.0, 3.0)
    X = small_images.test.inputs()
    for mine, theirs in zip(estimator.model_.predict_f(X, samples=8), model.predict_f(X, samples=8), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-7)
    config = read_spec(folder / "config.yaml")
    for change, says in (
        ({"likelihood": {"kind": "dirichlet"}}, "Gaussian likelihood"),
        ({"orbit": {"kind": "right_angles"}}, "orbit of identity"),
    ):
        (folder / "config.yaml").write_text(yaml.safe_dump(plain(config.changed(**change)), allow_unicode=True))
        with pytest.raises(ValueError, match=says):
            write_model_file(folder, small_images, tmp_path / "other.orbitgp")


def test_a_trained_sum_comes_back(tmp_path, small_spec, small_images):
    components = [{"patch": 3, "stride": 2, "inducing": 6}, {"patch": 5, "location": False, "inducing": 4}]
    spec = small_spec(
        components=[*components, {"inducing": 3, "lengthscale": 1.5}], orbit={"kind": "affine", "spread": 0.1}
    )
    model = build_model(spec, small_images)
    assert [part.Z.shape for part in model.inducing_variable.parts] == [(6, 11), (4, 25), (3, 64)]
    assert [kernel.orbit.order for kernel in model.kernel.base.kernels[:2]] == [9, 16]
    assert model.kernel.base.kernels[2].lengthscales.numpy() == pytest.approx(1.5)
    model.q_mu.assign(np.random.default_rng(0).normal(size=model.q_mu.shape))
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(plain(spec), allow_unicode=True))
    files.write_npz(tmp_path / "params.npz", parameters(model))
    files.write_json(tmp_path / "final.json", {"files": files.sums(tmp_path, ("config.yaml", "params.npz"))})
    loaded, X = load_trained(tmp_path, small_images), small_images.test.inputs()
    for mine, theirs in zip(loaded.predict_f(X, samples=4), model.predict_f(X, samples=4), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"jitter": None}, "does not hold a trained model"),
        ({"inducing_variable.Z": None}, "does not hold a trained model"),
        ({"q_mu": None}, r"does not have the parameters of .*config\.yaml"),
        ({"q_mu": np.zeros((8, 2))}, r"does not have the parameters of .*config\.yaml"),
        ({"extra": np.zeros(2)}, r"does not have the parameters of .*config\.yaml"),
        ({"q_mu": np.zeros((8, 3))}, r"is not the file that final\.json beside it was written with"),
    ],
)
def test_parameters_of_another_model_or_of_another_run_are_refused(trained, small_images, change, says):
    folder = trained[0]
    arrays = files.read_npz(folder / "params.npz") | change
    files.write_npz(folder / "params.npz", {name: array for name, array in arrays.items() if array is not None})
    with pytest.raises(DamagedFile, match=rf"params\.npz {says}"):
        load_trained(folder, small_images)


def test_a_run_that_diverged_has_no_model(trained, small_images):
    folder, arrays = trained[0], files.read_npz(trained[0] / "params.npz")
    files.write_npz(folder / "params.npz", arrays | {"q_mu": arrays["q_mu"] * np.nan})
    files.write_json(folder / "final.json", {"files": files.sums(folder, ("config.yaml", "params.npz"))})
    with pytest.raises(ValueError, match=r"diverged, as its final\.json says"):
        load_trained(folder, small_images)


def test_settings_of_another_run_and_images_of_another_size_are_refused(trained, small_images):
    other = Images(np.zeros((3, 6, 6, 1), np.float32), np.arange(3))
    with pytest.raises(ValueError, match=r"was not trained on images as those of other: .* 64 values each, .* 36"):
        load_trained(trained[0], ImageData("other", other, other))
    config = trained[0] / "config.yaml"
    config.write_text(config.read_text().replace("seed: 3", "seed: 4"))
    with pytest.raises(DamagedFile, match=r"config\.yaml is not the file that final\.json"):
        load_trained(trained[0], small_images)
