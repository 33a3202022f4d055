"""
The command ``orbitgp``: fit a classifier of images, predict with it, see which transformations it learned to ignore.

Exit codes: 0; 1 for wrong data or files, with a one-line error; 2 for wrong usage; 130 after Ctrl-C.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import orbitgp
from orbitgp import files
from orbitgp.datasets.own_files import read_labelled, read_named_images
from orbitgp.fitting.stopping import Interrupted

#: orbits and likelihoods that a classifier knows by name; repeated here, since its own lists would load TensorFlow
ORBITS = ("none", "rotation", "translation", "scale", "affine", "affine_parts", "local")
LIKELIHOODS = ("auto", "gaussian", "dirichlet", "softmax", "logistic_softmax", "logistic")
COMPARED = ("none", "rotation", "affine", "local")
FIGURES = (".png", ".pdf", ".svg")

WRONG, STOPPED = 1, 130  # exit codes; that of wrong usage, 2, is argparse's

LABELLED = """
DATA is one of
  - an npz file with `images` ([N, H, W] or [N, H, W, C], uint8, or float in [0, 1])
    and `labels` ([N], integers or words)
  - an idx file of images, packed by gzip or plain, with --labels for the idx file of labels
  - a folder with one sub-folder for each class, which holds PNG or JPEG files of one size
"""
UNLABELLED = """
DATA is an npz file with `images`, an idx file of images, a PNG or JPEG file, or a folder of
these, in one sub-folder for each class or not; labels are ignored.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """
    :param arguments: of the command; those of the command line if None.
    :return: the exit code.
    """
    asked = parser().parse_args(arguments)
    try:
        asked.run(asked)
        sys.stdout.flush()  # here, where a closed pipe is still caught
    except BrokenPipeError:
        # the reader stopped, as in `orbitgp predict … | head`; Python would complain again at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return WRONG
    except (KeyboardInterrupt, Interrupted) as stopped:
        print(": ".join(["orbitgp: stopped", *map(str, stopped.args)]), file=sys.stderr)
        return STOPPED
    except (OSError, ValueError, FloatingPointError, files.DamagedFile) as error:
        print(f"orbitgp: error: {_one_line(error)}", file=sys.stderr)
        return WRONG
    return 0


def _one_line(error: Exception) -> str:
    text = str(error)
    if isinstance(error, OSError) and error.strerror:
        text = error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
    return " ".join(text.split()) or type(error).__name__


# -- arguments -----------------------------------------------------------------------------------------------------


