import numpy as np
import pytest
import tensorflow as tf
from gpflow import kernels

from orbitgp import orbits
from orbitgp._ops import draw_kernels
from orbitgp._ops.draw_kernels import DrawKernels, SumKernels, kernel_matrix
from orbitgp._ops.precision import in_precision

N, G, SIZE, D, M = 3, 2, 4, 5, 6


class Wider(kernels.SquaredExponential):
    """Another function of the distance under the same parent."""

    def K_r2(self, r2):
        return self.variance * tf.exp(-0.25 * r2)


BASES = {
    "rbf": lambda: kernels.SquaredExponential(1.3, 1.7),
    "one in a list": lambda: kernels.SquaredExponential(1.3, [1.7]),
    "ard": lambda: kernels.SquaredExponential(1.3, np.linspace(0.8, 2, D)),
    "some columns": lambda: kernels.SquaredExponential(1.3, [0.9, 1.4], active_dims=[3, 1]),
    "sum": lambda: kernels.SquaredExponential(1.3, 1.7) + kernels.Linear(0.2),
    "a subclass": lambda: Wider(1.3, 1.7),
    "product": lambda: (
        kernels.SquaredExponential(1.3, 1.7, active_dims=slice(0, 3))
        * kernels.SquaredExponential(0.6, [0.8, 1.1], active_dims=[4, 2])
    ),
    "product of others": lambda: kernels.SquaredExponential(1.3, 1.7) * kernels.Linear(0.2),
}

PATCHES = {
    "alone": [orbits.Patches((3, 4), 2)],
    "after another": [orbits.Permutation([[*range(12)], [*range(11, -1, -1)]]), orbits.Patches((3, 4), 2, 2)],
}


@pytest.fixture
def points():
    rng = np.random.default_rng(0)
    return rng.normal(size=(N, G, SIZE, D)), rng.normal(size=(M, D))


@pytest.mark.parametrize("base", BASES)
def test_values_against_plain_loops(base, points):
    kernel, (drawn, Z) = BASES[base](), points
    Kaa, Kfu = DrawKernels(kernel, Z)(drawn)
    for n in range(N):
        own = drawn[n].reshape(G * SIZE, D)
        np.testing.assert_allclose(Kaa[n], kernel(own, own + 0.0), rtol=1e-10, atol=1e-12)
        for g in range(G):
            expected = sum(kernel(x[None], Z).numpy()[0] for x in drawn[n, g]) / SIZE
            np.testing.assert_allclose(Kfu[n, g], expected, rtol=1e-10)
    between, same = DrawKernels(kernel, Z)(drawn, across=True)
    np.testing.assert_allclose(between, Kaa[:, :SIZE, SIZE:], rtol=1e-12)
    np.testing.assert_array_equal(same, Kfu)
    single = DrawKernels(in_precision(kernel, tf.float32), Z.astype(np.float32))(drawn.astype(np.float32))
    for found, expected in zip(single, (Kaa, Kfu), strict=True):
        assert found.dtype == tf.float32
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("base", BASES)
def test_the_matrix_of_all_points_has_the_values_and_the_slopes_of_the_kernel(base, points):
    kernel, Z = BASES[base](), tf.Variable(points[1])
    weight, found = np.random.default_rng(2).normal(size=(M, M)), []
    for make in (lambda: kernel_matrix(kernel, Z), lambda: kernel(Z)):
        with tf.GradientTape() as tape:
            K = make()
            value = tf.reduce_sum(weight * K)
        found.append((K, *tape.gradient(value, [Z, *kernel.trainable_variables])))
    for mine, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("across", [False, True])
@pytest.mark.parametrize("base", BASES)
def test_gradients_of_draws_points_and_parameters_against_finite_differences(base, across, points, assert_slopes_match):
    kernel = BASES[base]()
    drawn, Z = (tf.Variable(tensor) for tensor in points)
    rng = np.random.default_rng(1)
    pairs = SIZE if across else G * SIZE
    weights = rng.normal(size=(N, pairs, pairs)), rng.normal(size=(N, G, M))

    def value():
        found = DrawKernels(kernel, Z)(drawn, across)
        return tf.add_n([tf.reduce_sum(w * K) for w, K in zip(weights, found, strict=True)])

    assert_slopes_match(value, [drawn, Z, *kernel.trainable_variables], rtol=1e-6, atol=1e-7)


# -- finite orbits, sums, blocks -----------------------------------------------------------------------------------


def listed_by_loops(orbits_in_turn, x):
    points = [x]
    for orbit in orbits_in_turn:
        points = [point for each in points for point in orbit.full(each[None]).numpy()[0]]
    return np.array(points)


