# What the rules that make images, trainings and measurements ask of the configuration.
import shlex

from orbitgp_paper.experiments.images import dataset_digest, image_counts
from orbitgp_paper.spec import own_modules

for name, dataset in CONFIG.datasets.items():
    for key in ("folder", "path", "labels"):
        if (own := getattr(dataset, key, None)) and not Path(own).exists():
            raise WorkflowError(f"config/{CONFIG.tier}.yaml: datasets.{name}.{key} = {own!r} is not there")


def training_code(run):
    """A digest of our code, and of the user's where the orbit is the user's own."""
    try:
        return sources.training_digest(*own_modules(spec_of(run).orbit))
    except ModuleNotFoundError as error:
        variant = f"experiments.{run.experiment}.variants.{run.variant}"
        raise WorkflowError(f"config/{CONFIG.tier}.yaml: {variant}.orbit.path: {error}")


TRAINING_CODE = {run: training_code(run) for run in RUNS}


@lru_cache(maxsize=None)
def images(name):
    """
    The file of a data set's images. The digest in its name is that of all that decides its content: the settings, our
    code and the user's own files. So other images are another file, and the same ones made again retrain nothing.
    """
    return ancient(str(PATHS.dataset(name, dataset_digest(CONFIG.dataset(name)))))


def run_of(wildcards):
    return Run(wildcards.experiment, wildcards.variant, int(wildcards.seed))


def spec(wildcards):
    return spec_of(run_of(wildcards))


def training_needs(spec):
    """
    A generous estimate of memory and minutes: TensorFlow itself, the images and what is made of them, and the arrays of
    a step, which grow with its images, draws and inducing points. The benchmark file has what a training really took.
    """
    train, test, values = image_counts(spec.dataset)
    step = spec.optimiser.batch * spec.draws * (values + spec.inducing_points)
    return {
        "mem_mb": 1500 + (train + test) * values * 32 // 2**20 + step * 64 // 2**20,
        "runtime": 10 + spec.optimiser.steps * step // 10**10,
    }


def dataset_memory(wildcards, attempt):
    """TensorFlow, which decodes images, and a few copies of all images in single precision."""
    train, test, values = image_counts(CONFIG.dataset(wildcards.dataset))
    return attempt * (1500 + (train + test) * values * 16 // 2**20)


def more_each_attempt(amount):
    """A resource that grows where the profile asks for retries: a cluster kills jobs that had too little of it."""
    return lambda wildcards, attempt: attempt * amount


def tensorboard(wildcards, output):
    if not config.get("tensorboard", False):
        return ""
    run = Path(output.final).parent.relative_to(PATHS.root / "runs")
    return f"--tensorboard {shlex.quote(str(PATHS.root / 'tensorboard' / run))}"


def trained(run):
    """A trained model, and the images that it was trained on."""
    return {"params": run_files([run], "params.npz"), "images": images(spec_of(run).dataset.name)}


def insensitivity_settings():
    """Settings of the measurement of each variant, without the list of variants."""
    return CONFIG.insensitivity.model_dump(exclude={"variants"}) if CONFIG.insensitivity else {}
