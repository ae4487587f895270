"""A wheel runs in a folder that is no checkout."""

import os
import subprocess
import sys
import zipfile

import pytest

from test_wheel import ROOT

REVIEWS = ["a fine and friendly place", "the food was cold and late"]


@pytest.mark.slow
def test_a_wheel_runs_a_csv_in_a_folder_that_is_no_checkout(tmp_path):
    """Built without the index, unpacked into an own folder, with the packages of this environment."""
    command = [sys.executable, "-m", "pip", "wheel", str(ROOT), "--no-deps", "--no-build-isolation", "--quiet"]
    subprocess.run([*command, "--wheel-dir", str(tmp_path)], check=True, timeout=300)
    wheel = next(tmp_path.glob("thaw_nlp-*.whl"))
    with zipfile.ZipFile(wheel) as packed:
        names = set(packed.namelist())
        packed.extractall(tmp_path / "site")
    known = subprocess.run(["git", "ls-files", "config", "workflow"], cwd=ROOT, capture_output=True, text=True).stdout
    files = [name for name in known.split() if (ROOT / name).is_file()]
    assert [name for name in files if f"thaw/home/{name}" not in names] == []
    assert len([name for name in names if name.startswith("thaw/home/profiles/")]) >= 2
    place = tmp_path / "place"
    place.mkdir()
    rows = [f"{REVIEWS[n % 2]} {n},{'bad' if n % 2 else 'good'}" for n in range(60)]
    (place / "reviews.csv").write_text("text,label\n" + "\n".join(rows) + "\n")
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "site")}

    def thaw(*words: str) -> str:
        command = [sys.executable, "-m", "thaw.cli.main", *words]
        done = subprocess.run(command, cwd=place, capture_output=True, text=True, env=environment, timeout=600)
        assert done.returncode == 0, (done.stdout + done.stderr)[-5000:]
        return done.stdout + done.stderr

    assert "thaw plan reviews.yaml" in thaw("new", "task", "reviews.csv")
    chosen = ["--config", "strategies=[frozen]", "seeds=[1]", "outputs=[main_table]", "baselines=[majority]"]
    thaw("run", "reviews.yaml", "--cores", "1", *chosen)
    page = (place / "results/outputs/reviews/report.html").read_text()
    assert "thaw run reviews.yaml" in page and "thaw/home" not in page
