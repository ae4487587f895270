"""Disks that are full or read-only: a job ends with one clear sentence, leaves what was finished, and runs again."""

import os
import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest

import invented
from conftest import invented_results
from test_machines import HEAD, arguments, bench, features, made, told
from thaw.core.digests import canonical
from thaw.features.node_copies import FOLDER, nearest
from thaw.features.store import FeatureStore
from tiny_corpus import run_in_process


@contextmanager
def disk(folder: Path, pages: int):
    """Mount a disk of so many pages of 4 KiB on a folder; skipped where that is not allowed."""
    folder.mkdir(exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={4 * pages}k", "tmpfs", str(folder)]
    if subprocess.run(command, capture_output=True).returncode:
        pytest.skip("needs the right to mount a small disk")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def remount(folder: Path, options: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{options}", str(folder)], check=True)


def contents(folder: Path) -> dict[str, bytes]:
    """Return all files below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
@pytest.mark.parametrize("pages", [1, 12, 60])
def test_full_disk_while_features_are_written(pages, bench, tmp_path):
    with disk(tmp_path / "disk", pages) as small:
        line = told("features", *features(bench, small / "features"))
        assert "No space left on device" in line
        cards = [int(card.stem[1:]) for card in small.glob("features/b*.json")]
        left = {file.name for file in small.glob("features/.*")}
        assert len(cards) < 2 and left <= {".lock"}, "no temporary file stays, but what processes wait at"
        if cards:
            FeatureStore(small / "features").require(cards)
        remount(small, "size=4m")
        run_in_process("features", *features(bench, small / "features"))
        assert {"b2.json", "b3.safetensors"} <= set(contents(small / "features"))


@pytest.mark.slow
@pytest.mark.parametrize("pages", [0, 1, 2, 4])
def test_full_disk_while_metrics_are_written(pages, bench, tmp_path):
    spec = bench.spec(HEAD)
    whole = bench.step("train", spec, tmp_path / "whole")
    with disk(tmp_path / "disk", 200) as small:
        (small / "earlier.json").write_text("{}")
        room = 199 - pages
        (small / "filler").write_bytes(b"x" * 4096 * room)
        line = told("train", *arguments(bench, spec, small / "run"))
        assert "No space left on device" in line
        left = contents(small)
        assert left["earlier.json"] == b"{}" and "run/metrics.json" not in left
        assert not [name for name in left if "/." in name], "no temporary file stays"
        (small / "filler").unlink()
        run_in_process("train", *arguments(bench, spec, small / "run"))
        assert (small / "run/metrics.json").read_bytes() == (whole / "metrics.json").read_bytes()


def figure(results: Path, out: Path) -> list:
    """Return the command line of a figure of the invented results."""
    spec = canonical(invented.shown("layers", "layer_figure"))
    return ["--spec", spec, "--runs", results / "outputs/invented/runs.csv", "--results", results, "--out", out]


@pytest.mark.slow
def test_full_disk_while_a_figure_is_written(invented_results, tmp_path):
    with disk(tmp_path / "disk", 3) as small:
        (small / "layers.png").write_bytes(b"earlier")
        line = told("figure", *figure(invented_results, small / "layers"))
        assert "No space left on device" in line
        assert contents(small)["layers.png"] == b"earlier"
        remount(small, "size=4m")
        run_in_process("figure", *figure(invented_results, small / "layers"))
        assert {f"layers.{kind}" for kind in ("pdf", "svg", "png", "csv")} <= set(contents(small))


@pytest.mark.slow
def test_read_only_results(bench, invented_results, tmp_path):
    spec = bench.spec(HEAD)
    with disk(tmp_path / "disk", 200) as small:
        (small / "earlier.json").write_text("{}")
        remount(small, "ro")
        lines = [told("train", *arguments(bench, spec, small / "run"))]
        lines.append(told("features", *features(bench, small / "features")))
        lines.append(told("figure", *figure(invented_results, small / "layers")))
        assert all("Read-only file system" in line and str(small) in line for line in lines), lines
        remount(small, "rw")
        run_in_process("train", *arguments(bench, spec, small / "run"))
        assert contents(small)["earlier.json"] == b"{}"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("share", "stated", "reason"), [(1.05, {}, "less than a tenth of the disk"), (0.5, {"bytes": 0}, "No space left")]
)
def test_a_payload_that_does_not_fit_on_a_nodes_disk_is_read_where_it_is(
    share, stated, reason, bench, tmp_path, monkeypatch, capsys
):
    path, card = bench.store.payload_path(3), bench.store.part_card(3) | stated
    with disk(tmp_path / "disk", int(share * path.stat().st_size / 4096)) as small:
        monkeypatch.setenv(FOLDER, str(small))
        assert nearest(path, card) == path and reason in capsys.readouterr().err
        assert set(contents(small)) == {f"thaw-{os.getuid()}/.lock"}
