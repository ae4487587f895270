"""Fetch an encoder and prepare a dataset by Hub id, against a server on this machine that answers as the Hub does."""

import hashlib
import http.server
import json
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from urllib.parse import unquote

import pandas as pd
import pytest
import torch
from safetensors.torch import load_file

from corpora import spec_for
from thaw.core.digests import canonical
from thaw.core.errors import UserError
from thaw.core.files import read_json, write_json
from thaw.core.fork_server import ADDRESS, environment_of_jobs
from thaw.core.hub import NEW_REVISION
from thaw.data.corpus import Corpus
from thaw.planning.configuration import load_plan, read_config
from tiny import tiny_encoder
from workflow import HOME, fork_servers

pytestmark = pytest.mark.usefixtures("forked")
COMMIT = "0123456789abcdef0123456789abcdef01234567"
EARLIER = "76543210" * 5
CONVERTED = "refs/convert/parquet"  # the branch with the Parquet files that the Hub makes of a dataset


class Hub(http.server.BaseHTTPRequestHandler):
    """A server that answers as the Hub does, for the repositories below a folder: models and datasets, as owner/name.

    Files are sent by a redirect to another address, as large ones are. gated: repositories that ask for consent.
    broken: whether files end half-way.
    """

    folder: Path
    gated = ("datasets/us/gated", "us/gated")
    broken = False
    asked: list = []  # files of own addresses that were asked for, and from which byte on

    def do_GET(self):  # noqa: N802
        """Answer with what is known of a repository, a listing or a file."""
        path = unquote(self.path.partition("?")[0]).strip("/")
        if path.startswith("api/"):
            kind, *name, what = (*path.removeprefix("api/").split("/", 3), "")[:4]
            return self._about(("datasets/" if kind == "datasets" else "") + "/".join(name), what)
        if path.startswith("files/"):
            return self._from_where_it_ended(
                (self.folder / path).read_bytes() if (self.folder / path).is_file() else None
            )
        if path.startswith("cdn/"):
            return self._send(200, (self.folder / path.removeprefix("cdn/")).read_bytes())
        repository, _, rest = path.partition("/resolve/")
        if repository in self.gated:
            return self._send(403, X_Error_Code="GatedRepo", X_Error_Message="Access to this repository is restricted.")
        file = Path(repository, rest.removeprefix(CONVERTED).removeprefix(COMMIT).strip("/"))
        if not (self.folder / file).is_file():
            return self._send(404, X_Error_Code="EntryNotFound")
        name = f'"{_name(self.folder / file)}"'
        size = str((self.folder / file).stat().st_size)
        headers = {"X_Repo_Commit": COMMIT, "X_Linked_ETag": name, "X_Linked_Size": size}
        other = self.headers["Host"].replace("127.0.0.1", "localhost")  # as large files are at another address
        return self._send(302, Location=f"http://{other}/cdn/{file}", **headers)

    do_HEAD = do_GET  # noqa: N815

    def _from_where_it_ended(self, content: bytes | None) -> None:
        """Answer with a file that has an address of its own, or with the rest of it, as `files` notes."""
        start = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").removesuffix("-"))
        self.asked.append((Path(self.path).name, start))
        if content is None or start >= len(content) > 0:
            return self._send(404 if content is None else 416)
        return self._send(206 if start else 200, content[start:])

    def log_message(self, *arguments):
        """Keep quiet."""

    def _about(self, repository: str, what: str) -> None:
        root = self.folder / repository
        if not root.is_dir():
            return self._send(404, X_Error_Code="RepoNotFound")
        revision = what.removeprefix("revision/").removeprefix("tree/") or COMMIT
        if not revision.startswith((COMMIT, EARLIER, CONVERTED, "main")):
            return self._send(404, X_Error_Code="RevisionNotFound")
        if not what.startswith("tree/"):
            files = [self._entry(root, file) for file in sorted(root.rglob("*")) if file.is_file()]
            answer = {"id": repository.removeprefix("datasets/"), "sha": revision if revision == EARLIER else COMMIT}
            answer |= {"siblings": files}
            return self._send(200, json.dumps(answer).encode())
        below = root / what.removeprefix("tree/").removeprefix(COMMIT).strip("/")
        if not below.is_dir():
            return self._send(404, X_Error_Code="EntryNotFound")
        deep = "recursive=true" in self.path.lower()
        listed = [self._entry(root, path) for path in sorted(below.rglob("*") if deep else below.iterdir())]
        return self._send(200, json.dumps(listed).encode())

    def _entry(self, root: Path, path: Path) -> dict:
        name = path.relative_to(root).as_posix()
        if path.is_dir():
            return {"type": "directory", "path": name, "size": 0, "oid": "0" * 40}
        return {"type": "file", "path": name, "rfilename": name, "size": path.stat().st_size, "oid": _name(path)}

    def _send(self, status: int, content: bytes = b"", **headers) -> None:
        self.send_response(status)
        for name, value in {"Content_Type": "application/json", "Content_Length": str(len(content)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command == "GET":
            half = self.broken and self.path.startswith(("/cdn/", "/files/"))
            self.wfile.write(content[: len(content) // 2] if half else content)
            self.close_connection = True


def _name(path: Path) -> str:
    """Return a file's checksum, as the Hub names its files."""
    return hashlib.sha1(path.read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def hub_server(tmp_path_factory):
    """The server's handler, and the environment of a process that asks it."""
    handler = type("Handler", (Hub,), {})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    handler.environment = {
        "HF_ENDPOINT": f"http://127.0.0.1:{server.server_port}",
        "HF_HOME": str(tmp_path_factory.mktemp("cache")),
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "PATH": "/usr/bin:/bin",
    }
    yield handler
    server.shutdown()


@pytest.fixture(scope="module")
def forked(hub_server):
    """Let steps be forked in that environment: each would import the libraries of the Hub for two seconds."""
    with fork_servers(hub_server.environment) as address:
        hub_server.environment |= environment_of_jobs(HOME / "scripts", 1) | {ADDRESS: address}
        yield


@pytest.fixture
def hub(hub_server, tmp_path):
    """The server's handler, with an empty folder; nobody has downloaded from it."""
    hub_server.folder, hub_server.asked, hub_server.broken = tmp_path / "hub", [], False
    shutil.rmtree(hub_server.environment["HF_HOME"], ignore_errors=True)
    return hub_server


def step(name: str, spec: dict, out: Path, home: Path, environment: dict, *more: str) -> str:
    """Run a step, and return its error: one sentence, or nothing."""
    command = [sys.executable, "-m", "thaw.steps", name, "--spec", canonical(spec), "--out", str(out), *more]
    environment = environment | {"PYTHONPATH": str(home / "scripts")}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    assert "Traceback" not in done.stderr, done.stderr
    assert (done.returncode == 0) == (out / "card.json").exists(), done.stderr
    return "" if done.returncode == 0 else done.stderr.rpartition("error: ")[2].strip()


def test_an_encoder(tmp_path, home, hub):
    """By id: the commit is resolved and recorded, a .bin is taken where there is no safetensors, errors are clear."""
    model = tiny_encoder("bert", tmp_path / "hub/us/tiny")
    tensors = load_file(model / "model.safetensors")
    torch.save(tensors, model / "pytorch_model.bin")
    (model / "model.safetensors").unlink()

    def download(name: str, out: str) -> str:
        entry = {"hub": name, "layers": 3, "width": 32, "cased": False, "objective": "none", "pretraining": ["none"]}
        return step("fetch", {"version": 1, "encoder": "tiny", "entry": entry}, tmp_path / out, home, hub.environment)

    assert download("us/tiny", "out") == ""
    card = read_json(tmp_path / "out" / "card.json")
    assert card["source"] == "hub us/tiny" and card["revision"] == COMMIT
    converted = load_file(tmp_path / "out" / "model.safetensors")
    assert all(torch.equal(converted[name], tensors[name]) for name in tensors)
    assert download("us/other", "other").startswith("us/other could not be downloaded from the Hub")
    shutil.copytree(model, tmp_path / "hub/us/gated")
    assert download("us/gated", "gated").startswith(
        "us/gated is gated; accept its terms at https://huggingface.co/us/ga"
    )
    model.rename(tmp_path / "hub/us/half")
    hub.broken = True
    assert "us/half" in download("us/half", "half") and not list((tmp_path / "half").glob("*.safetensors"))
    hub.broken = False
    assert download("us/half", "half") == ""


def test_a_dataset(tmp_path, home, hub):
    """Converted to Parquet by the Hub: its commit is recorded; what goes wrong is a sentence and leaves nothing."""
    rows = {"train": 40, "validation": 20, "test": 20}
    frames = {}
    for split, count in rows.items():
        file = tmp_path / f"hub/datasets/us/moods/default/{split}/0000.parquet"
        file.parent.mkdir(parents=True)
        texts = [f"{split} lamp {i} is {'good' if i % 2 else 'bad'}" for i in range(count)]
        frames[split] = pd.DataFrame({"content": texts, "label": [i % 2 for i in range(count)]})
        frames[split].to_parquet(file)
    shutil.copytree(tmp_path / "hub/datasets/us/moods", tmp_path / "hub/datasets/us/gated")

    def source(id: str) -> dict:
        columns = {"columns": {"text": "content"}, "rename": {"label": {"0": "bad", "1": "good"}}}
        return {"id": id, "revision": CONVERTED, "splits": {split: split for split in rows}, **columns}

    def prepare(id: str, out: str, *copies: str, **environment) -> str:
        entry = {"texts": ["text"], "targets": {"label": "label"}, "labels": {"label": ["bad", "good"]}}
        entry |= {"hub": [source(one) for one in (id, *copies)]}
        spec, asked = spec_for(entry, tmp_path, ["hub"]), hub.environment | environment
        others = canonical({"mine": [source(one) for one in copies]})
        assert spec == spec_for(entry | {"hub": source(id)}, tmp_path, ["hub"])  # a further copy reruns nothing
        return step("prepare", spec, tmp_path / out, home, asked, "--data-dir", str(tmp_path), "--copies", others)

    assert prepare("us/none", "none").startswith("hub: data set 'us/none' not found or private; check the id")
    assert prepare("us/gated", "gated").startswith("hub: data set 'us/gated' is gated; accept its terms at https://")
    assert "(OfflineModeIsEnabled)" in prepare("us/moods", "offline", HF_HUB_OFFLINE="1")
    hub.broken = True
    assert "could not be loaded" in prepare("us/moods", "moods")
    hub.broken = False
    assert prepare("us/moods", "moods") == ""
    assert read_json(tmp_path / "moods/card.json")["source"]["revision"] == COMMIT
    none, gated = "hub: data set 'us/none' not found or private", "hub: data set 'us/gated' is gated"
    lost = prepare("us/none", "lost", "us/gated")
    assert lost.startswith(none) and gated in lost
    assert prepare("us/none", "copied", "us/moods") == ""
    assert read_json(tmp_path / "copied/card.json")["source"]["id"] == "us/moods"
    for split, frame in frames.items():
        made = Corpus(tmp_path / "moods").frame(split)
        assert made["text"].tolist() == frame["content"].tolist()
        assert made["label"].tolist() == [("bad", "good")[value] for value in frame["label"]]


EXPERIMENT = """
experiment: mine
title: Mine
tasks: [moods]
encoders: [tiny, tiny_random]
strategies: [linear_probe]
seeds: [1]
outputs: [main_table]
catalogues: [own]
"""
ENTRIES = """
corpora:
  moods:
    texts: [text]
    targets: {label: label}
    hub:
      - {id: us/none, splits: &splits {train: train, validation: validation, test: test}}
      - {id: us/moods, splits: *splits, revision: refs/convert/parquet}
tasks: {moods: {corpus: moods, target: label, type: classification, metrics: [accuracy]}}
"""
NOW = f"corpora:\n  moods: us/moods@{COMMIT}\nencoders:\n  tiny: us/tiny@{COMMIT}\n"


def test_pins(tmp_path, home, hub, monkeypatch):
    """`thaw pin` writes commits; specs have these and no others; what is gone is a sentence with what to type."""
    for folder in ("own", "hub/us/tiny", "hub/datasets/us/moods"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "own/tasks.yaml").write_text(ENTRIES)
    entry = "{hub: us/tiny, layers: 3, width: 32, cased: false}"
    (tmp_path / "own/encoders.yaml").write_text(f"encoders:\n  tiny: {entry}\n")
    (tmp_path / "mine.yaml").write_text(EXPERIMENT)
    monkeypatch.chdir(tmp_path)
    pins = tmp_path / "mine.pins.yaml"

    def pin(**environment) -> str:
        command = [sys.executable, "-m", "thaw.cli.main", "pin", "mine.yaml"]
        environment = hub.environment | {"PYTHONPATH": str(home / "scripts")} | environment
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=100)
        assert "Traceback" not in done.stderr, done.stderr
        return done.stdout + done.stderr

    def specs() -> dict:
        plan = load_plan(read_config(["mine.yaml"]), home, files=["mine.yaml"])
        return {key: job.spec for step in ("prepare", "fetch") for key, job in plan.jobs[step].items()}

    before = specs()
    assert "nothing was pinned, run it again" in pin(HF_HUB_OFFLINE="1") and not pins.exists()
    said = pin()
    assert "moods: the Hub has no us/none at its newest revision" in said and "written to mine.pins.yaml" in said
    assert pins.read_text().endswith(NOW)
    pinned = specs()
    assert pinned["moods"]["entry"]["hub"] | {"splits": 0} == {"id": "us/moods", "revision": COMMIT, "splits": 0}
    assert pinned["tiny"]["entry"]["revision"] == pinned["tiny_random"]["entry"]["revision"] == COMMIT
    pins.unlink()
    assert specs() == before and "revision" not in before["tiny"]["entry"]

    card = {"source": {"id": "us/moods", "revision": EARLIER}}
    write_json(tmp_path / "results/data/moods/card.json", card)
    pin()
    assert pins.read_text().endswith(NOW.replace(COMMIT, EARLIER, 1))
    card["source"]["revision"] = "0" * 40
    write_json(tmp_path / "results/data/moods/card.json", card)
    assert f"the Hub has no us/moods at {'0' * 40}" in pin() and pins.read_text().endswith(NOW)

    pins.write_text(NOW.replace(COMMIT, "0" * 40))
    gone = specs()
    error = step("prepare", gone["moods"], tmp_path / "a", home, hub.environment, "--data-dir", str(tmp_path))
    assert error == f"hub: data set 'us/moods' has no revision {'0' * 40}; {NEW_REVISION}"
    error = step("fetch", gone["tiny"], tmp_path / "b", home, hub.environment)
    assert error == f"us/tiny has no revision {'0' * 40} on the Hub; {NEW_REVISION}"
    for line, said in (
        (f"  tiny: us/other@{COMMIT}", "no entry names us/other"),
        ("  tin: us/tiny@main", "no entry names us/tiny"),
    ):
        pins.write_text(f"encoders:\n{line}\n")
        with pytest.raises(UserError, match=f"mine.pins.yaml:2: encoders.*: {said}.*thaw pin"):
            specs()
