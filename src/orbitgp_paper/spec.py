"""
Everything that decides the result of a run, as typed settings with ranges and defaults.

The defaults are those of the paper's size. Angles are in degrees. Loads neither TensorFlow nor Snakemake.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    Strict,
    StringConstraints,
    TypeAdapter,
    model_validator,
)
from pydantic.json_schema import SkipJsonSchema

from orbitgp_paper.yaml_files import ConfigError, read_yaml, validate

MNIST_IMAGES = {"train": 60_000, "test": 10_000}

Item = TypeVar("Item")


def _distinct(items: tuple[Item, ...]) -> tuple[Item, ...]:
    if len(set(items)) < len(items):
        raise ValueError(f"{list(items)} has an entry more than once")
    return items


Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$", max_length=60)]
Text = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f]+$", max_length=60)]
PathText = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f]+$", max_length=4096)]
ImportPath = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$", max_length=200)]
Seed = Annotated[int, Field(ge=0, le=2**31 - 1)]
Count = Annotated[int, Field(ge=1, le=10_000_000)]
Draws = Annotated[int, Field(ge=1, le=65_536)]
Positive = Annotated[float, Field(gt=0, le=1e6)]
Fraction = Annotated[float, Field(ge=0, le=1)]
Width = Annotated[int, Field(ge=1, le=65_536)]
List = Annotated[tuple[Item, ...], Strict(False)]  # YAML has lists, no tuples
Distinct = Annotated[tuple[Item, ...], Strict(False), AfterValidator(_distinct)]
Setting = bool | int | float | str | List[float]
Ends = List[Annotated[float, Field(ge=-360, le=360)]]


class Block(BaseModel):
    """A block of keys: unknown ones are refused, and so are NaN, words for numbers and true for 1."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


# -- data sets -----------------------------------------------------------------------------------------------------


class _Dataset(Block):
    name: SkipJsonSchema[Name] = Field("", description="Key of the data set in the configuration.")


class _FromMnist(_Dataset):
    train: int = Field(ge=1, le=MNIST_IMAGES["train"], description="Number of training images.")
    test: int = Field(ge=1, le=MNIST_IMAGES["test"], description="Number of test images.")
    folder: PathText | None = Field(None, description="Folder of the four files; None for the usual one.")

    @property
    def training_images(self) -> int:
        """How many are trained on."""
        return self.train


class MnistData(_FromMnist):
    """The first images of MNIST."""

    kind: Literal["mnist"]


class ParityData(_FromMnist):
    """Odd against even digits, each rotated by an angle uniform in [−alpha, alpha]."""

    kind: Literal["parity"]
    alpha: float = Field(gt=0, le=180, description="Largest angle, in degrees.")
    seed: Seed = Field(0, description="Seed of the angles.")


class RotatedData(_Dataset):
    """MNIST digits, each rotated by an angle uniform in [0°, 360°); training and test images are drawn from all."""

    kind: Literal["rotated"]
    train: Count = Field(description="Number of training images.")
    test: Count = Field(description="Number of test images.")
    seed: Seed = Field(0, description="Seed of the angles and of the split.")

    @property
    def training_images(self) -> int:
        """How many are trained on."""
        return self.train

    @model_validator(mode="after")
    def _enough_images(self) -> RotatedData:
        if self.train + self.test > (most := sum(MNIST_IMAGES.values())):
            raise ValueError(f"train + test = {self.train + self.test} must be at most {most}, the images of MNIST")
        return self


class _Movement(Block):
    rotation: float = Field(0.0, ge=0, le=180, description="Largest angle, in degrees.")
    scale: float = Field(1.0, ge=1, le=4, description="Largest factor of size.")
    translation: float = Field(0.0, ge=0, le=0.5, description="Largest shift, as a share of the image's side.")


class Augmentation(_Movement):
    """Copies of the training images, each moved at random, that are trained on besides them."""

    copies: Count = Field(description="Of each image.")


