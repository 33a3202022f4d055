import math

import numpy as np
import pytest
import tensorflow as tf
from scipy import stats

from orbitgp.orbits import LocalDeformation
from orbitgp.orbits.deformation import GENERATORS, MODES, gaussian_smoother, smooth_noise_basis
from orbitgp.orbits.sampling import uniforms

SEED = [6, 1]
SHAPE = (6, 5, 2)  # two channels: from both together one can tell both components of a displacement
H = 2.5  # half the longer side, in pixels
every_mode = pytest.mark.parametrize("mode", MODES)


def draws(orbit, images, count):
    return uniforms(images, 1, count, orbit.num_uniforms, SEED).numpy()[:, 0]


def gradient_by_loops(image, width, h):
    """Central differences of the smoothed image, zero outside, for each unit of h pixels."""
    height, columns, channels = image.shape
    total = sum(math.exp(-0.5 * (k / width) ** 2) for k in range(-50, 51))

    def weight(k):
        return math.exp(-0.5 * (k / width) ** 2) / total

    smooth = np.zeros((height + 2, columns + 2, channels))
    for i in range(height):
        for j in range(columns):
            for k in range(height):
                for m in range(columns):
                    smooth[i + 1, j + 1] += weight(i - k) * weight(j - m) * image[k, m]
    along_x, along_y = np.zeros(image.shape), np.zeros(image.shape)
    for i in range(height):
        for j in range(columns):
            along_x[i, j] = (smooth[i + 1, j + 2] - smooth[i + 1, j]) / 2 * h
            along_y[i, j] = (smooth[i + 2, j + 1] - smooth[i, j + 1]) / 2 * h
    return along_x, along_y


def displacement_of(U, deformation=0.0, generators=(0, 0, 0, 0, 0, 0)):
    """
    u(p) in units of h, read off what the tangent form does to a known image of two channels.

    :return: [N, S, H, W, 2]
    """
    image = np.random.default_rng(8).normal(size=SHAPE)
    orbit = LocalDeformation(SHAPE, deformation, generators, 0.0, mode="tangent")
    X = np.repeat(image.reshape(1, -1), len(U), axis=0)
    change = orbit.transform(X, U).numpy().reshape(*U.shape[:2], *SHAPE) - image
    slopes = np.stack(gradient_by_loops(image, 0.9, H), axis=-1)  # [H, W, channel, direction]
    return np.linalg.solve(np.broadcast_to(slopes, (*U.shape[:2], *slopes.shape)), change[..., None])[..., 0]


def field_by_loops(U):
    """The documented field of one draw from its uniforms, by sums over the basis. [H, W, 2]"""
    rows, columns = smooth_noise_basis(6, 0.3 * H), smooth_noise_basis(5, 0.3 * H)
    noise = iter(stats.norm.ppf(U[7:]))
    field = np.zeros((6, 5, 2))
    for component in range(2):
        for r in range(rows.shape[1]):
            for q in range(columns.shape[1]):
                value = next(noise)
                for i in range(6):
                    for j in range(5):
                        field[i, j, component] += rows[i, r] * value * columns[j, q]
    return field / math.sqrt(np.mean(field**2))


@pytest.mark.parametrize(("length", "width"), [(5, 0.7), (9, 2.0), (4, 0.01)])
def test_the_smoother_is_a_gaussian_with_zeros_beyond_the_ends(length, width):
    smoother = gaussian_smoother(length, width)
    total = sum(math.exp(-0.5 * (k / width) ** 2) for k in range(-100, 101))
    for i in range(length):
        for j in range(length):
            np.testing.assert_allclose(smoother[i, j], math.exp(-0.5 * ((i - j) / width) ** 2) / total, rtol=1e-12)


def test_the_middle_of_a_long_signal_keeps_its_sum():
    np.testing.assert_allclose(gaussian_smoother(41, 2.0)[20].sum(), 1.0, rtol=1e-12)


@pytest.mark.parametrize("length", [5, 12, 28])
@pytest.mark.parametrize("width", [0.6, 2.0, 5.0])
@pytest.mark.parametrize("kept", [0.9, 0.999])
def test_the_basis_has_the_covariance_of_smoothed_noise_up_to_the_kept_variance(length, width, kept):
    A, basis = gaussian_smoother(length, width), smooth_noise_basis(length, width, kept)
    lost = A @ A.T - basis @ basis.T
    total = np.trace(A @ A.T)
    assert -1e-12 <= np.trace(lost) <= (1 - kept) * total
    assert np.linalg.eigvalsh(lost).min() > -1e-12  # what is lost is the covariance of something
    # and no fewer columns would do
    assert np.trace(A @ A.T) - np.trace(basis[:, :-1] @ basis[:, :-1].T) > (1 - kept) * total
    assert np.all(np.diff(np.sum(basis**2, axis=0)) <= 1e-12)


