"""The server of docs/howto/serve.py answers as the folder predicts, and refuses a wrong request in one sentence."""

import contextlib
import json
import os
import socket
import time
import urllib.error
import urllib.request

import pytest

import forked
from test_merge import rooms, runs, written  # noqa: F401 - fixtures
from thaw.exporting import formats
from thaw.exporting.finished_run import open_run
from thaw.exporting.standalone_model import Model
from thaw.merging.merged_model import MergedModel, check

TEXTS = ["Anna sings sings", "the river river river", "sings"]


@contextlib.contextmanager
def served(home, folder):
    """Serve a folder in a process of its own; give its address."""
    pytest.importorskip("fastapi", reason="the extra `serve` is not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [home / "docs/howto/serve.py", folder, port]
    process = forked.start(words, [os.devnull] * 3, environment=os.environ | {"OMP_NUM_THREADS": "1"})
    try:
        for _ in range(600):
            assert process.is_alive()
            with contextlib.suppress(urllib.error.URLError, ConnectionError):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/tasks", timeout=5)
                break
            time.sleep(0.2)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.join()


def ask(address: str, body) -> tuple[int, dict]:
    header = {"content-type": "application/json"}
    request = urllib.request.Request(f"{address}/predict", json.dumps(body).encode(), header)
    try:
        with urllib.request.urlopen(request, timeout=120) as reply:
            return reply.status, json.loads(reply.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def test_a_merged_folder_is_served(home, written):  # noqa: F811
    model, asked = MergedModel(written), {"texts": TEXTS, "tasks": ["sings", "rivers"]}
    pairs = [["Anna sings", "the river"]]
    with served(home, written) as address:
        assert ask(address, asked) == (200, model.predict_with_probabilities(**asked))
        assert ask(address, {"texts": pairs, "tasks": ["pairs"]})[1] == model.predict_with_probabilities(
            pairs, ["pairs"]
        )
        with urllib.request.urlopen(f"{address}/tasks") as reply:
            assert json.loads(reply.read()) == model.tasks
        assert ask(address, {"texts": ["a"], "tasks": ["songs"]})[0] == 400
        assert "there is no task 'songs'" in ask(address, {"texts": ["a"], "tasks": ["songs"]})[1]["detail"]
        assert ask(address, {"texts": pairs, "tasks": ["sings"]})[0] == 400
        assert [ask(address, body)[0] for body in ({"texts": []}, {"texts": ["a"], "task": "sings"})] == [422, 422]


def test_an_export_of_one_run_is_served_alike(home, runs, tmp_path):  # noqa: F811
    formats.write(open_run(runs["sings"]), tmp_path)
    with served(home, tmp_path) as address:
        assert ask(address, {"texts": TEXTS})[1] == {"sings": list(Model(tmp_path).predict_with_probabilities(TEXTS))}
        assert ask(address, {"texts": TEXTS, "tasks": ["songs"]}) == (400, {"detail": "there is one task, sings"})


def test_two_words_are_no_pair_and_a_sentence_at_once():
    reads = {"pairs": "pair", "tags": "words"}
    check([["Anna", "sings"]], ["tags"], reads)
    with pytest.raises(ValueError, match="pairs reads lists of two strings, tags lists of words; name only tasks"):
        check([["Anna", "sings"]], ["pairs", "tags"], reads)