class TransformedData(_FromMnist, _Movement):
    """The first images of MNIST or Fashion-MNIST, each moved once at random; by default not at all."""

    kind: Literal["transformed"]
    source: Literal["mnist", "fashion_mnist"] = Field("mnist", description="What the images are of.")
    seed: Seed = Field(0, description="Seed of the movements, and of those of the copies.")
    augment: Augmentation | None = Field(None, description="Copies to train on besides.")

    @property
    def training_images(self) -> int:
        """The images and their copies."""
        return self.train * (1 + (self.augment.copies if self.augment else 0))


class OwnImages(_Dataset):
    """One's own images: in an .npz file with ``images`` and ``labels``, in idx files, or in a folder for each class."""

    kind: Literal["images"]
    path: PathText = Field(description="An .npz file, an idx file of images, or a folder with one sub-folder a class.")
    labels: PathText | None = Field(None, description="The idx file of labels, for an idx file of images.")
    test_fraction: float = Field(0.2, gt=0, lt=1, description="Share to test on, if the file has no test set.")
    seed: Seed = Field(0, description="Seed of the split.")

    @property
    def training_images(self) -> None:
        """Only the files can tell how many are trained on."""
        return None


Dataset = Annotated[MnistData | ParityData | RotatedData | TransformedData | OwnImages, Field(discriminator="kind")]


def parse_dataset(content: Mapping[str, Any]) -> Dataset:
    """Checks a data set's settings: plain values, including its ``kind``."""
    return TypeAdapter(Dataset).validate_python(content)


# -- orbits --------------------------------------------------------------------------------------------------------


class IdentityOrbit(Block):
    """The image alone: no invariance."""

    kind: Literal["identity"]


class RightAnglesOrbit(Block):
    """Rotations by 0°, 90°, 180° and 270°."""

    kind: Literal["right_angles"]


class QuantisedRotationOrbit(Block):
    """Rotations by multiples of 360° / order."""

    kind: Literal["quantised_rotation"]
    order: int = Field(ge=1, le=1024, description="Number of rotations.")


class _Learned(Block):
    trainable: bool = Field(True, description="Whether the orbit is learned; it keeps its start otherwise.")


class RotationOrbit(_Learned):
    """Rotations by an angle uniform in [−alpha, alpha]."""

    kind: Literal["rotation"]
    alpha: float = Field(ge=0, le=180, description="Largest angle, in degrees; where learning starts.")
    transform: Literal["fold", "sigmoid"] = Field("fold", description="How the angle is kept within 0° and 180°.")

    @model_validator(mode="after")
    def _no_sigmoid_at_its_ends(self) -> RotationOrbit:
        if self.transform == "sigmoid" and self.alpha in (0.0, 180.0):
            raise ValueError(f"alpha = {self.alpha:g} must lie between 0 and 180 where transform is sigmoid")
        return self


class _Box(_Learned):
    spread: float | None = Field(None, ge=0, le=10, description="Half-width of a box about the identity.")

    @model_validator(mode="after")
    def _one_box(self) -> _Box:
        ends = [end for end in (getattr(self, "lower", None), getattr(self, "upper", None)) if end is not None]
        if len(ends) != (2 if self.spread is None else 0):
            raise ValueError("give either spread, or both lower and upper")
        return self


class AffineOrbit(_Box):
    """Affine maps, whose six matrix entries are uniform in a box."""

    kind: Literal["affine"]
    lower: Ends | None = Field(None, min_length=6, max_length=6, description="φ_min, the 2 × 3 matrix by row.")
    upper: Ends | None = Field(None, min_length=6, max_length=6, description="φ_max.")


class InterpretableAffineOrbit(_Box):
    """Affine maps, whose angle (in degrees), scales, shears and shifts are uniform in a box."""

    kind: Literal["interpretable_affine"]
    lower: Ends | None = Field(None, min_length=7, max_length=7, description="φ_min: angle, scales, shears, shifts.")
    upper: Ends | None = Field(None, min_length=7, max_length=7, description="φ_max.")