def test_a_basis_that_keeps_everything_has_the_covariance_of_smoothed_noise():
    A, basis = gaussian_smoother(8, 1.0), smooth_noise_basis(8, 1.0, kept=1.0)
    np.testing.assert_allclose(basis @ basis.T, A @ A.T, atol=1e-14)


def test_fields_have_a_root_mean_square_of_one_in_each_draw():
    U = draws(LocalDeformation(SHAPE), 3, 4)
    field = displacement_of(U, deformation=0.3)
    np.testing.assert_allclose(np.sqrt(np.mean(field**2, axis=(2, 3, 4))), 0.3, rtol=1e-9)


def test_fields_agree_with_plain_loops():
    U = draws(LocalDeformation(SHAPE), 2, 2)
    field = displacement_of(U, deformation=1.0)
    for n in range(2):
        for s in range(2):
            np.testing.assert_allclose(field[n, s], field_by_loops(U[n, s]), atol=1e-9)


def test_fields_have_the_law_of_smoothed_white_noise():
    count = 4000
    field = displacement_of(uniforms(count, 1, 1, LocalDeformation(SHAPE).num_uniforms, SEED).numpy()[:, 0], 1.0)
    noise = np.random.default_rng(0).normal(size=(count, 2, 6, 5))
    smooth = gaussian_smoother(6, 0.3 * H) @ noise @ gaussian_smoother(5, 0.3 * H).T
    smooth /= np.sqrt(np.mean(smooth**2, axis=(1, 2, 3), keepdims=True))
    drawn = np.moveaxis(field[:, 0], -1, 1).reshape(count, -1)
    expected = smooth.reshape(count, -1)
    # standard errors of a second moment are about √2/√count in units of a variance near one, twice over
    error = 5 * 2 / np.sqrt(count)
    np.testing.assert_allclose(drawn.mean(axis=0), 0, atol=5 / np.sqrt(count) * 1.5)
    np.testing.assert_allclose(drawn.T @ drawn / count, expected.T @ expected / count, atol=error * 1.3)


FORMULAS = {
    "shift_x": lambda x, y: (1, 0),
    "shift_y": lambda x, y: (0, 1),
    "rotation": lambda x, y: (y, -x),
    "scaling": lambda x, y: (x, y),
    "hyperbolic_axis": lambda x, y: (x, -y),
    "hyperbolic_diagonal": lambda x, y: (y, x),
}


@pytest.mark.parametrize("name", GENERATORS)
def test_each_generator_displaces_by_its_formula(name):
    number = GENERATORS.index(name)
    generators = np.zeros(6)
    generators[number] = 0.3
    U = draws(LocalDeformation(SHAPE), 2, 2)
    shown = displacement_of(U, generators=generators)
    for n in range(2):
        for s in range(2):
            epsilon = 2 * U[n, s, number] - 1
            for i in range(6):
                for j in range(5):
                    x, y = (j - 2) / H, (i - 2.5) / H
                    expected = 0.3 * epsilon * np.array(FORMULAS[name](x, y))
                    np.testing.assert_allclose(shown[n, s, i, j], expected, atol=1e-10)


def everything_by_loops(image, U, mode, bilinear):
    """All amplitudes at once, [H, W, C], from the formulas on their own."""
    deformation, generators, thickening = 0.15, [0.1, 0.12, 0.14, 0.16, 0.18, 0.2], 0.3
    along_x, along_y = gradient_by_loops(image, 0.9, H)
    steepness = np.sqrt(along_x**2 + along_y**2)
    u = deformation * field_by_loops(U)
    for i in range(6):
        for j in range(5):
            for number, name in enumerate(GENERATORS):
                v = FORMULAS[name]((j - 2) / H, (i - 2.5) / H)
                u[i, j] += generators[number] * (2 * U[number] - 1) * np.array(v)
    epsilon = 2 * U[6] - 1
    if mode == "tangent":
        return image + u[..., :1] * along_x + u[..., 1:] * along_y + thickening * epsilon * steepness
    return bilinear(image + thickening * epsilon * steepness, H * u[..., 0], H * u[..., 1])


@every_mode
def test_all_amplitudes_together_agree_with_plain_loops(mode, bilinear_by_loops):
    orbit = LocalDeformation(SHAPE, 0.15, [0.1, 0.12, 0.14, 0.16, 0.18, 0.2], 0.3, mode=mode)
    images, U = np.random.default_rng(2).uniform(size=(2, *SHAPE)), draws(orbit, 2, 2)
    drawn = orbit.transform(images.reshape(2, -1), U).numpy().reshape(2, 2, *SHAPE)
    for n in range(2):
        for s in range(2):
            expected = everything_by_loops(images[n], U[n, s], mode, bilinear_by_loops)
            np.testing.assert_allclose(drawn[n, s], expected, atol=1e-12)


