"""The first ten minutes with a card, rehearsed without one: short.py ends in time, and an item that fails is a line."""

import json
import re
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
import short
from short_items import on_card
from torch.autograd import DeviceType

from thaw.core.home import HOME


def rehearsed(folder, *words) -> dict[str, dict]:
    """Run the script for the CPU; return its lines by item."""
    out = folder / "found.jsonl"
    command = [sys.executable, HOME / "quality/gpu/short.py", out, "--device", "cpu", *words]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, cwd=folder)
    assert done.stdout.endswith(out.with_suffix(".md").read_text() + "\n"), done.stderr
    return {line["item"]: line for line in map(json.loads, out.read_text().splitlines())}


def test_a_rehearsal_ends_in_a_minute_and_nothing_fails(tmp_path):
    begin = time.monotonic()
    lines = rehearsed(tmp_path, "--limit", "60")
    assert time.monotonic() - begin < 65
    assert list(lines) == [item.name for item in short.ITEMS]
    if late := [name for name, line in lines.items() if line["state"] != "done"]:  # a busy machine
        print(f"\nnot over within the minute: {', '.join(late)}")
        lines |= rehearsed(tmp_path, "--limit", "2000", "--only", *late)
    assert {name: line["why"] for name, line in lines.items() if line["state"] != "done"} == {}
    found = {name: line["found"] for name, line in lines.items()}
    assert {"what": "forks of the server have CUDA", "value": True} in found["versions"]
    assert re.match(r"[1-9]\d* passed, 0 failed", found["tests"][0]["test"])
    assert len(found["updates"]) == 4 and all(row["ms"] > 0 for row in found["updates"])
    assert all(row["tokens"] == 640 for row in found["extraction"]) and found["extraction"][1]["hash"] >= 0
    assert [row["forked"] for row in found["fork_server"]] == [True, True]
    assert [row["runs"] for row in found["side_by_side"]] == [1, 4, 8]
    assert len(found["thaw_run"]) == 5 and "error" not in found["thaw_run"][0]


@pytest.mark.parametrize(
    ("item", "seconds", "state", "why"),
    [
        (short.Item("no_such_item", 1, ()), 30, "failed", "exit code 1: "),
        (short.Item("versions", 1, ("a_library_of_nobody",)), 30, "left out", "not installed: a_library_of_nobody"),
        (short.Item("side_by_side", 1, ()), 1, "cut off", "not over after 1 s; last printed: nothing"),
        (short.Item("side_by_side", 1, ()), 0.5, "left out", "no time is left"),
    ],
)
def test_an_item_that_does_not_end_well_is_a_line_that_says_why(item, seconds, state, why):
    line = short.line_of(item, "cpu", seconds, False)
    assert line["state"] == state and line["why"].startswith(why) and line["found"] == []


def test_without_a_card_the_other_items_wait_for_nothing():
    lines = [{"item": "versions", "found": [{"what": "torch", "card": "none"}]}]
    line = short.line_of(short.Item("side_by_side", 1, ()), "cuda", 30, short.no_card(lines))
    assert (line["state"], line["why"]) == ("left out", "torch sees no card")


def test_of_tests_the_failed_ones_have_their_error():
    rows = [{"test": f"quality/gpu/test_a.py::test_{n}", "outcome": "passed", "seconds": n, "why": ""} for n in (1, 9)]
    skipped = "('/a/test_a.py', 3, 'Skipped: needs two cards')"
    rows += [{"test": "a/test_a.py::test_2", "outcome": "skipped", "seconds": 0, "why": skipped}]
    rows += [{"test": "a/test_a.py::test_3", "outcome": "failed", "seconds": 1, "why": "RuntimeError: no kernel"}]
    assert short.of_tests(rows) == [
        {"test": "2 passed, 1 failed, 1 left out"},
        {"test": "1 left out: needs two cards"},
        {"test": "slow: test_a.py::test_9", "seconds": 9},
        {"test": "test_a.py::test_3", "error": "RuntimeError: no kernel"},
    ]


def test_a_card_is_busy_while_any_kernel_runs():
    """Kernels may overlap; copies are no launches; what a library names a part of its work is not counted."""

    def event(name, start, end, where=DeviceType.CUDA, names=False):
        span = SimpleNamespace(start=start, end=end)
        return SimpleNamespace(name=name, device_type=where, time_range=span, is_user_annotation=names)

    events = [event("gemm", 0, 1000), event("gelu", 500, 1500), event("Memcpy HtoD", 3000, 3500)]
    events += [event("aten::mm", 0, 9000, DeviceType.CPU), event("Optimizer.step", 0, 9000, names=True)]
    assert on_card(events) == (2, 2.0)