def _six(value: Any) -> Any:
    """One amplitude stands for all six generators."""
    return value if isinstance(value, list | tuple) else [value] * 6


Six = Annotated[tuple[Fraction, ...], Strict(False), BeforeValidator(_six)]


class LocalOrbit(_Learned):
    """Small deformations: a smooth random field, the six generators of affine maps, and thickening."""

    kind: Literal["local"]
    deformation: Fraction = Field(description="Amplitude of the smooth field.")
    generators: Six = Field(min_length=6, max_length=6, description="Amplitudes of the six generators, or one for all.")
    thickening: Fraction = Field(description="Amplitude of thickening and thinning.")
    mode: Literal["warp", "tangent"] = Field("warp", description="Images are warped, or moved along their tangent.")


class OwnOrbit(Block):
    """An orbit of one's own, made from the images' shape by a class or function that Python can import."""

    kind: Literal["own"]
    path: ImportPath = Field(description="Import path of the class or function: package.module:Class.")
    settings: dict[str, Setting] = Field({}, description="Its arguments besides the shape, by name.")


class ComposedOrbit(Block):
    """Orbits one after the other."""

    kind: Literal["composed"]
    parts: List[Orbit] = Field(min_length=1, max_length=8, description="The orbits, in the order in which they act.")


Orbit = Annotated[
    IdentityOrbit
    | RotationOrbit
    | AffineOrbit
    | InterpretableAffineOrbit
    | LocalOrbit
    | RightAnglesOrbit
    | QuantisedRotationOrbit
    | OwnOrbit
    | ComposedOrbit,
    Field(discriminator="kind"),
]


def own_modules(orbit: Orbit) -> list[str]:
    """The user's own modules that an orbit needs."""
    if isinstance(orbit, ComposedOrbit):
        return [module for part in orbit.parts for module in own_modules(part)]
    return [orbit.path.partition(":")[0]] if isinstance(orbit, OwnOrbit) else []


def orbit_points(orbit: Orbit) -> int | None:
    """Number of points of an orbit that can be listed, or None."""
    return {"identity": 1, "right_angles": 4}.get(orbit.kind, getattr(orbit, "order", None))


# -- the model -----------------------------------------------------------------------------------------------------


class GaussianLikelihood(Block):
    """Gaussian noise on one-hot labels."""

    kind: Literal["gaussian"] = "gaussian"
    variance: float = Field(0.02, gt=1e-6, le=1000, description="Initial variance of the noise.")


class TiltedLikelihood(Block):
    """A likelihood whose bound has local parameters."""

    kind: str
    tilt: Literal["network", "table", "groups"] = Field(
        description="Source of these parameters; groups: independent draws."
    )
    hidden: List[Width] | None = Field(None, max_length=8, description="Widths of the network's hidden layers.")

    @model_validator(mode="after")
    def _network_has_layers(self) -> TiltedLikelihood:
        if (self.tilt == "network") != (self.hidden is not None):
            raise ValueError("tilt: network needs hidden, the widths of its layers; the other tilts take none")
        return self


class PolyaGammaLikelihood(TiltedLikelihood):
    """Logistic likelihood of two classes, by Pólya-Gamma augmentation."""

    kind: Literal["polya_gamma"]


class SoftmaxLikelihood(TiltedLikelihood):
    """Softmax likelihood of any number of classes, under Bouchard's bound."""

    kind: Literal["softmax"]


class LogisticSoftmaxLikelihood(TiltedLikelihood):
    """Logistic-softmax likelihood of any number of classes."""

    kind: Literal["logistic_softmax"]


class DirichletLikelihood(Block):
    """Gaussian noise on labels of any number of classes, transformed as for Dirichlet probabilities."""

    kind: Literal["dirichlet"]
    concentration: float = Field(1e-4, ge=1e-6, le=1, description="Added to the zeros and ones of one-hot labels.")


