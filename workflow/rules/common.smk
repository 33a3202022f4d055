# The configuration, checked before anything is planned, and what several files of rules ask of it.
import os
import shlex
import shutil
import sys
from functools import lru_cache
from pathlib import Path

from orbitgp_paper import config as configuration, sources
from orbitgp import files
from orbitgp_paper.analysis.tables import caption
from snakemake.exceptions import WorkflowError
from snakemake.io import IOFile
from snakemake.logging import logger

OVERRIDES = {
    "tier": "the name of a file in config",
    "tensorboard": "true or false: whether trainings write for TensorBoard",
}


def checked_settings():
    """The file that --config tier=… names. Nothing in it is overridden, so that results say what made them."""
    if unknown := sorted(set(config) - set(OVERRIDES)):
        allowed = "; ".join(f"{name} ({what})" for name, what in OVERRIDES.items())
        raise WorkflowError(f"--config {unknown[0]}={config[unknown[0]]!r} is not known. Allowed: {allowed}")
    if not isinstance(config.get("tensorboard", False), bool):
        raise WorkflowError(f"--config tensorboard={config['tensorboard']!r} must be true or false")
    try:
        settings = configuration.load(str(config.get("tier", "quick")))
    except configuration.ConfigError as error:
        raise WorkflowError(str(error))
    for name, dataset in settings["datasets"].items():
        for key in ("folder", "path"):
            # asked here, as Snakemake would go on with images made earlier
            if key in dataset and not Path(dataset[key]).exists():
                raise WorkflowError(
                    f"config/{settings['tier']}.yaml: datasets.{name}.{key} = {dataset[key]!r} is not there"
                )
    return settings


SETTINGS = checked_settings()
SETTINGS_FILE = f"config/{SETTINGS['tier']}.yaml"
PATHS = configuration.paths(SETTINGS)
RUNS = configuration.runs(SETTINGS)
TRAINING_CODE = sources.training_digest()
SCRIPTS = "workflow/scripts"
GPU = int(shutil.which("nvidia-smi") is not None and os.environ.get("CUDA_VISIBLE_DEVICES", "0") not in ("", "-1"))

# jobs run with the Python that runs Snakemake, whether its environment is activated or not, and TensorFlow is quiet
os.environ.update(PATH=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]))
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")


wildcard_constraints:
    dataset="|".join(SETTINGS["datasets"]),
    experiment="|".join(SETTINGS["experiments"]),
    variant="[a-z][a-z0-9_]*",
    seed=r"\d+",


# --- runs ---


def run_of(wildcards):
    return configuration.Run(wildcards.experiment, wildcards.variant, int(wildcards.seed))


@lru_cache(maxsize=None)
def spec_of(run):
    return configuration.run_spec(SETTINGS, run)


def run_files(runs, *names):
    return [run.folder(PATHS.root) / name for run in runs for name in names]


def results_of(*experiments):
    """What tables and curves are made from; of all runs, where no experiment is named."""
    runs = [run for run in RUNS if not experiments or run.experiment in experiments]
    return run_files(runs, "final.json", "metrics.csv", "provenance.json", "config.yaml")


def images_file(run):
    return PATHS.dataset(spec_of(run)["dataset"]["name"])


def own_files(dataset):
    """The user's files that a data set is made from; none for the MNIST of the repository."""
    if "folder" in dataset:
        return sorted(map(str, Path(dataset["folder"]).glob("*")))
    return [dataset["path"]] if "path" in dataset else []


def training_needs(run):
    """
    Memory and minutes, generous: TensorFlow itself, the images and what is made of them, and the arrays of a step,
    which grow with its images, draws and inducing points. What a training really took stands in its benchmark.
    """
    spec = spec_of(run)
    images = spec["dataset"].get("train", 60_000) + spec["dataset"].get("test", 10_000)
    draws = spec["scheme"].get("samples", spec["scheme"].get("groups", 1) * spec["scheme"].get("size", 1))
    step = spec["optimiser"]["batch"] * draws * (784 + spec["inducing"]["count"])
    return {
        "mem_mb": 1500 + images * 784 * 32 // 2**20 + step * 64 // 2**20,
        "runtime": 10 + spec["optimiser"]["steps"] * step // 10**10,
    }


def more_each_attempt(amount):
    """A resource that grows where the profile asks for retries: a cluster kills jobs that had too little of it."""
    return lambda wildcards, attempt: attempt * amount


def tensorboard_option(run):
    if not config.get("tensorboard", False):
        return ""
    folder = PATHS.root / "tensorboard" / run.experiment / run.variant / f"seed{run.seed}"
    return f"--tensorboard {shlex.quote(str(folder))}"


# --- what makes results out of date ---
# What takes seconds has modules as input files. What takes longer has digests of code and settings as params: dates
# mean nothing in a fresh clone, and params that Snakemake has no record of make it run nothing.


def code(*modules):
    """Modules of orbitgp and what they import, as input files."""
    return [os.path.relpath(sources.PACKAGE / module) for module in sources.with_imports(*modules)]


