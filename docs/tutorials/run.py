"""Runs the tutorials and keeps what they show: ``python docs/tutorials/run.py``, some minutes on two cores."""

import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

#: the kernel shows figures that a cell ends with
FIGURES = ["--matplotlib=inline"]


def main() -> None:
    for path in sorted(Path(__file__).parent.glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        with tempfile.TemporaryDirectory() as folder:
            places = {"metadata": {"path": folder}}
            NotebookClient(notebook, record_timing=False, resources=places, extra_arguments=FIGURES).execute()
        notebook.metadata.language_info = {"name": "python"}
        for cell in notebook.cells:
            if cell.cell_type == "code":  # TensorFlow's remarks on the machine are no part of the lesson
                cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
        nbformat.write(notebook, path)


if __name__ == "__main__":
    main()
