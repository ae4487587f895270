"""Check whether this machine can run an experiment, and suggest what to change.

thaw doctor                                               the only experiment here, config/config.yaml, or the demo
thaw doctor my.yaml --config data_dir=path/to/data

Each line is marked ok, note (works, and could work better) or PROBLEM (the experiment will fail here);
with a problem the exit code is 1. Nothing is written; the Hub is asked for nothing but an answer.
"""

import importlib.metadata
import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from thaw.cli.plan_command import readable
from thaw.cli.selection import configuration, parsed, selecting
from thaw.core import devices, hub, lasting_servers
from thaw.core.home import HOME
from thaw.core.runtime import versions
from thaw.planning import cost_estimate, job_request
from thaw.planning.configuration import load_plan
from thaw.planning.plan import Plan
from thaw.words.wording import plural

OK, NOTE, PROBLEM = "ok", "note", "PROBLEM"
Line = tuple[str, str, str]  # mark, what it is about, what was found and what to change
ROOM = 1.2  # of the planned bytes, for all that is no store


def main(words: list[str]) -> None:
    """Load the plan, look at everything, print, and end with 1 where something is a problem."""
    given = parsed(selecting("doctor", __doc__), words)
    plan = load_plan(configuration(given.files, given.config), HOME, files=given.files)
    lines = [line for look in (packages, cores, memory, disk, gpu, sources, servers) for line in look(plan)]
    width = max(len(about) for _, about, _ in lines)
    for mark, about, said in lines:
        print(f"{mark:<8} {about:<{width}}  {said}")
    sys.exit(any(mark == PROBLEM for mark, *_ in lines))


def packages(plan: Plan) -> Iterator[Line]:
    runtime = (HOME / "requirements.txt").read_text().partition("# Tests")[0]
    pinned = re.findall(r"^([\w.-]+)==([\w.]+)", runtime, re.MULTILINE)
    wrong = []
    for name, version in pinned:
        try:
            installed = importlib.metadata.version(name).partition("+")[0]
        except importlib.metadata.PackageNotFoundError:
            installed = "none"
        wrong += [f"{name} {installed}, {version} is pinned"] if installed != version else []
    install = "pip install -r requirements.txt, in an environment of its own"
    if any(" none," in sentence for sentence in wrong):
        yield PROBLEM, "packages", f"{'; '.join(wrong)}: {install}"
    elif wrong:
        yield NOTE, "packages", f"{'; '.join(wrong)}: numbers may differ; {install}"
    else:
        yield OK, "packages", f"all {len(pinned)} pinned packages, Python {sys.version.split()[0]}"


def cores(plan: Plan) -> Iterator[Line]:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    jobs = cores // plan.threads
    if not jobs:
        few = f"{cores} cores, and a job asks for {plan.threads} threads: set compute: {{threads: {cores}}}"
        yield NOTE, "cores", f"{few}; it is part of every spec"
    else:
        yield OK, "cores", f"{cores}: {plural(jobs, 'job')} of {plural(plan.threads, 'thread')} side by side"


def memory(plan: Plan) -> Iterator[Line]:
    """Compare the memory with what the largest job asks for."""
    jobs = [(step, key) for step in plan.jobs for key in plan.jobs[step]]
    most = max((job_request.request(plan, step, key)["mem_mb"] for step, key in jobs), default=0) * 2**20
    pages = {name: os.sysconf(name) for name in ("SC_PAGE_SIZE", "SC_PHYS_PAGES")}
    total = pages["SC_PAGE_SIZE"] * pages["SC_PHYS_PAGES"]
    said = f"{readable(total)}, and the largest job asks for {readable(most)}"
    if total < most:
        yield PROBLEM, "memory", f"{said}: a smaller batch_size, max_length or encoder needs less"
    else:
        yield OK, "memory", said


