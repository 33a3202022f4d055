import math

import numpy as np
import pytest
import tensorflow as tf
from scipy import stats

from orbitgp.orbits import LocalDeformation
from orbitgp.orbits.deformation import GENERATORS, MODES, gaussian_smoother, smooth_noise_basis
from orbitgp.orbits.sampling import uniforms

SHAPE = (6, 5, 2)
H = 2.5  # half the longer side, in pixels
AMPLITUDES = 0.15, [0.1, 0.12, 0.14, 0.16, 0.18, 0.2], 0.3
FORMULAS = {
    "shift_x": lambda x, y: (1, 0),
    "shift_y": lambda x, y: (0, 1),
    "rotation": lambda x, y: (y, -x),
    "scaling": lambda x, y: (x, y),
    "hyperbolic_axis": lambda x, y: (x, -y),
    "hyperbolic_diagonal": lambda x, y: (y, x),
}
every_mode = pytest.mark.parametrize("mode", MODES)


def draws(orbit, images, count):
    return uniforms(images, 1, count, orbit.num_uniforms, [6, 1]).numpy()[:, 0]


def test_the_smoother_is_a_gaussian_with_zeros_beyond_the_ends():
    for length, width in ((5, 0.7), (9, 2.0), (4, 0.01)):
        smoother = gaussian_smoother(length, width)
        total = sum(math.exp(-0.5 * (k / width) ** 2) for k in range(-100, 101))
        for i, j in np.ndindex(length, length):
            np.testing.assert_allclose(smoother[i, j], math.exp(-0.5 * ((i - j) / width) ** 2) / total, rtol=1e-12)


@pytest.mark.parametrize(("length", "width", "kept"), [(5, 0.6, 0.9), (12, 2.0, 0.999), (28, 5.0, 0.999), (8, 1.0, 1)])
def test_the_basis_has_the_covariance_of_smoothed_noise_up_to_the_kept_variance(length, width, kept):
    A, basis = gaussian_smoother(length, width), smooth_noise_basis(length, width, kept)
    lost, total = A @ A.T - basis @ basis.T, np.trace(A @ A.T)
    assert -1e-12 <= np.trace(lost) <= (1 - kept) * total + 1e-12
    assert np.linalg.eigvalsh(lost).min() > -1e-12  # what is lost is the covariance of something
    # and no fewer columns would do
    assert total - np.trace(basis[:, :-1] @ basis[:, :-1].T) > (1 - kept) * total
    assert np.all(np.diff(np.sum(basis**2, axis=0)) <= 1e-12)


def gradient_by_loops(image):
    """Central differences of the smoothed image, zero outside, for each unit of h pixels."""
    height, width, channels = image.shape
    total = sum(math.exp(-0.5 * (k / 0.9) ** 2) for k in range(-50, 51))
    weight = [math.exp(-0.5 * (k / 0.9) ** 2) / total for k in range(max(height, width))]
    smooth = np.zeros((height + 2, width + 2, channels))
    for i, j, k, m in np.ndindex(height, width, height, width):
        smooth[i + 1, j + 1] += weight[abs(i - k)] * weight[abs(j - m)] * image[k, m]
    along_x, along_y = np.zeros(image.shape), np.zeros(image.shape)
    for i, j in np.ndindex(height, width):
        along_x[i, j] = (smooth[i + 1, j + 2] - smooth[i + 1, j]) / 2 * H
        along_y[i, j] = (smooth[i + 2, j + 1] - smooth[i, j + 1]) / 2 * H
    return along_x, along_y


def field_by_loops(U):
    """The documented field of one draw from its uniforms, by sums over the basis. [H, W, 2]"""
    rows, columns = smooth_noise_basis(6, 0.3 * H), smooth_noise_basis(5, 0.3 * H)
    noise = iter(stats.norm.ppf(U[7:]))
    field = np.zeros((6, 5, 2))
    for component, r, q in np.ndindex(2, rows.shape[1], columns.shape[1]):
        value = next(noise)
        for i, j in np.ndindex(6, 5):
            field[i, j, component] += rows[i, r] * value * columns[j, q]
    return field / math.sqrt(np.mean(field**2))


@every_mode
def test_all_amplitudes_together_agree_with_plain_loops(mode, bilinear_by_loops):
    deformation, generators, thickening = AMPLITUDES
    orbit = LocalDeformation(SHAPE, *AMPLITUDES, mode=mode)
    images, U = np.random.default_rng(2).uniform(size=(2, *SHAPE)), draws(orbit, 2, 2)
    drawn = orbit.transform(images.reshape(2, -1), U).numpy().reshape(2, 2, *SHAPE)
    for n, s in np.ndindex(2, 2):
        along_x, along_y = gradient_by_loops(images[n])
        thicker = thickening * (2 * U[n, s, 6] - 1) * np.sqrt(along_x**2 + along_y**2)
        u = deformation * field_by_loops(U[n, s])
        for i, j in np.ndindex(6, 5):
            for number, name in enumerate(GENERATORS):
                v = FORMULAS[name]((j - 2) / H, (i - 2.5) / H)
                u[i, j] += generators[number] * (2 * U[n, s, number] - 1) * np.array(v)
        if mode == "tangent":
            expected = images[n] + u[..., :1] * along_x + u[..., 1:] * along_y + thicker
        else:
            expected = bilinear_by_loops(images[n] + thicker, H * u[..., 0], H * u[..., 1])
        np.testing.assert_allclose(drawn[n, s], expected, atol=1e-12)


@every_mode
def test_an_empty_image_stays_empty_with_finite_gradients(mode, smooth_loss):
    orbit, X = LocalDeformation((6, 5), mode=mode), tf.zeros([1, 30], tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(X)
        drawn = orbit.transform(X, draws(orbit, 1, 2))
        loss = smooth_loss(drawn)
    assert np.all(drawn == 0)
    for gradient in tape.gradient(loss, [X, *orbit.trainable_variables]):
        assert np.all(np.isfinite(tf.convert_to_tensor(gradient)))


@every_mode
def test_amplitudes_can_grow_from_zero(mode, smooth_images, smooth_loss):
    orbit = LocalDeformation((6, 5), 0.0, np.zeros(6), 0.0, mode=mode)
    with tf.GradientTape() as tape:
        loss = smooth_loss(orbit.transform(smooth_images(1, (6, 5)), draws(orbit, 1, 3)))
    for gradient in tape.gradient(loss, orbit.trainable_variables):
        assert np.all(np.abs(gradient) > 1e-3)
