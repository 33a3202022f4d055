"""
A private Slurm of one node, for tests: Debian's own daemons on free ports, in a folder of its own. Its GPUs are
stand-ins, devices that swallow what is written to them: Slurm lends them out, and TensorFlow finds none.
"""

import os
import shutil
import socket
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scontrol", "squeue", "sinfo", "scancel")

# no database, no cgroups, no systemd; more processors than there may be, so that jobs do not wait for each other;
# cred_expire is how long a requeued job waits, two minutes by default; pgid, as with proctrack/linuxproc a process
# of a cancelled job was once found alive after the end
CONFIGURATION = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmctldPort={controller_port}
SlurmdPort={node_port}
AuthType=auth/munge
AuthInfo=socket={root}/run/munge.socket,cred_expire=5
CredType=cred/munge
StateSaveLocation={root}/state
SlurmdSpoolDir={root}/spool
SlurmctldPidFile={root}/run/slurmctld.pid
SlurmdPidFile={root}/run/slurmd.pid
SlurmctldLogFile={root}/log/slurmctld.log
SlurmdLogFile={root}/log/slurmd.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/pgid
TaskPlugin=task/none
MpiDefault=none
MailProg=/bin/true
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=1
JobAcctGatherParams=OverMemoryKill
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=bf_interval=1,sched_interval=1
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
TaskProlog={root}/bin/note
MinJobAge=3600
KillWait=30
GresTypes=gpu
NodeName={host} NodeAddr=127.0.0.1 CPUs=16 RealMemory=64000 Gres=gpu:{gpus} State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES PriorityTier=1 PreemptMode=OFF
PartitionName=lent Nodes=ALL PriorityTier=1 PreemptMode=REQUEUE
PartitionName=urgent Nodes=ALL PriorityTier=2 PreemptMode=OFF
"""


def why_there_is_none() -> str | None:
    """:return: why no cluster can be started here; None if one can."""
    if missing := [program for program in PROGRAMS if shutil.which(program, path=_search_path()) is None]:
        return f"Slurm is not installed (no {', '.join(missing)}): slurmctld slurmd slurm-client munge of Debian"
    if os.geteuid() != 0:
        return "Slurm's daemons need root"
    with tempfile.TemporaryDirectory() as folder:
        try:
            make_device(Path(folder) / "gpu")
        except PermissionError:
            return "no device can be made here, not even by root, and a stand-in GPU is one"
    return None


def make_device(path: Path) -> None:
    """A character device, or Slurm sets no CUDA_VISIBLE_DEVICES: another /dev/null."""
    os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 3))


class Cluster:
    """
    Started on entering, stopped on leaving, with no process left. The partition ``main`` is for everything; jobs in
    ``urgent`` take the place of jobs in ``lent``.
    """

    def __init__(self, root: Path, gpus: int) -> None:
        """:param root: an empty folder that any user may look into, or munge refuses to have its socket there."""
        self.root, self.gpus = root, gpus
        self.host = socket.gethostname().split(".")[0]
        self.daemons: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def environment(self) -> dict[str, str]:
        """For whoever talks to this cluster."""
        outer = {key: value for key, value in os.environ.items() if not key.startswith(("SLURM_", "SBATCH_", "SRUN_"))}
        path = f"{self.root}/bin{os.pathsep}{_search_path()}"
        return outer | {"SLURM_CONF": f"{self.root}/etc/slurm.conf", "PATH": path}

    def ask(self, *command: str) -> str:
        """:return: what one of Slurm's programs answers."""
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, f"{' '.join(command)}: {done.stdout}{done.stderr}"
        return done.stdout.strip()

    def jobs(self) -> list[dict[str, str]]:
        """:return: all that Slurm knows of each job, running or ended."""
        told = self.ask("scontrol", "show", "job", "--details", "--oneliner")
        lines = [line for line in told.splitlines() if line.startswith("JobId=")]
        return [dict(part.split("=", 1) for part in line.split(" ") if "=" in part) for line in lines]

    def devices(self) -> dict[str, set[str]]:
        """:return: for each job, the values of CUDA_VISIBLE_DEVICES that its steps had."""
        found: dict[str, set[str]] = {}
        for line in (self.root / "log/devices").read_text().splitlines():
            job, _, value = line.partition(" ")
            found.setdefault(job, set()).add(value)
        return found

    def __enter__(self) -> "Cluster":
        try:
            self._write_files()
            self._start_munge()
            self._start("slurmctld", "-D", "-c")
            self.wait("slurmctld", lambda: self._controller_listens())
            self._start("slurmd", "-D")
            self.wait("the node", lambda: self.ask("sinfo", "--noheader", "--format=%T") == "idle")
        except BaseException:
            self._stop_daemons()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self.ask("scancel", "--user=root")
        try:
            self.wait("the end of all jobs", lambda: not self.ask("squeue", "--noheader"))
        finally:
            self._stop_daemons()
        assert (left := self.processes()) == [], left

    def processes(self) -> list[str]:
        """:return: the command lines of all that the cluster has started and that still runs."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if f"SLURM_CONF={self.root}/".encode() in (process / "environ").read_bytes():
                    found.append((process / "cmdline").read_text().replace("\0", " "))
            except OSError:  # it ended meanwhile
                continue
        return found

    def _write_files(self) -> None:
        for name in ("etc", "state", "spool", "log", "run", "munge", "bin", "gpu"):
            (self.root / name).mkdir()
        self.controller_port, node_port = _free_port(), _free_port()
        settings = {"root": self.root, "host": self.host, "gpus": self.gpus}
        settings |= {"controller_port": self.controller_port, "node_port": node_port}
        (self.root / "etc/slurm.conf").write_text(CONFIGURATION.format(**settings))
        (self.root / "etc/cgroup.conf").write_text("CgroupAutomount=no\n")
        devices = [self.root / f"gpu/nvidia{number}" for number in range(self.gpus)]
        for device in devices:
            make_device(device)
        (self.root / "etc/gres.conf").write_text("".join(f"Name=gpu File={device}\n" for device in devices))
        # within a job, the plugin forgets where the configuration is; where it is in /etc/slurm that does no harm
        self._write_script("srun", f'SLURM_CONF={self.root}/etc/slurm.conf exec {shutil.which("srun")} "$@"')
        self._write_script("note", f'echo "$SLURM_JOB_ID $CUDA_VISIBLE_DEVICES" >> {self.root}/log/devices')

    def _write_script(self, name: str, command: str) -> None:
        script = self.root / "bin" / name
        script.write_text(f"#!/bin/sh\n{command}\n")
        script.chmod(0o755)

    def _start_munge(self) -> None:
        key = self.root / "munge/key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        key.parent.chmod(0o700)
        files = {"key-file": key, "seed-file": self.root / "munge/seed", "log-file": self.root / "log/munged.log"}
        files |= {"socket": self.root / "run/munge.socket", "pid-file": self.root / "run/munged.pid"}
        self._start("munged", "--foreground", *(f"--{option}={file}" for option, file in files.items()))
        self.wait("munged", files["socket"].exists)

    def _start(self, name: str, *arguments: str) -> None:
        with open(self.root / f"log/{name}.out", "wb") as said:
            self.daemons[name] = subprocess.Popen(
                [name, *arguments],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait(self, what: str, done: Callable[[], bool], seconds: float = 60) -> None:
        end = time.monotonic() + seconds
        while not done():
            for name, daemon in self.daemons.items():
                said = self.root / f"log/{name}.out"
                assert daemon.poll() is None, f"{name} ended: {said.read_text(errors='replace')[-2000:]}"
            assert time.monotonic() < end, f"{what} took more than {seconds} s; see {self.root}/log"
            time.sleep(0.1)

    def _controller_listens(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.controller_port), 0.2).close()
        except OSError:
            return False
        return True

    def _stop_daemons(self) -> None:
        for daemon in reversed(self.daemons.values()):
            daemon.terminate()
            try:
                daemon.wait(20)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()


def _search_path() -> str:
    """Daemons lie where not every user looks."""
    return os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