def code_digest(*modules):
    return sources.digest(*sources.with_imports(*modules))


@lru_cache(maxsize=None)
def made_from(file):
    """The digest of the settings that results were made from, which lie beside them; None if there are none."""
    return configuration.digest(configuration.read_yaml(file)) if file.is_file() else None


def made_from_others(file, settings):
    return made_from(file) not in (None, configuration.digest(settings))


def settings_for(file, settings):
    """
    The configuration as an input file beside params: it counts as new only where the results at hand say that they
    were made from other settings. So an edit reruns what it touches in a fresh clone too, without a record of params.
    """
    return SETTINGS_FILE if made_from_others(file, settings) else ancient(SETTINGS_FILE)


def settings_for_run(run):
    return settings_for(run.folder(PATHS.root) / "config.yaml", spec_of(run))


def made_from_these(run):
    return made_from(run.folder(PATHS.root) / "config.yaml") == configuration.digest(spec_of(run))


def came_with_the_repository(run):
    """Results from the settings of today, without what only a training here leaves."""
    left = [run.folder(PATHS.root) / "params.npz", benchmark_of(*run.folder(PATHS.root).parts[-3:])]
    return made_from_these(run) and not any(map(os.path.exists, left))


def benchmark_of(experiment, variant, seed):
    return PATHS.benchmark(f"train/{experiment}/{variant}/{seed}")


def recorded_without(run, images):
    """Whether Snakemake's record of the run, if there is one, has no such input file."""
    recorded = workflow.persistence.input(IOFile(str(run.folder(PATHS.root) / "final.json")))
    return recorded is not None and str(images) not in recorded


def images_of(run):
    """
    The images that a run needs first. Where they are what the run was made from, their date does not matter; a user's
    own may change without a word. Results that came with the repository are not tied to images at all: making these
    for another run must not make Snakemake train everything else anew. If such a run is trained here, it makes its
    images itself unless they are there, and is not tied to them afterwards either: another set of input files would
    train it once more.
    """
    images = images_file(run)
    if not workflow.is_main_process:
        # a job of a cluster: what was planned before it is there, and its results may be gone if it is started again
        return images if images.exists() else []
    if came_with_the_repository(run):
        return []
    provenance = run.folder(PATHS.root) / "provenance.json"
    same_code = provenance.is_file() and files.read_json(provenance).get("source_digest") == TRAINING_CODE
    # not ancient where the run is out of date: Snakemake looks no further at a job whose ancient input is made anew
    settled = same_code and made_from_these(run) and not own_files(spec_of(run)["dataset"])
    if not settled:
        return images
    return [] if recorded_without(run, images) else ancient(str(images))


# --- what is measured besides, and what is made of it all ---


def sampled_run():
    return configuration.Run(*(SETTINGS["samples"][key] for key in ("experiment", "variant", "seed")))


def insensitivity_run(variant):
    return configuration.Run(SETTINGS["insensitivity"]["experiment"], variant, SETTINGS["insensitivity"]["seed"])


def insensitivity_settings():
    """What is measured on each variant; which these are is no part of it."""
    return {key: value for key, value in SETTINGS["insensitivity"].items() if key != "variants"}


def in_report(category, name):
    return {"category": category, "labels": {"name": name}}


VARIANTS = SETTINGS["insensitivity"]["variants"]
INSENSITIVITY = [
    *(PATHS.insensitivity(variant) for variant in VARIANTS),
    *run_files(map(insensitivity_run, VARIANTS), "config.yaml"),
]

# each table with the files that it is made from
TABLES = {
    "toy": [PATHS.toy("metrics.csv")],
    "toy_halves": [PATHS.toy("halves.csv")],
    "toy_bounds": [PATHS.toy("bounds.csv")],
    **{experiment: results_of(experiment) for experiment in SETTINGS["experiments"]},
    "insensitivity": INSENSITIVITY,
    "estimators": [PATHS.estimators()],
    "runs": results_of(),
}

# each figure with the experiment that it needs
FIGURES = {
    "fig1": None,
    "fig2": None,
    "fig2_bound": None,
    "fig3": "parity",
    "fig4": "mnist",
    "fig5": "rotated",
    "appendix_a": None,
    "appendix_b": None,
}
DRAWN = [name for name, experiment in FIGURES.items() if experiment in (None, *SETTINGS["experiments"])]


def tell_about_other_settings():
    """Results that do not fit the configuration are never passed over in silence."""
    others = [run for run in RUNS if made_from_others(run.folder(PATHS.root) / "config.yaml", spec_of(run))]
    if others:
        names = ", ".join(f"{run.experiment}/{run.variant}/seed{run.seed}" for run in others)
        logger.warning(f"Made from other settings than {SETTINGS_FILE} has now, under {PATHS.root}: {names}")


if workflow.is_main_process:  # a cluster starts Snakemake again in each job, and there nobody reads this
    tell_about_other_settings()
