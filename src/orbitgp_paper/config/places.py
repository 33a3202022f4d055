"""Names of runs, and paths of everything that a size makes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Run:
    """One training: a variant of an experiment, from one seed."""

    experiment: str
    variant: str
    seed: int

    def folder(self, results: Path) -> Path:
        """Where its files lie in the folder of a size, ``results/{tier}``."""
        return Paths(results).run(self.experiment, self.variant, self.seed)


@dataclass(frozen=True)
class Paths:
    """Paths of everything that a size makes. Names may be Snakemake wildcards, such as ``{dataset}``."""

    root: Path

    def dataset(self, name: str, digest: str) -> Path:
        """The images that runs read; ``digest`` stands for all that decides them."""
        return self.root / "data" / f"{name}-{digest}.npz"

    def run(self, experiment: str, variant: str, seed: int | str) -> Path:
        """A run's folder."""
        return self.root / "runs" / experiment / variant / f"seed{seed}"

    def toy(self, file: str) -> Path:
        """A file of the toy."""
        return self.root / "runs" / "toy" / file

    def toy_draws(self) -> Path:
        """The toy's numbers for many functions and points."""
        return self.root / "runs" / "toy_draws" / "draws.csv"

    def samples(self) -> Path:
        """Draws from the learned orbit, for figure 1."""
        return self.root / "runs" / "samples" / "samples.npz"

    def insensitivity(self, variant: str) -> Path:
        """Appendix A, measured for one variant."""
        return self.root / "runs" / "insensitivity" / f"{variant}.csv"

    def estimators(self) -> Path:
        """Appendix B, measured."""
        return self.root / "runs" / "estimators" / "estimators.csv"

    def costs(self) -> Path:
        """Kernel evaluations, measured."""
        return self.root / "runs" / "costs" / "costs.csv"

    def table(self, name: str) -> Path:
        """A table, without the ending."""
        return self.root / "tables" / name

    def figure(self, name: str) -> Path:
        """A figure, without the ending."""
        return self.root / "figures" / name

    def claims(self) -> Path:
        """The verdicts on claims, without the ending."""
        return self.root / "claims"

    def page(self) -> Path:
        """The HTML page with all results."""
        return self.root / "index.html"

    def article(self) -> Path:
        """The results as a PDF article."""
        return self.root / "article.pdf"

    def crate(self) -> Path:
        """The results as a research object: what each file is."""
        return self.root / "ro-crate-metadata.json"

    def report(self) -> Path:
        """Snakemake's report: where everything comes from."""
        return self.root / "report.html"

    def report_text(self) -> Path:
        """The first page of Snakemake's report."""
        return self.root / "report.rst"

    def times(self) -> Path:
        """How long `make run` took, each time that it was started."""
        return self.root / "times.csv"

    def log(self, name: str) -> Path:
        """A rule's log."""
        return self.root / "logs" / f"{name}.log"

    def benchmark(self, name: str) -> Path:
        """Time and memory of a rule."""
        return self.root / "benchmarks" / f"{name}.tsv"