Likelihood = Annotated[
    GaussianLikelihood | PolyaGammaLikelihood | SoftmaxLikelihood | LogisticSoftmaxLikelihood | DirichletLikelihood,
    Field(discriminator="kind"),
]

#: kinds that take any number of classes, as one-hot labels
ONE_HOT = ("gaussian", "softmax", "logistic_softmax", "dirichlet")


class Kernel(Block):
    """The squared exponential kernel of g."""

    variance: Positive = Field(
        0.02, description="Initial variance of g; that of f, its average over the orbit, is smaller."
    )
    lengthscale: Positive = Field(6.0, description="Initial length scale, in pixel values.")


class Component(Block):
    """One process of a sum: of the whole image, or of its patches."""

    patch: int | None = Field(None, ge=1, le=4096, description="Pixels along a side of a patch; none: whole images.")
    stride: int = Field(1, ge=1, le=4096, description="Pixels between patches.")
    location: bool = Field(True, description="Whether the kernel knows where a patch lies.")
    inducing: int = Field(ge=1, le=10_000, description="Number of inducing points.")
    variance: Positive | None = Field(None, description="Initial variance of its g; none: the kernel's.")
    lengthscale: Positive | None = Field(None, description="Initial length scale; none: the kernel's, less in patches.")

    @model_validator(mode="after")
    def _patches_have_strides(self) -> Component:
        if self.patch is None and (self.stride, self.location) != (1, True):
            raise ValueError("stride and location belong to patches: give patch, their size, or leave both out")
        return self


class Inducing(Block):
    """Inducing points."""

    count: int = Field(750, ge=1, le=10_000, description="Number of inducing points.")
    method: Literal["kmeans", "greedy"] = Field("kmeans", description="How they are chosen from the images.")


# -- draws from the orbit ------------------------------------------------------------------------------------------


class GroupScheme(Block):
    """Independent groups of draws, so that products of means are unbiased."""

    kind: Literal["groups"] = "groups"
    groups: int = Field(2, ge=2, le=1024, description="Number of independent groups.")
    size: int = Field(8, ge=1, le=1024, description="Draws in each group.")
    sampler: Literal["sobol", "iid"] = Field("sobol", description="Scrambled Sobol points, or independent draws.")
    shared: bool = Field(False, description="Whether all images of a batch have the same draws.")


class PaperScheme(Block):
    """The paper's estimator: independent draws, and all pairs of different ones."""

    kind: Literal["paper"]
    samples: int = Field(ge=2, le=1024, description="Number of draws.")
    shared: bool = Field(False, description="Whether all images of a batch have the same draws.")


class FullScheme(Block):
    """Every point of the orbit, for orbits that can be listed."""

    kind: Literal["full"]


class WithoutReplacementScheme(Block):
    """Some points of an orbit that can be listed, no point twice."""

    kind: Literal["without_replacement"]
    count: int = Field(ge=1, le=1024, description="Number of points.")


Scheme = Annotated[
    GroupScheme | PaperScheme | FullScheme | WithoutReplacementScheme,
    Field(discriminator="kind"),
]


# -- training ------------------------------------------------------------------------------------------------------


class Rates(Block):
    """Adam's learning rates, by group of parameters."""

    inducing: Fraction = Field(0.004, description="Rate of the inducing points.")
    kernel: Fraction = Field(0.006, description="Rate of the kernel's variance and length scale.")
    likelihood: Fraction = Field(0.006, description="Rate of the noise variance, or of the tilt's network or table.")
    orbit: Fraction = Field(0.002, description="Rate of the orbit's parameters.")


class AdamRates(Rates):
    """Adam's learning rates, by group of parameters; q is one of them."""

    variational: Fraction = Field(0.003, description="Rate of the mean and covariance of q.")


