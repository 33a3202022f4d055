"""
`make run`: every figure and table of a size, on the GPU if there is one, with one line of progress and a short summary.

    python workflow/scripts/run.py paper    # further arguments go to Snakemake, after its own
"""

from __future__ import annotations

import argparse
import csv
import re
import subprocess
import sys
import time
from contextlib import ExitStack
from datetime import datetime, timezone
from pathlib import Path
from threading import Thread
from typing import IO

import pandas as pd

from orbitgp.files import write_csv
from orbitgp_paper.analysis.formats import read_table, shown
from orbitgp_paper.analysis.verdicts import count_verdicts
from orbitgp_paper.config import Config, Paths, load
from orbitgp_paper.experiments.images import image_counts
from orbitgp_paper.machine import find_gpu, multi_process_service, trainings_at_a_time
from orbitgp_paper.page.content import duration

#: products a second of two cores in mixed precision, from benchmarks/step.md: 0.9 s for 200 × 32 × 784 × 750 × 6
CPU_SPEED = 25e9

#: seconds that a training takes to start and to end, two at a time
AROUND = 20.0

#: hours on the CPU beyond which --force is needed
PATIENCE = 5.0

#: terminal colour of each verdict
COLOURS = {"holds": "32", "exceeds": "36", "tie": "33", "fails": "31", "not measured": "90"}


def main() -> int:
    """Runs the workflow and prints a summary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tier", help="the size: the name of a file in config")
    parser.add_argument("--force", action="store_true", help="train without a GPU, however long it takes")
    given, more = parser.parse_known_args()
    config = load(given.tier)
    made = config.paths(runs="build")
    command = [sys.executable, "-m", "snakemake", "--config", f"tier={given.tier}", "runs=build"]
    command += ["--report-after-run", "--report", str(made.report())]
    began = time.monotonic()
    with ExitStack() as service:
        gpu, hours = find_gpu(), cpu_hours(config)
        if gpu is not None:
            lanes = trainings_at_a_time(gpu, shared=service.enter_context(multi_process_service()))
            command += ["--resources", f"gpu={lanes}", "--workflow-profile", "profiles/local-gpu"]
            device = f"{gpu.name}, {lanes} training{'s' * (lanes > 1)} at a time"
            print(f"On {device}.", flush=True)
        elif hours > PATIENCE and not given.force:
            print(
                f"No GPU was found, and on two cores size {given.tier} takes some {hours:,.0f} hours. To train all the "
                f"same: make run TIER={given.tier} FORCE=1. To draw what came with the repository: snakemake --config "
                f"tier={given.tier}",
                file=sys.stderr,
            )
            return 1
        else:
            command += ["--cores", "all"]
            device = "CPU"
            print(f"Without a GPU: some {max(hours, 0.1):.1f} hours on two cores.", flush=True)
        code, log = follow([*command, *more], made.log("run"), Times(made.times(), device))
    if code:
        print(f"Snakemake ended with an error; {log} has all of it, and its end is\n", file=sys.stderr)
        print("\n".join(log.read_text(encoding="utf-8").splitlines()[-40:]), file=sys.stderr)
        return code
    print(summary(made, sys.stdout.isatty()))
    print(f"All of it took {duration(time.monotonic() - began)}; {log} and {made.times()} have the times.")
    return 0


def cpu_hours(config: Config) -> float:
    """What all trainings would take on two cores, by the products between draws and inducing points."""
    products, runs = 0.0, config.all_runs()
    for spec in map(config.spec, runs):
        train, _, values = image_counts(spec.dataset)
        batch = min(spec.optimiser.batch, train)
        products += 6.0 * spec.optimiser.steps * batch * spec.draws * values * spec.inducing_points
    return (products / CPU_SPEED + AROUND * len(runs)) / 3600


class Progress:
    """Progress by Snakemake's output, and by the logs of running trainings."""

    def __init__(self) -> None:
        self.total = self.done = 0
        self.running: dict[str, Path] = {}
        self._rule = self._log = ""

    def read(self, line: str) -> None:
        """:param line: of Snakemake's output."""
        if found := re.match(r"train_run +(\d+)$", line):
            self.total = max(self.total, int(found[1]))
        elif found := re.match(r"(?:(?:local)?rule (\w+):|Error in rule)", line):
            self._rule = found[1] or ""  # what is said of a failed job looks like a start
        elif found := re.match(r"    log: (\S+)", line):
            self._log = found[1]
        elif (found := re.match(r"    jobid: (\d+)$", line)) and self._rule == "train_run":
            self.running[found[1]] = Path(self._log)
        elif (found := re.match(r"Finished jobid: (\d+) ", line)) and self.running.pop(found[1], None):
            self.done += 1

    def share(self) -> float:
        """Share of all training steps that are done; running trainings log theirs."""
        parts = [_share_of(log) for log in [*self.running.values()]]
        return (self.done + sum(parts)) / max(self.total, 1)

    def say(self, seconds: float) -> str:
        """:param seconds: since the beginning."""
        share = self.share()
        left = f", {duration(seconds / share * (1 - share))} left" if share > 0.02 else ""
        return f"{self.done} of {self.total} trainings, {len(self.running)} running, {100 * share:.0f} %{left}"


