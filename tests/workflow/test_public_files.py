"""docs/reproducing.md: the public files of rotated MNIST are read and planned as the page says."""

import re
import subprocess
import sys

import numpy as np
from workspaces import ROOT, Workspace

PAGE = (ROOT / "docs" / "reproducing.md").read_text(encoding="utf-8")


def test_the_public_files_take_the_place_of_the_generated_images(bare: Workspace):
    [code] = re.findall(r"```python\n(import numpy as np\n\narrays.*?)```", PAGE, flags=re.S)
    [settings] = re.findall(r"```yaml\n(tier: public\n.*?)```", PAGE, flags=re.S)
    rng = np.random.default_rng(0)
    tables = {"train_valid": rng.random((800, 785)), "test": rng.random((30, 785))}
    for part, table in tables.items():
        table[:, -1] = np.arange(len(table)) % 10
        np.savetxt(bare.folder / f"mnist_all_rotation_normalized_float_{part}.amat", table)
    subprocess.run([sys.executable, "-c", code], cwd=bare.folder, check=True)
    with np.load(bare.folder / "rotated_mnist.npz") as made:
        assert np.array_equal(made["images"].reshape(800, 784), tables["train_valid"][:, :-1])
        assert np.array_equal(made["test_labels"], tables["test"][:, -1])
    (bare.folder / "config" / "public.yaml").write_text(settings, encoding="utf-8")
    jobs = bare.plan("--config", "tier=public")
    assert {job.rule for job in jobs} == {"dataset", "train_run", "figure", "table", "claims", "page", "all"}
    assert {job.wildcards.split("/")[0] for job in jobs if job.rule == "train_run"} == {"rotated"}
    assert [job.wildcards for job in jobs if job.rule == "figure"] == ["fig5"]