class NaturalSteps(Block):
    """Step sizes of the natural gradient, from the first to the last step by a geometric schedule."""

    first: float = Field(0.3, gt=0, le=1, description="Size of the first step.")
    last: float = Field(0.01, gt=0, le=1, description="Size of the last step.")
    scale: Literal["ceiling", "precision"] = Field(
        "ceiling", description="Scale of the mean's step: an upper bound of q's precision, or this precision."
    )

    @model_validator(mode="after")
    def _not_growing(self) -> NaturalSteps:
        if self.last > self.first:
            raise ValueError(f"last = {self.last:g} must be at most first = {self.first:g}")
        return self


class _Optimiser(Block):
    steps: Count = Field(description="Number of steps.")
    batch: Count = Field(description="Images in each step.")
    batches: Literal["drawn", "shuffled", "hard"] = Field(
        "drawn",
        description="drawn: at random, with replacement; shuffled: every image once in each epoch; hard: "
        "importance-sampled, with more of the images that the model gets wrong.",
    )
    inducing_scale: Literal["element", "row"] = Field(
        "element", description="Whether Adam scales steps for each pixel of an inducing point, or for each point."
    )
    warmup: Fraction = Field(0.02, description="Share of the steps over which the rates rise from zero.")
    floor: Fraction = Field(0.01, description="Final share of the learning rates.")


class NaturalOptimiser(_Optimiser):
    """Natural gradient steps for q, Adam for everything else."""

    kind: Literal["natural"]
    rates: Rates = Rates()
    natural: NaturalSteps = NaturalSteps()


class AdamOptimiser(_Optimiser):
    """Adam for everything."""

    kind: Literal["adam"]
    rates: AdamRates = AdamRates()


Optimiser = Annotated[NaturalOptimiser | AdamOptimiser, Field(discriminator="kind")]


class FinalPass(Block):
    """The last pass over all training images, which gives the bound that is reported."""

    samples: int = Field(128, ge=2, le=65_536, multiple_of=2, description="Draws for each image, in two groups.")
    refit: bool = Field(True, description="Whether q is set to its optimum at the end, if that raises the bound.")


class Evaluation(Block):
    """Evaluations on the test images while training."""

    count: Count = Field(40, description="Number of evaluations.")
    samples: Draws = Field(32, description="Draws for each test image.")


class Training(Block):
    """How a model is made and trained."""

    likelihood: Likelihood = GaussianLikelihood()
    kernel: Kernel = Kernel()
    components: List[Component] | None = Field(
        None, min_length=1, max_length=8, description="Processes whose sum is averaged; none: the whole image alone."
    )
    inducing: Inducing = Inducing()
    scheme: Scheme = GroupScheme()
    precision: Literal["mixed", "float64"] = Field("mixed", description="mixed: kernel and warps in float32.")
    compile: bool = Field(True, description="Whether XLA compiles the bound; pays off on a GPU and for long trainings.")
    jitter: float = Field(1e-6, gt=0, le=0.01, description="Added to the diagonal of Kuu.")
    optimiser: Optimiser
    final_pass: FinalPass = FinalPass()
    evaluation: Evaluation = Evaluation()