@pytest.mark.parametrize("case", PATCHES)
@pytest.mark.parametrize("base", ["rbf", "product", "sum"])
def test_averages_over_finite_orbits_against_plain_loops(base, case):
    kernel, listed = BASES[base](), PATCHES[case]
    rng = np.random.default_rng(3)
    drawn, Z = rng.normal(size=(N, G, 2, 12)), rng.normal(size=(M, 6))
    Kaa, Kfu = DrawKernels(kernel, Z, listed=listed)(drawn)
    for n in range(N):
        points = [listed_by_loops(listed, x) for x in drawn[n].reshape(-1, 12)]
        expected = [[np.mean(kernel(a, b + 0.0)) for b in points] for a in points]
        np.testing.assert_allclose(Kaa[n], expected, rtol=1e-10)
        to_Z = np.array([kernel(a, Z).numpy().mean(0) for a in points]).reshape(G, 2, M)
        np.testing.assert_allclose(Kfu[n], to_Z.mean(1), rtol=1e-10)
    between, _ = DrawKernels(kernel, Z, listed=listed)(drawn, across=True)
    np.testing.assert_allclose(between, Kaa[:, :2, 2:], rtol=1e-12)


def two_processes():
    parts = [(BASES["product"](), 6, PATCHES["alone"]), (BASES["sum"](), 12, [])]
    Z = [tf.Variable(np.random.default_rng(4).normal(size=(M, width))) for _, width, _ in parts]

    def make():
        made = [DrawKernels(base, z, listed=listed) for (base, _, listed), z in zip(parts, Z, strict=True)]
        return SumKernels(made)

    variables = [*Z, *(v for base, _, _ in parts for v in base.trainable_variables)]
    return make, variables


def test_a_sum_adds_kernels_between_draws_and_lists_those_with_inducing_variables():
    make, _ = two_processes()
    drawn = np.random.default_rng(5).normal(size=(N, G, SIZE, 12))
    (Kaa, Kfu), parts = make()(drawn), [part(drawn) for part in make()._parts]
    np.testing.assert_allclose(Kaa, parts[0][0] + parts[1][0], rtol=1e-14)
    np.testing.assert_array_equal(Kfu, np.concatenate([part[1] for part in parts], axis=2))
    for a, b in np.ndindex(N, N):  # as one input whose groups are the two
        together, _ = make()(np.stack([drawn[a, 0], drawn[b, 0]])[None], across=True)
        np.testing.assert_allclose(make().between_inputs(drawn[:, 0])[a, b], np.mean(together), rtol=1e-12)


@pytest.mark.parametrize(
    ("how", "across"),
    [
        *((how, across) for how in ("eager", "graph") for across in (False, True)),
        ("unknown size", False),
        ("xla", True),
        ("xla, unknown size", False),
    ],
)
def test_blocks_change_neither_values_nor_gradients(how, across, monkeypatch):
    make, variables = two_processes()
    drawn = tf.Variable(np.random.default_rng(6).normal(size=(7, G, 2, 12)))

    def value(points):
        return tf.add_n([tf.reduce_sum(tf.sin(part)) for part in make()(points, across)])

    def slopes(points):
        with tf.GradientTape() as tape:
            tape.watch([points, *variables])
            found = value(points)
        return found, *map(tf.convert_to_tensor, tape.gradient(found, [points, *variables]))

    whole = slopes(tf.convert_to_tensor(drawn))
    # two or three inputs at a time of seven: the last block is filled up
    monkeypatch.setattr(draw_kernels, "TOGETHER", 3 * G * 2 * 6 * M)
    seen = []
    inside = DrawKernels._evaluate
    monkeypatch.setattr(DrawKernels, "_evaluate", lambda *args: (seen.append(args[2].shape[0]), inside(*args))[1])
    if how != "eager":
        signature = [tf.TensorSpec([None, G, 2, 12], tf.float64)] if "unknown" in how else None
        slopes = tf.function(slopes, autograph=False, input_signature=signature, jit_compile="xla" in how)
    for mine, theirs in zip(slopes(tf.convert_to_tensor(drawn)), whole, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-10, atol=1e-12)
    assert seen[0] != 7  # the first process, of patches, was indeed worked on in blocks


def test_points_of_another_space_are_refused():
    with pytest.raises(ValueError, match="inducing points have 5 values each, but g takes 6"):
        DrawKernels(BASES["rbf"](), np.zeros((M, 5)), listed=PATCHES["alone"])(np.zeros((1, 1, 1, 12)))