def disk(plan: Plan) -> Iterator[Line]:
    """Compare the free disk with what the stores will take that are not there yet."""
    folder = Path(plan.results).absolute()
    while not folder.exists():
        folder = folder.parent
    if not os.access(folder, os.W_OK):
        yield PROBLEM, "disk", f"{folder}: you may not write here, and results are written to {plan.results}"
        return
    free = shutil.disk_usage(folder).free
    missing = [store for store in cost_estimate.stores(plan) if not plan.status.is_current("features", store.key)]
    needed = ROOM * sum(store.bytes for store in missing)
    said = f"{readable(free)} free under {folder}, and the stores that are missing take {readable(needed)}"
    unknown = [store.key for store in missing if store.tokens is None]
    said += f", without those whose size is unknown ({', '.join(unknown)})" if unknown else ""
    if needed > free:
        yield PROBLEM, "disk", f"{said}: set store: {{max_gib: ...}}, or put results elsewhere"
    else:
        yield OK, "disk", said


def gpu(plan: Plan) -> Iterator[Line]:
    """Describe each GPU, driver and libraries; or say why torch sees none, where there is one."""
    import torch

    seen, reason = devices.gpu_status()
    if not seen:
        promise = devices.gpu_evidence(dict(os.environ), devices.cards())
        yield no_gpu(promise, torch.__version__, torch.version.cuda, reason)
        return
    for n in range(torch.cuda.device_count()):
        card = torch.cuda.get_device_properties(n)
        capability, code = (card.major, card.minor), torch.cuda.get_arch_list()
        yield one_gpu(card.name, card.total_memory, capability, torch.__version__, code)
    cuda = versions(torch.device("cuda"))
    said = f"driver {cuda['driver']}, torch {cuda['torch']} for CUDA {cuda['cuda']}, cuDNN {cuda['cudnn']}"
    yield OK, "gpu", said


def no_gpu(promise: str | None, version: str, cuda: str | None, reason: str) -> Line:
    """Return the line for a machine on which torch sees no GPU. Args: as of `devices.missing_gpu_message`."""
    if promise:
        return PROBLEM, "gpu", devices.missing_gpu_message(promise, version, cuda, reason)
    return NOTE, "gpu", "none: training runs on the processor; thaw plan says how long that takes"


def one_gpu(name: str, memory: int, capability: tuple[int, int], version: str, code: list[str]) -> Line:
    """Return the line of one card. Args: its name, bytes and compute capability; torch's version and architectures."""
    if not devices.supported(capability, code):
        return PROBLEM, "gpu", devices.unsupported(name, capability, version, code)
    bf16 = "native" if capability >= (8, 0) else "emulated, so that phases are computed in fp32"
    said = f"{name}, {readable(memory)}, compute capability {capability[0]}.{capability[1]}, bf16 {bf16}"
    if " MIG " in name:
        return NOTE, "gpu", f"{said}; a MIG instance: a job sees one of them, and Thaw was never tried on any"
    return OK, "gpu", said


def sources(plan: Plan) -> Iterator[Line]:
    """Say what must come from the Hub, and whether the Hub answers."""
    remote = [f"{'corpus' if step == 'prepare' else 'encoder'} {key}" for step, key, _ in plan.status.to_download]
    if not remote:
        yield OK, "sources", "all data and encoders are here; the Hub is not needed"
        return
    listed = ", ".join(remote[:6]) + (f" and {len(remote) - 6} more" if len(remote) > 6 else "")
    if reason := hub.silence():
        change = "run prepare and fetch where there is internet, or set data_dir"
        yield PROBLEM, "sources", f"from the Hub, which does not answer ({reason}): {listed}; {change}"
    else:
        yield OK, "sources", f"from the Hub, which answers: {listed}"


def servers(plan: Plan) -> Iterator[Line]:
    """List the processes that wait for the next command."""
    if found := list(lasting_servers.waiting()):
        numbers = " ".join(map(str, found))
        ends = f"`kill {numbers}` ends them, and {lasting_servers.REFUSES} leaves none"
        yield OK, "servers", f"{plural(len(found), 'process', 'processes')} of earlier commands; {ends}"
