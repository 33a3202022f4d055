# The configuration, checked before anything is planned, and what several files of rules ask of it.
import os
import sys
from functools import lru_cache
from pathlib import Path

from orbitgp_paper import config as configuration, sources
from orbitgp_paper.analysis.tables import caption
from orbitgp_paper.config import Run, canonical
from orbitgp_paper.figures.captions import caption_of
from orbitgp_paper.machine import may_have_gpu
from snakemake.exceptions import WorkflowError
from snakemake.logging import logger

OVERRIDES = {
    "tier": "the name of a file in config",
    "runs": "archive or build: whether run files are inputs, or made",
    "tensorboard": "true or false: whether trainings write for TensorBoard",
}
MODES = ("archive", "build")


def checked():
    """The file that --config tier=… names; no setting in it is overridden, so that results say what made them."""
    if unknown := sorted(set(config) - set(OVERRIDES)):
        allowed = "; ".join(f"{name} ({what})" for name, what in OVERRIDES.items())
        raise WorkflowError(f"--config {unknown[0]}={config[unknown[0]]!r} is not known. Allowed: {allowed}")
    if not isinstance(config.get("tensorboard", False), bool):
        raise WorkflowError(f"--config tensorboard={config['tensorboard']!r} must be true or false")
    if config.get("runs", MODES[0]) not in MODES:
        raise WorkflowError(f"--config runs={config['runs']!r} must be archive or build")
    try:
        return configuration.load(str(config.get("tier", "quick")))
    except configuration.ConfigError as error:
        raise WorkflowError(str(error))


CONFIG = checked()
MODE = config.get("runs", CONFIG.runs)
BUILD = MODE == "build"
PATHS = CONFIG.paths(runs=MODE)
RUNS = CONFIG.all_runs()
SCRIPTS = "workflow/scripts"
TEMPLATES = "src/orbitgp_paper/page/templates"
GPU = int(may_have_gpu())

# jobs run with the Python that runs Snakemake, whether its environment is activated or not; TensorFlow is quiet, and
# loads the Keras that TensorFlow Probability needs, instead of two, which saves a second of every start
os.environ.update(PATH=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]))
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")


wildcard_constraints:
    variant="[a-z][a-z0-9_]*",
    seed=r"\d+",


@lru_cache(maxsize=None)
def spec_of(run):
    return CONFIG.spec(run)


def code(*modules):
    """Modules and all that they import of ours, as input files: for what takes seconds."""
    return [os.path.relpath(file) for file in sources.closure(*modules)]


# --- what tables and figures are made from ---


def run_files(runs, *names):
    return [run.folder(PATHS.root) / name for run in runs for name in names]


def results_of(*experiments):
    """What tables and curves are made from; of all runs, where no experiment is named."""
    runs = [run for run in RUNS if not experiments or run.experiment in experiments]
    return run_files(runs, "final.json", "metrics.csv", "provenance.json", "config.yaml")


def measured(part, *files):
    """Files of a measurement; none where the configuration leaves it out."""
    return list(files) if getattr(CONFIG, part) else []


VARIANTS = CONFIG.insensitivity.variants if CONFIG.insensitivity else ()
INSENSITIVITY = [
    *(PATHS.insensitivity(variant) for variant in VARIANTS),
    *run_files((CONFIG.insensitivity.run(variant) for variant in VARIANTS), "config.yaml"),
]


def with_sources(made):
    """Only what this configuration has files for."""
    return {name: files for name, files in made.items() if files}


TABLES = with_sources(
    {
        "toy": measured("toy", PATHS.toy("metrics.csv")),
        "toy_halves": measured("toy", PATHS.toy("halves.csv")),
        "toy_bounds": measured("toy", PATHS.toy("bounds.csv")),
        "toy_rates": measured("toy_draws", PATHS.toy_draws()),
        **{experiment: results_of(experiment) for experiment in CONFIG.experiments},
        "insensitivity": INSENSITIVITY,
        "estimators": measured("estimators", PATHS.estimators()),
        "costs": measured("costs", PATHS.costs()),
        "monitor": results_of(),
        "runs": results_of(),
    }
)
FEW = [name for name in caption_of("sizes").tables if name in CONFIG.experiments]
ABLATED = [name for name, experiment in CONFIG.experiments.items() if "whole" in experiment.variants]
DRAWN = ("parity", "mnist", "rotated", "recipes", *FEW, *ABLATED)
OTHERS = [name for name in CONFIG.experiments if name not in DRAWN]
FIGURES = with_sources(
    {
        "fig1": measured("samples", PATHS.samples()),
        "fig2": measured("toy", PATHS.toy("surfaces.npz"), PATHS.toy("metrics.csv")),
        "fig2_bound": measured("toy", PATHS.toy("bounds.csv")),
        "fig3": results_of("parity"),
        "fig4": results_of("mnist"),
        "fig5": results_of("rotated"),
        "appendix_a": INSENSITIVITY,
        "appendix_b": measured("estimators", PATHS.estimators()),
        "training": results_of(*OTHERS) if OTHERS else [],
        "recipes": results_of("recipes"),
        "sizes": results_of(*FEW) if FEW else [],
        "parts": results_of(*ABLATED) if ABLATED else [],
        "profile": results_of("parity") if ABLATED else [],
    }
)


CLAIMS = [CONFIG.claims] if CONFIG.claims else []


# --- the archive ---


def check_archive():
    """Refuses an archive that lacks runs, and warns of runs that were made from other settings than the present ones."""
    needed = [file for files in (*TABLES.values(), *FIGURES.values()) for file in files]
    if missing := sorted(
        {file.parent.relative_to(PATHS.root / "runs").as_posix() for file in needed if not file.exists()}
    ):
        raise WorkflowError(
            f"Not in the archive, {PATHS.root}/runs: {', '.join(missing)}. "
            f"--config tier={CONFIG.tier} runs=build trains and measures all"
        )
    others = [run for run in RUNS if configuration.read_spec(run.folder(PATHS.root) / "config.yaml") != spec_of(run)]
    if others:
        names = ", ".join(run.folder(Path()).relative_to("runs").as_posix() for run in others)
        logger.warning(f"Made from other settings than config/{CONFIG.tier}.yaml has now, under {PATHS.root}: {names}")


if not BUILD:
    check_archive()
