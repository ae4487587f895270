"""A SLURM of one's own on this machine, there within a second: for the test of the cluster profile.

One node with this machine's cores and two pretended GPUs, whose jobs are real processes. It needs root and Debian's or
Ubuntu's slurmctld and slurmd, and goes without systemd, cgroups, munge and a database of accounts.
"""

import os
import shutil
import signal
import socket
import subprocess
import time
from contextlib import ExitStack, suppress
from pathlib import Path

# Where SLURM's commands look for it. A job step drops SLURM_CONF from its environment, so no other place will do.
SHARED = Path("/etc/slurm/slurm.conf")
# Debian's daemons lie in a folder that is not on everybody's PATH.
SEARCHED = f"{os.environ['PATH']}:/usr/sbin"

CONFIGURATION = """
ClusterName=thaw
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={control_port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
CredType=cred/none
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
# processes are found by their parents, and memory is read from /proc: no cgroups
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=1
JobAcctGatherParams=OverMemoryKill
# no accounts; squeue knows a finished job for an hour
AccountingStorageType=accounting_storage/none
MinJobAge=3600
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=sched_min_interval=0,batch_sched_delay=0,bf_interval=1
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=2
GresTypes=gpu
# its GPUs are pretended, so each job asks for the CPU; else it would end with the error that a promised GPU is missing
TaskProlog={folder}/on_the_cpu
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={node_port} CPUs={cores} RealMemory={memory} Gres=gpu:2
PartitionName=main Nodes=ALL Default=YES MaxTime=1-00:00:00 DefaultTime=00:01:00
"""


def missing() -> str:
    """Say what this machine lacks for a SLURM of its own; nothing if it lacks nothing."""
    if os.geteuid() != 0:
        return "needs root, to start SLURM's daemons"
    if not all(shutil.which(name, path=SEARCHED) for name in ("slurmctld", "slurmd", "sbatch")):
        return "needs SLURM: apt-get install --no-install-recommends slurmctld slurmd slurm-client"
    if SHARED.exists():  # a link to nothing is what a killed test leaves
        return f"{SHARED} is there: this machine has a SLURM already"
    with suppress(OSError):
        socket.gethostbyname(_host())
        return ""
    return f"the name of this machine, {_host()}, must stand in /etc/hosts"


class Cluster:
    """SLURM for as long as the `with` lasts; its state and logs lie in a folder."""

    def __init__(self, folder: Path):
        self.folder = folder.resolve()

    def __enter__(self) -> "Cluster":
        self.folder.mkdir(parents=True, exist_ok=True)
        control_port, node_port = _free_ports(2)
        values = {"host": _host(), "folder": self.folder, "control_port": control_port, "node_port": node_port}
        values |= {"cores": os.cpu_count(), "memory": os.sysconf("SC_PHYS_PAGES") * 4096 * 9 // (10 << 20)}
        conf = self.folder / "slurm.conf"
        conf.write_text(CONFIGURATION.format(**values))
        prolog = self.folder / "on_the_cpu"
        prolog.write_text("#!/bin/sh\necho export CUDA_VISIBLE_DEVICES=\n")
        prolog.chmod(0o755)
        (self.folder / "gres.conf").write_text("Name=gpu File=/dev/null\nName=gpu File=/dev/zero\n")
        with ExitStack() as undo:
            SHARED.parent.mkdir(exist_ok=True)
            SHARED.unlink(missing_ok=True)
            SHARED.symlink_to(conf)
            undo.callback(SHARED.unlink)
            for name, extra in (("slurmctld", []), ("slurmd", ["-N", "n1"])):
                command = [shutil.which(name, path=SEARCHED), "-f", conf, "-L", self.folder / f"{name}.log", *extra]
                subprocess.run(command, check=True, capture_output=True, timeout=60)
                undo.callback(_end, self.folder / f"{name}.pid")
            self._wait_until_idle()
            undo.callback(subprocess.run, ["scancel", "--full", "--user=root"], timeout=60)
            self._undo = undo.pop_all()
        return self

    def __exit__(self, *_) -> None:
        self._undo.close()

    def jobs(self) -> list[dict]:
        """Return all jobs so far, in order: number, comment (rule and wildcards), state, memory, time, gpu."""
        fields = {"jobid": "number", "comment": "comment", "state": "state"}
        fields |= {"minmemory": "memory", "timelimit": "time", "tres-per-job": "gpu"}
        printed = _output("squeue", "--states=all", "--noheader", "--Format", ",".join(f"{name}:|" for name in fields))
        jobs = [dict(zip(fields.values(), line.split("|")[:-1], strict=True)) for line in printed.splitlines()]
        return sorted(jobs, key=lambda job: int(job["number"]))

    def _wait_until_idle(self) -> None:
        """Wait until the node takes jobs."""
        for _ in range(100):
            if _output("sinfo", "--noheader", "--format=%t").strip() == "idle":
                return
            time.sleep(0.1)
        raise TimeoutError((self.folder / "slurmd.log").read_text()[-3000:])


def _host() -> str:
    return socket.gethostname().partition(".")[0]


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, timeout=60).stdout


def _free_ports(count: int) -> list[int]:
    with ExitStack() as opened:
        sockets = [opened.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def _end(pid_file: Path) -> None:
    """End the daemon that wrote a pid file, and wait until it is gone."""
    pid = int(pid_file.read_text())
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
        for _ in range(100):
            os.kill(pid, 0)
            time.sleep(0.1)
