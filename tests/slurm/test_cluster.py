"""The cluster of the tests itself."""

import os
import tempfile
from pathlib import Path

import pytest
from slurm.cluster import Cluster, why_there_is_none

# a job whose script ends at once when it is told to, and leaves a child behind that will not
DEAF = "--wrap=python3 -c 'import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(1000)'; true"


@pytest.mark.skipif(why_there_is_none() is not None, reason=str(why_there_is_none()))
def test_a_cluster_that_is_stopped_leaves_no_process():
    with tempfile.TemporaryDirectory(prefix="slurm-") as folder:
        os.chmod(folder, 0o755)
        with Cluster(Path(folder), gpus=1) as cluster:
            cluster.ask("sbatch", "--gres=gpu:1", "--output=/dev/null", DEAF)
            cluster.wait("the job", lambda: any("SIG_IGN" in command for command in cluster.processes()))
        assert cluster.processes() == []