class RunSpec(Training):
    """All that decides the result of one run: one variant of an experiment, from one seed."""

    experiment: Name = Field(description="Name of the experiment.")
    variant: Name = Field(description="Name of the variant.")
    label: Text = Field(description="What the variant is called in figures and tables.")
    seed: Seed = Field(description="Seed of everything random in the run.")
    dataset: Dataset
    orbit: Orbit

    @property
    def inducing_points(self) -> int:
        """Number of inducing points, of all components together."""
        if self.components is None:
            return self.inducing.count
        return sum(component.inducing for component in self.components)

    @property
    def draws(self) -> int:
        """Draws from the orbit for each image of a step; its points, where the scheme takes all of them."""
        match self.scheme:
            case GroupScheme(groups=groups, size=size):
                return groups * size
            case PaperScheme(samples=samples):
                return samples
            case WithoutReplacementScheme(count=count):
                return count
            case FullScheme():
                return orbit_points(self.orbit) or 1

    @model_validator(mode="after")
    def _blocks_fit(self) -> RunSpec:
        """Checks that the blocks fit together."""
        data, scheme, points = self.dataset, self.scheme, orbit_points(self.orbit)
        fitting = {"parity": ("polya_gamma",), "images": (*ONE_HOT, "polya_gamma")}.get(data.kind, ONE_HOT)
        if self.likelihood.kind not in fitting:
            raise ValueError(
                f"likelihood.kind = {self.likelihood.kind!r} does not fit a dataset of kind {data.kind!r}, which takes "
                f"{' or '.join(fitting)}; polya_gamma is for two classes"
            )
        most = data.training_images
        sizes = {"optimiser.batch": self.optimiser.batch}
        if self.components is None:
            sizes["inducing.count"] = self.inducing.count
        for i, component in enumerate(self.components or ()):
            if component.patch is None:  # images have many patches
                sizes[f"components[{i}].inducing"] = component.inducing
        for key, value in sizes.items():
            if most is not None and value > most:
                raise ValueError(f"{key} = {value} must be at most {most}, the training images of {data.name}")
        if self.evaluation.count > self.optimiser.steps:
            raise ValueError(f"evaluation.count = {self.evaluation.count} must be at most {self.optimiser.steps} steps")
        if points is None and scheme.kind in ("full", "without_replacement"):
            raise ValueError(
                f"scheme.kind = {scheme.kind!r} needs an orbit that can be listed (identity, right_angles, "
                f"quantised_rotation), not {self.orbit.kind!r}"
            )
        if isinstance(scheme, WithoutReplacementScheme) and points and not min(2, points) <= scheme.count <= points:
            raise ValueError(
                f"scheme.count = {scheme.count} must be in {min(2, points)} … {points}, the orbit's points"
            )
        return self

    def changed(self, **blocks: Any) -> RunSpec:
        """
        :param blocks: changes, merged over this one by :func:`merge`, such as ``optimiser={"steps": 10}``.
        :return: another specification, checked.
        """
        return validate(RunSpec, merge(plain(self), blocks))


def merge(base: Any, patch: Mapping[str, Any]) -> dict[str, Any]:
    """
    :return: ``base`` with ``patch`` over it; a block whose kind changes is replaced as a whole, a key that is null is
        removed.
    """
    merged = dict(base) if isinstance(base, Mapping) else {}
    for key, value in patch.items():
        old = merged.get(key)
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, Mapping):
            same = isinstance(old, Mapping) and value.get("kind", old.get("kind")) == old.get("kind")
            merged[key] = merge(old if same else {}, value)
        else:
            merged[key] = value
    return merged


def read_spec(path: Path) -> RunSpec:
    """Reads the ``config.yaml`` that a run leaves."""
    try:
        return validate(RunSpec, read_yaml(path))
    except ConfigError as error:
        raise ConfigError(str(error) if str(error).startswith(str(path)) else f"{path}: {error}") from None


def plain(settings: Any) -> Any:
    """
    :param settings: a model, or plain values with models in them.
    :return: JSON types only: keys without a value left out, and 90.0 as 90.
    """
    if isinstance(settings, BaseModel):
        settings = settings.model_dump(exclude_none=True)
    if isinstance(settings, Mapping):
        return {key: plain(part) for key, part in settings.items()}
    if isinstance(settings, list | tuple):
        return [plain(part) for part in settings]
    if isinstance(settings, float) and settings.is_integer() and abs(settings) < 2**53:
        return int(settings)
    return settings


def canonical(settings: Any) -> str:
    """JSON that is the same for equal content: keys in order, no spaces, and 90.0 written as 90."""
    return json.dumps(plain(settings), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(settings: Any) -> str:
    """The sha256 of :func:`canonical`, in hexadecimal digits."""
    return hashlib.sha256(canonical(settings).encode()).hexdigest()