def test_both_modes_agree_exactly_where_the_image_is_a_plane():
    shape, (i, j) = (26, 24), np.indices((26, 24))
    X = (2.0 + 0.3 * i - 0.2 * j).reshape(1, -1)
    amplitudes = 0.01, [0.01, 0.02, 0.01, 0.01, 0.02, 0.01], 0.05
    warp, tangent = (LocalDeformation(shape, *amplitudes, mode=mode) for mode in MODES)
    U = draws(warp, 1, 3)
    inside = (slice(None), slice(None), slice(9, -9), slice(9, -9))  # out of reach of the smoothed edge
    shown, added = (orbit.transform(X, U).numpy().reshape(1, 3, *shape)[inside] for orbit in (warp, tangent))
    assert np.abs(added - X.reshape(1, 1, *shape)[inside]).max() > 0.01
    np.testing.assert_allclose(shown, added, atol=1e-11)


def test_both_modes_agree_to_first_order_on_a_smooth_image():
    errors = []
    for side in (21, 41, 81):
        shape, (i, j) = (side, side), (np.indices((side, side)) - (side - 1) / 2) / (side / 2)
        X = np.exp(-8 * ((i + 0.1) ** 2 + 1.5 * (j - 0.1) ** 2)).reshape(1, -1)
        orbits = [
            LocalDeformation(shape, 0.0, [0.004, 0.005, 0.01, 0.01, 0.01, 0.01], 0.005, mode=mode) for mode in MODES
        ]
        # the same generators and thickening at each size; the field, whose amplitude is zero, takes the rest
        U = np.full((1, 4, orbits[0].num_uniforms), 0.3)
        U[:, :, :7] = np.random.default_rng(3).uniform(size=(4, 7))
        warped, added = (orbit.transform(X, U).numpy()[0] for orbit in orbits)
        errors.append(np.linalg.norm(warped - added, axis=1) / np.linalg.norm(added - X, axis=1))
    # bilinear slopes are one-sided and x̃ is smoothed, so that what is left shrinks with the pixels
    assert np.all(errors[1] < 0.7 * errors[0]) and np.all(errors[2] < 0.7 * errors[1]) and np.all(errors[2] < 0.1), (
        errors
    )


@every_mode
@pytest.mark.parametrize("u", [0.1, 0.4, 0.6, 0.9])
def test_thickening_brightens_or_darkens_with_the_sign_of_its_draw(mode, u, smooth_images):
    orbit = LocalDeformation((6, 5), 0.0, np.zeros(6), 0.2, mode=mode)
    X, U = smooth_images(3, (6, 5)), draws(orbit, 3, 2)
    U[:, :, 6] = u
    change = orbit.transform(X, U).numpy().mean(axis=-1) - X.mean(axis=-1, keepdims=True)
    assert np.all(np.sign(change) == np.sign(u - 0.5))


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


def test_amplitudes_stay_where_they_were_put():
    orbit = LocalDeformation((6, 5), 0.1, [0.0, 0.1, 0.2, 0.3, 0.4, 0.5], 0.6)
    np.testing.assert_allclose(orbit.deformation, 0.1)
    np.testing.assert_allclose(orbit.generators, [0.0, 0.1, 0.2, 0.3, 0.4, 0.5])
    np.testing.assert_allclose(orbit.thickening, 0.6)
    ranks = [smooth_noise_basis(side, 0.3 * H).shape[1] for side in (6, 5)]
    assert orbit.num_uniforms == 7 + 2 * ranks[0] * ranks[1]


def test_wider_fields_need_fewer_random_numbers():
    dimensions = [LocalDeformation((12, 10), field_width=width).num_uniforms for width in (0.1, 0.3, 1.0)]
    assert dimensions[0] > dimensions[1] > dimensions[2] > 7


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"shape": (6,)}, r"shape must be \(H, W\) or \(H, W, C\), got \(6,\)"),
        ({"deformation": -0.1}, r"deformation must be a finite number in \[0, inf\], got -0.1"),
        ({"deformation": "big"}, r"deformation must be a finite number in \[0, inf\], got 'big'"),
        ({"generators": [0.1] * 5}, r"generators must have shape \(6,\), got \(5,\)"),
        ({"generators": 0.1}, r"generators must have shape \(6,\), got \(\)"),
        ({"generators": [0.1] * 5 + [-0.2]}, r"generators must not be negative, got \[.*-0.2\]"),
        ({"generators": [0.1] * 5 + [np.nan]}, r"generators must be finite, got \[.*nan\]"),
        ({"thickening": np.inf}, r"thickening must be a finite number in \[0, inf\], got inf"),
        ({"mode": "affine"}, "mode must be one of 'warp', 'tangent', got 'affine'"),
        ({"field_width": 0.0}, r"field_width must be a finite number in \[0.001, inf\], got 0.0"),
        ({"gradient_width": -1.0}, r"gradient_width must be a finite number in \[0.001, inf\], got -1.0"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        LocalDeformation(**{"shape": (6, 5), **arguments})