def parser() -> argparse.ArgumentParser:
    """The command line, with an example for each command."""
    top = argparse.ArgumentParser(
        prog="orbitgp",
        description="Classify images with Gaussian processes that learn which transformations do not matter.",
        epilog="`orbitgp COMMAND --help` explains a command, with an example.",
    )
    commands = top.add_subparsers(metavar="COMMAND", required=True)

    def command(name: str, run: Callable[..., None], purpose: str, about: str, example: str) -> argparse.ArgumentParser:
        made = commands.add_parser(
            name,
            help=purpose,
            description=f"{purpose[0].upper()}{purpose[1:]}.\n{about}".rstrip(),
            epilog=f"example:\n  orbitgp {name} {example}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        made.set_defaults(run=run)
        return made

    fit = command(
        "fit", _fit, "fit a classifier to labelled images", LABELLED, "photos/ -o photos.model --orbit rotation"
    )
    _add_data(fit, labelled=True)
    fit.add_argument("-o", "--output", metavar="MODEL", type=Path, required=True, help="file for the fitted model")
    fit.add_argument(
        "--orbit",
        metavar="ORBIT",
        type=_orbit,
        default="affine",
        help=f"transformations to learn: {', '.join(ORBITS)}, or package.module:Class (default: affine)",
    )
    _add_training(fit)

    predict = command(
        "predict", _predict, "predict labels or numbers, as CSV", UNLABELLED, "photos.model new/ -o predictions.csv"
    )
    _add_model(predict)
    _add_data(predict)
    predict.add_argument(
        "-o", "--output", metavar="CSV", type=Path, help="file for the table (default: standard output)"
    )

    purpose = "show images beside draws from their learned orbit, as a figure"
    show = command("show", _show, purpose, UNLABELLED, "photos.model new/ -o orbit.png --count 6")
    _add_model(show)
    _add_data(show)
    show.add_argument("-o", "--output", metavar="FIGURE", type=_figure, required=True, help="a png, pdf or svg file")
    show.add_argument("--count", metavar="N", type=_count, default=4, help="images, evenly from DATA (default: 4)")
    show.add_argument("--draws", metavar="N", type=_count, default=8, help="transformed copies of each (default: 8)")

    purpose = "fit a model with each orbit, and rank the orbits by their evidence"
    compare = command("compare", _compare, purpose, LABELLED, "photos/ -o comparison.png --orbits none rotation affine")
    _add_data(compare, labelled=True)
    compare.add_argument(
        "-o", "--output", metavar="FIGURE", type=_figure, help="also draw a figure, to a png, pdf or svg file"
    )
    compare.add_argument(
        "--orbits",
        metavar="ORBIT",
        nargs="+",
        type=_orbit,
        default=list(COMPARED),
        help=f"some of {', '.join(ORBITS)}, or package.module:Class (default: {' '.join(COMPARED)})",
    )
    _add_training(compare)

    info = command("info", _info, "describe a model and what it learned", "", "photos.model --json")
    _add_model(info)
    info.add_argument("--json", action="store_true", help="as JSON, for programs")
    return top


def _add_model(command: argparse.ArgumentParser) -> None:
    command.add_argument("model", metavar="MODEL", type=Path, help="file of a fitted classifier or regressor")
    command.add_argument(
        "--orbit",
        metavar="package.module:Class",
        type=_orbit,
        help="your own orbit that the model was fitted with, since a file holds no code",
    )


def _add_data(command: argparse.ArgumentParser, labelled: bool = False) -> None:
    command.add_argument("data", metavar="DATA", type=Path, help="file or folder of images, see above")
    if labelled:
        command.add_argument(
            "--labels", metavar="FILE", type=Path, help="idx file of labels, for an idx file of images"
        )


def _add_training(command: argparse.ArgumentParser) -> None:
    """Settings of the training. All but the seed are chosen from the data if left out."""
    length = command.add_mutually_exclusive_group()
    length.add_argument("--steps", metavar="N", type=_count, help="training steps (default: chosen from the data)")
    length.add_argument("--time-budget", metavar="SECONDS", type=_seconds, help="time to train, instead of steps")
    command.add_argument("--inducing", metavar="N", type=_count, help="inducing points (default: chosen from the data)")
    command.add_argument(
        "--likelihood",
        metavar="NAME",
        choices=LIKELIHOODS,
        default="auto",
        help=f"one of {', '.join(LIKELIHOODS)} (default: auto, logistic for two classes and gaussian for more); of "
        "several classes, dirichlet has the best probabilities",
    )
    command.add_argument("--seed", metavar="N", type=_seed, default=0, help="seed of all random numbers (default: 0)")


def _integer(text: str, least: int) -> int:
    try:
        value = int(text)
    except ValueError:
        value = least - 1
    if value < least:
        raise argparse.ArgumentTypeError(f"expected an integer of at least {least}, got {text!r}")
    return value


def _count(text: str) -> int:
    return _integer(text, least=1)


def _seed(text: str) -> int:
    return _integer(text, least=0)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"expected a number of seconds above 0, got {text!r}")
    return value


def _orbit(text: str) -> str:
    """A name or an import path; modules are looked for in the working folder too."""
    if ":" in text:
        sys.path[:0] = [] if os.getcwd() in sys.path else [os.getcwd()]
    elif text not in ORBITS:
        raise argparse.ArgumentTypeError(f"expected one of {', '.join(ORBITS)}, or package.module:Class, got {text!r}")
    return text


def _figure(text: str) -> Path:
    if Path(text).suffix.lower() not in FIGURES:
        raise argparse.ArgumentTypeError(f"expected a name that ends in {', '.join(FIGURES)}, got {text!r}")
    return Path(text)


def _training(asked: argparse.Namespace) -> dict[str, Any]:
    """Arguments of :func:`_add_training`, as estimators take them."""
    return {name: getattr(asked, name) for name in ("steps", "time_budget", "inducing", "likelihood", "seed")}


# -- commands ------------------------------------------------------------------------------------------------------


def _fit(asked: argparse.Namespace) -> None:
    _check_files([asked.data, asked.labels], asked.output)
    load_tensorflow()
    images, labels = read_labelled(asked.data, asked.labels)
    model = orbitgp.InvariantClassifier(asked.orbit, **_training(asked))
    model.fit(images, labels)
    model.save(asked.output)
    print(
        f"{asked.output}: {len(images):,} images of {len(model.classes_)} classes, orbit {asked.orbit}, "
        f"evidence at least {model.evidence_:,.1f} ± {model.evidence_std_error_:,.1f} nats"
    )
    if model.interrupted_:
        raise KeyboardInterrupt(f"{asked.output} has the model as trained so far")


def _predict(asked: argparse.Namespace) -> None:
    _check_files([asked.model, asked.data], asked.output)
    load_tensorflow()
    model = orbitgp.load(asked.model, asked.orbit)
    images, names = _images_for(model, asked)
    titles, values = _predictions(model, images)
    header = ["index" if names is None else "name", *titles]
    rows = [[place if names is None else names[place], *row] for place, row in enumerate(values)]
    if asked.output is None:
        sys.stdout.write(files.csv_text(header, rows))
    else:
        files.write_csv(asked.output, header, rows)


