"""A checkout whose Slurm profile is filled in as docs/cluster.md says, and Snakemake in it."""

import subprocess

from slurm.cluster import Cluster
from workspaces import Workspace

PROFILE = "profiles/slurm/config.yaml"


def fill_in(workspace: Workspace) -> Workspace:
    """With a partition; the cluster of the tests has no accounts."""
    workspace.replace(PROFILE, 'slurm_partition: ""', "slurm_partition: main")
    return workspace


def snakemake(cluster: Cluster, site: Workspace, *arguments: str) -> subprocess.CompletedProcess[str]:
    """As on a login node; but the cluster is asked more often how jobs are, as they are short."""
    profile = ("--workflow-profile", "profiles/slurm", "--slurm-init-seconds-before-status-checks", "3")
    variables = {name: cluster.environment[name] for name in ("SLURM_CONF", "PATH")}
    return site.snakemake(*profile, *arguments, **variables)