def _share_of(log: Path) -> float:
    try:
        found = re.findall(r"^step (\d+) of (\d+):", log.read_text(encoding="utf-8", errors="replace"), flags=re.M)
    except FileNotFoundError:
        return 0.0
    return int(found[-1][0]) / int(found[-1][1]) if found else 0.0


class Times:
    """A file with a row for each start: an interrupted run took their sum. Kept up to date, for kills."""

    HEADER = ("began", "device", "trainings_ended", "trainings_to_do", "seconds")

    def __init__(self, file: Path, device: str) -> None:
        """
        :param file: has the rows of the starts before this one, if there were any.
        :param device: what it runs on, in words.
        """
        self._file, self._device, self._start = file, device, time.monotonic()
        self._began = datetime.now(timezone.utc).isoformat(timespec="seconds")
        self._before = []
        if file.exists():
            with open(file, encoding="utf-8", newline="") as lines:
                self._before = list(csv.reader(lines))[1:]

    def note(self, progress: Progress) -> None:
        """Writes the present progress."""
        seconds = round(time.monotonic() - self._start, 1)
        now = (self._began, self._device, progress.done, progress.total, seconds)
        write_csv(self._file, self.HEADER, [*self._before, now])


def follow(command: list[str], log: Path, times: Times) -> tuple[int, Path]:
    """Runs Snakemake, with its output in the log and its progress on the terminal and in ``times``."""
    log.parent.mkdir(parents=True, exist_ok=True)
    progress, began, said = Progress(), time.monotonic(), ""
    with open(log, "w", encoding="utf-8") as file:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert process.stdout is not None
        reader = Thread(target=_copy, args=(process.stdout, file, progress))
        reader.start()
        try:
            while reader.is_alive():
                reader.join(1.0)
                now = progress.say(time.monotonic() - began)
                another = now.split(",")[0] != said.split(",")[0]  # training has ended
                if another:
                    times.note(progress)
                if sys.stdout.isatty():
                    print(f"\r{now}\033[K", end="", flush=True)
                elif another:
                    print(now, flush=True)
                said = now
        except KeyboardInterrupt:  # Snakemake has it too, and lets trainings save themselves
            reader.join()
    times.note(progress)
    if sys.stdout.isatty():
        print("\r\033[K", end="")
    return process.wait(), log


def _copy(source: IO[str], target: IO[str], progress: Progress) -> None:
    for line in source:
        target.write(line)
        target.flush()
        progress.read(line.rstrip("\n"))


def summary(made: Paths, coloured: bool) -> str:
    """MNIST's table, the claims by verdict, and where the page and the report are."""
    parts = []
    table, claims = (Path(f"{stem}.csv") for stem in (made.table("mnist"), made.claims()))
    if table.exists():  # a configuration of one's own may do without MNIST
        frame = shown(read_table(table))
        with pd.option_context("display.width", 200, "display.max_columns", 6):
            parts.append(frame.iloc[:, 1:6].to_string(index=False))
    if claims.exists():
        counts = count_verdicts(read_table(claims))
        said = [f"\033[{COLOURS[verdict]}m{text}\033[0m" if coloured else text for verdict, text in counts]
        parts.append(f"Claims: {', '.join(said)} ({made.claims()}.md)")
    parts.append(f"All figures, tables and claims, in one page: {made.page()}\nWhere they come from: {made.report()}")
    return "\n\n".join(parts)


if __name__ == "__main__":
    sys.exit(main())
