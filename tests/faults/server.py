"""
Trainings without the seconds that loading TensorFlow takes: a process that loads it once, does nothing with it, and
forks a child for each line that it reads. The child is workflow/scripts/train.py in every respect but that.
"""

import json
import os
import runpy
import sys
from pathlib import Path

import orbitgp_paper.runs.train  # noqa: F401

SCRIPT = Path(__file__).resolve().parents[2] / "workflow" / "scripts" / "train.py"


def become(request):
    """The training that was asked for, after the fault that is to be injected."""
    said = os.open(request["said"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(said, stream)
    os.environ.update(request["variables"])
    exec(request["inject"], {})
    sys.argv[:] = [str(SCRIPT), *request["options"]]
    sys.path.insert(0, str(SCRIPT.parent))
    runpy.run_path(str(SCRIPT), run_name="__main__")
    sys.exit()


def main():
    """Answers each request with the child's number, and then with how it ended."""
    print("ready", flush=True)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            become(json.loads(line))
        print(child, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