def _predictions(model: Any, images: np.ndarray) -> tuple[list[str], list[list[Any]]]:
    """
    :return: column titles, and a row for each image: the label and the probability of each class, or, of a regressor,
        the mean and standard deviation of each target.
    """
    if hasattr(model, "predict_proba"):
        probabilities = np.asarray(model.predict_proba(images))
        labels = model.classes_[probabilities.argmax(1)]
        titles = ["label", *(f"p({name})" for name in model.classes_)]
        return titles, [[label, *map(_number, row)] for label, row in zip(labels, probabilities, strict=True)]
    mean, std = (part.reshape(len(images), -1) for part in model.predict(images, return_std=True))
    numbers = [""] if mean.shape[1] == 1 else [f"({number})" for number in range(mean.shape[1])]
    titles = [f"{what}{number}" for what in ("mean", "std") for number in numbers]
    return titles, [[*map(_number, row)] for row in np.concatenate([mean, std], axis=1)]


def _number(value: float) -> str:
    return f"{value:.6g}"


def _show(asked: argparse.Namespace) -> None:
    _check_files([asked.model, asked.data], asked.output)
    _check_matplotlib()
    load_tensorflow()
    model = orbitgp.load(asked.model, asked.orbit)
    images, _ = _images_for(model, asked)
    # spread, since folders have one class after the other
    chosen = np.unique(np.linspace(0, len(images) - 1, asked.count).round().astype(int))
    _save_figure(model.plot_orbit(images[chosen], draws=asked.draws), asked.output)


def _compare(asked: argparse.Namespace) -> None:
    _check_files([asked.data, asked.labels], asked.output)
    if asked.output is not None:
        _check_matplotlib()
    load_tensorflow()
    images, labels = read_labelled(asked.data, asked.labels)
    comparison = orbitgp.compare(images, labels, orbits=list(dict.fromkeys(asked.orbits)), **_training(asked))
    print(comparison.table())
    if asked.output is not None:
        _save_figure(comparison.plot(), asked.output)


def _info(asked: argparse.Namespace) -> None:
    _check_files([asked.model], None)
    load_tensorflow()
    about = orbitgp.load(asked.model, asked.orbit).describe()
    sys.stdout.write(files.json_text(about) if asked.json else "".join(f"{line}\n" for line in _lines(about)))


# -- what they share -----------------------------------------------------------------------------------------------


def _check_files(inputs: Sequence[Path | None], output: Path | None) -> None:
    """Refuses, before anything slow, an input that does not exist and an output that cannot be written."""
    given = [path for path in inputs if path is not None]
    for path in given:
        if not path.exists():
            raise FileNotFoundError(f"{path}: no such file or folder")
    if output is None:
        return
    if output.is_dir():
        raise IsADirectoryError(f"{output}: expected the name of a file to write, but it is a folder")
    if output.exists() and any(output.samefile(path) for path in given):
        raise ValueError(f"{output}: is an input, and would be overwritten; give another name after -o")
    try:  # as it will be written; permissions alone do not say
        output.absolute().parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=output.absolute().parent):
            pass
    except OSError as error:
        raise PermissionError(f"{output}: cannot be written: {error.strerror}") from error


def _check_matplotlib() -> None:
    if importlib.util.find_spec("matplotlib") is None:
        raise ValueError("figures need matplotlib: pip install 'orbitgp[plots]'")


def load_tensorflow() -> None:
    """Loads TensorFlow, which takes seconds, without its start-up messages."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("MPLBACKEND", "Agg")  # figures go to files: no window, with a screen or without
    with _silent_stderr():
        import tensorflow as tf

        tf.config.list_physical_devices("GPU")  # without one, TensorFlow warns, the first time only


@contextmanager
def _silent_stderr() -> Iterator[None]:
    """Hides what libraries write past Python before any log level applies; exceptions still show."""
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _images_for(model: Any, asked: argparse.Namespace) -> tuple[np.ndarray, list[str] | None]:
    """
    :return: the images at DATA, [N, H, W, C], of the shape that the model was fitted to, and their names, if any.
    """
    images, names = read_named_images(asked.data)
    if images.shape[1:] != tuple(model.image_shape_):
        found, wanted = (" × ".join(map(str, shape)) for shape in (images.shape[1:], model.image_shape_))
        raise ValueError(
            f"{asked.data}: expected images of {wanted} (height × width × channels), as {asked.model} was fitted to, "
            f"not {found}"
        )
    return images, names


def _save_figure(figure: Any, path: Path) -> None:
    ending = path.suffix.lower().removeprefix(".")
    files.write_whole(path, lambda file: figure.savefig(file, format=ending, dpi=150, bbox_inches="tight"))


def _lines(about: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    """Nested values as lines of text, one for each value."""
    for name, value in about.items():
        what = name if indent else name.replace("_", " ")  # names of parameters stay as they are
        if isinstance(value, Mapping):
            yield f"{indent}{what}:"
            yield from _lines(value, indent + "  ")
        else:
            yield f"{indent}{what}: {_text(value)}"


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(_text, value))
    return _number(value) if isinstance(value, float) else str(value)
