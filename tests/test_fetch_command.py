"""`thaw fetch` against a server on this machine: files, archives, a cut and its rest, and what goes wrong."""

import hashlib
import subprocess
import sys
import tarfile
import zipfile

import pytest

from test_hub import hub, hub_server  # noqa: F401

ROWS = "".join(f"text {i},{'yes' if i % 2 else 'no'}\n" for i in range(40))
EXPERIMENT = """
experiment: mine
title: Mine
tasks: [first, second]
encoders: [vectors]
strategies: [linear_probe]
seeds: [1]
outputs: [main_table]
catalogues: [own]
"""
FILES = "{format: csv, splits: {train: NAME/train.csv, validation: NAME/train.csv, test: NAME/test.csv}}"
CORPUS = "  NAME: {texts: [text], targets: {label: label}, files: FILES, url: URL}\n"
TASK = "  NAME: {corpus: NAME, target: label, type: classification, metrics: [accuracy]}\n"
VECTORS = "  vectors: {kind: word_vectors, file: v/v.txt, layers: 0, width: 2, cased: false, url: URL}\n"


@pytest.fixture
def place(tmp_path, hub, home):  # noqa: F811
    """An experiment whose data and encoder have addresses; returns what runs `thaw` on it, and writes the entries."""
    served = hub.folder / "files"
    served.mkdir(parents=True)
    (served / "train.csv").write_text("text,label\n" + ROWS)
    with tarfile.open(served / "both.tar.gz", "w:gz") as archive:
        archive.add(served / "train.csv", "in/train.csv")
        archive.add(served / "train.csv", "in/test.csv")
    with zipfile.ZipFile(served / "v.zip", "w") as archive:
        archive.writestr("v.txt", "lamp 1 2\ntable 3 4\n")
    root = hub.environment["HF_ENDPOINT"] + "/files/"

    def write(sha256: str = hashlib.sha256((served / "train.csv").read_bytes()).hexdigest(), member: str = "in/"):
        one = f"[{{address: {root}train.csv, sha256: {sha256}, to: first/train.csv}}, "
        one += f"{{address: {root}train.csv, to: first/test.csv}}]"
        members = f"{{second/train.csv: {member}train.csv, second/test.csv: {member}test.csv}}"
        two = f"[{{address: {root}both.tar.gz, to: {members}}}]"
        entry = CORPUS.replace("FILES", FILES)
        corpora = [entry.replace("NAME", n).replace("URL", u) for n, u in (("first", one), ("second", two))]
        tasks = [TASK.replace("NAME", name) for name in ("first", "second")]
        (tmp_path / "own").mkdir(exist_ok=True)
        (tmp_path / "own/tasks.yaml").write_text("corpora:\n" + "".join(corpora) + "tasks:\n" + "".join(tasks))
        vectors = VECTORS.replace("URL", f"[{{address: {root}v.zip, to: {{v/v.txt: v.txt}}}}]")
        (tmp_path / "own/encoders.yaml").write_text("encoders:\n" + vectors)
        (tmp_path / "mine.yaml").write_text(EXPERIMENT)

    def thaw(command: str, **more: str) -> subprocess.CompletedProcess:
        environment = hub.environment | {"PYTHONPATH": str(home / "scripts")} | more
        words = [sys.executable, "-m", "thaw.cli.main", command, "mine.yaml"]
        done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
        assert "Traceback" not in done.stderr, done.stderr
        return done

    write()
    return write, thaw


def test_files_and_members_of_archives_come_to_their_places_and_then_it_plans(tmp_path, hub, place):  # noqa: F811
    _, thaw = place
    before = thaw("plan")
    assert before.returncode == 1 and "no file data/first/train.csv; `thaw fetch` downloads it; or say" in before.stderr
    done = thaw("fetch")
    assert done.returncode == 0, done.stderr
    for name in ("first", "second"):
        assert {file.name for file in (tmp_path / "data" / name).iterdir()} == {"train.csv", "test.csv"}
        assert (tmp_path / f"data/{name}/test.csv").read_text() == "text,label\n" + ROWS
    assert (tmp_path / "v/v.txt").read_text().startswith("lamp 1 2") and [*(tmp_path / "v").iterdir()] == [
        tmp_path / "v/v.txt"
    ]
    unchecked = hashlib.sha256((hub.folder / "files/both.tar.gz").read_bytes()).hexdigest()
    assert f"at own/tasks.yaml:3: corpora.second.url:\n    sha256: {unchecked}" in done.stdout
    assert done.stdout.count("it was not checked") == 3
    assert thaw("plan").returncode == 0
    count = len(hub.asked)
    assert thaw("fetch").stdout.count("here already") == 4 and len(hub.asked) == count


def test_after_a_cut_it_goes_on_and_what_came_stays(tmp_path, hub, place):  # noqa: F811
    _, thaw = place
    hub.broken = True
    cut = thaw("fetch")
    size = (hub.folder / "files/train.csv").stat().st_size
    assert cut.returncode == 1 and cut.stderr.count("error: ") == 4
    assert f"after {size // 2:,} bytes ({size // 2:,} of {size:,} bytes came); the same command goes on" in cut.stderr
    assert not [file for file in tmp_path.glob("data/*/*.csv")]
    hub.broken = False
    hub.asked.clear()
    assert thaw("fetch").returncode == 0
    # with a sha256 the rest alone; without one all of it, since nothing would show that the rest is of another file
    assert hub.asked == [("train.csv", size // 2), ("train.csv", 0), ("both.tar.gz", 0), ("v.zip", 0)]
    assert (tmp_path / "data/first/train.csv").read_bytes() == (hub.folder / "files/train.csv").read_bytes()


def test_what_cannot_be_had_is_one_sentence_and_the_others_come(tmp_path, hub, place):  # noqa: F811
    write, thaw = place
    off = thaw("fetch", HF_HUB_OFFLINE="1")
    assert off.stderr.count("HF_HUB_OFFLINE is set, and ") == 4 and not hub.asked
    write(sha256="f" * 64, member="out/")
    (hub.folder / "files/v.zip").unlink()
    done = thaw("fetch")
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert done.returncode == 1 and len(errors) == 3
    assert f"and {'f' * 64} is stated; it is another file: put the stated one in its place" in errors[0]
    assert "filename 'out/train.csv' not found" in errors[1] and "HTTP Error 404" in errors[2]
    assert [file.relative_to(tmp_path).as_posix() for file in tmp_path.glob("data/*/*")] == ["data/first/test.csv"]
    write()
    assert thaw("fetch").stdout.count("here already") == 1
    assert (tmp_path / "data/first/train.csv").is_file() and (tmp_path / "data/second/test.csv").is_file()
