"""The server: requests of a real client on a free port, what it refuses, and several clients at once."""

import json
import socket
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import numpy as np
import pytest

import served as load_test
from served import ask, requests_of, resident, served, under_load
from test_merge import rooms, runs, written  # noqa: F401 - fixtures
from thaw.core.errors import UserError
from thaw.exporting import formats
from thaw.exporting.finished_run import open_run
from thaw.exporting.standalone_model import Model
from thaw.merging.http_app import Limits, answer, load, serve, warnings
from thaw.merging.merged_model import MergedModel, check

CLIENTS, REQUESTS = 8, 96  # the bound of the load: so many at once, so many in all


@pytest.fixture(scope="module")
def running(written, tmp_path_factory):  # noqa: F811
    """Give the address of a server with small limits, its process, and the file of what it prints as errors."""
    pytest.importorskip("fastapi", reason="the extra `serve` is not installed")
    pytest.importorskip("uvicorn", reason="the extra `serve` is not installed")
    limits = ("--max-texts", "16", "--max-bytes", "4000", "--concurrent", str(CLIENTS))
    printed = tmp_path_factory.mktemp("served") / "errors"
    with printed.open("w") as errors, served(written, *limits, errors=errors) as found:
        yield *found, printed
    assert "Traceback" not in printed.read_text()


@pytest.fixture
def address(running) -> str:
    """Give the server's address."""
    return running[0]


TEXTS = ["Anna sings sings", "the river river river", "sings"]


def test_a_request_is_answered_as_the_folder_predicts(written, address):  # noqa: F811
    model, asked = MergedModel(written), {"texts": TEXTS, "tasks": ["sings", "rivers"]}
    assert ask(address, asked) == (200, model.predict(TEXTS, ["sings", "rivers"]))
    full = ask(address, asked | {"probabilities": True})[1]
    assert full == model.predict_with_probabilities(TEXTS, ["sings", "rivers"])
    pair = {"texts": [["Anna sings", "the river"]], "tasks": ["pairs"]}
    assert ask(address, pair)[1] == model.predict(pair["texts"], ["pairs"])
    with urllib.request.urlopen(f"{address}/health") as reply:
        assert json.loads(reply.read()) == {"status": "ok", "tasks": ["pairs", "rivers", "sings"]}
    with urllib.request.urlopen(f"{address}/tasks") as reply:
        assert json.loads(reply.read())["rivers"] == {"reads": "text", "labels": ["no", "yes"], "frozen": 1, "own": 2}


def test_what_runs_are_flagged_for_is_printed_when_the_server_starts(running, written):  # noqa: F811
    lines = [f"warning: {line}" for line in warnings(written)]
    assert lines and running[2].read_text().splitlines()[: len(lines)] == lines


def test_texts_that_were_cut_are_named_with_the_tokens_that_were_read(written, address):  # noqa: F811
    """The tests' tokenizers have a token for each of these words, and add two; of 64 tokens 62 are words."""
    longest, longer = "river " * 62, "river " * 63
    reply = ask(address, {"texts": [longest, longer, "sings", longer], "tasks": ["sings", "rivers"]})[1]
    assert reply.pop("cut-off") == dict.fromkeys(("sings", "rivers"), {"texts": [1, 3], "tokens": 64})
    assert {task: len(labels) for task, labels in reply.items()} == {"sings": 4, "rivers": 4}
    assert reply["sings"][1] == reply["sings"][0], "what is beyond was not read"
    model = MergedModel(written)
    full = model.predict_with_probabilities([longest, longer], ["sings"])["sings"]
    assert [one.get("cut") for one in full] == [None, 64]
    pairs = [["sings", longer], [longer, "sings"], ["sings", "river"]]
    assert answer(model, {"texts": pairs, "tasks": ["pairs"]}, Limits())["cut-off"]["pairs"]["texts"] == [0, 1]


REFUSED = [
    (b"{", 400, "not JSON"),
    (b"\xff\xfe{}", 400, "the body is not"),
    ("{}".encode("utf-16"), 400, "the body is not UTF-8"),
    (b'{"texts": ["half \\ud800"], "tasks": ["sings"]}', 400, "half of a surrogate pair"),
    (b'{"texts": ["a"], "\\ud800": 1}', 400, "half of a surrogate pair"),
    ([], 400, 'expected a JSON object with "texts"'),
    ({"texts": []}, 400, "0 texts; a request has 1 to 16"),
    ({"texts": ["a"] * 17}, 400, "17 texts; a request has 1 to 16"),
    ({"texts": ["a"], "tasks": ["songs"]}, 400, "no task 'songs'"),
    ({"texts": ["a"], "tasks": []}, 400, '"tasks" is a list of names'),
    ({"texts": ["a"], "tasks": ["pairs"]}, 400, "pairs reads lists of two strings"),
    ({"texts": ["a"], "tasks": ["sings", "pairs"]}, 400, "sings reads strings, pairs lists of two strings; name only"),
    ({"texts": [["a", "b"]]}, 400, "name only tasks that read the same"),
    ({"texts": [1], "tasks": ["sings"]}, 400, "sings reads strings"),
    ({"texts": ["a"], "task": "sings"}, 400, 'there is no "task"'),
    ({"texts": ["a"], "tasks": ["sings"], "probabilities": 1}, 400, '"probabilities" is true or false'),
    ({"texts": ["a" * 5000], "tasks": ["sings"]}, 413, "more than 4000 bytes"),
]


def test_what_is_refused_is_one_sentence(address):
    for body, status, sentence in REFUSED:
        code, reply = ask(address, body)
        assert code == status and sentence in reply["error"], (body, code, reply)
    assert ask(address, {"texts": TEXTS, "tasks": ["sings"]})[0] == 200  # it is still up


@pytest.mark.parametrize(
    "method, path, status", [("GET", "/", 404), ("POST", "/predictions", 404), ("PUT", "/predict", 405)]
)
def test_a_path_that_is_not_there_is_an_error_in_the_same_form(address, method, path, status):
    with pytest.raises(urllib.error.HTTPError) as raised:
        urllib.request.urlopen(urllib.request.Request(address + path, method=method))
    sentence = f"there is no {method} {path}; there are GET /health, GET /tasks, POST /predict"
    assert raised.value.code == status and json.loads(raised.value.read()) == {"error": sentence}


def test_two_words_are_no_pair_and_a_sentence_at_once():
    reads = {"pairs": "pair", "tags": "words"}
    check([["Anna", "sings"]], ["tags"], reads)
    with pytest.raises(ValueError, match="pairs reads lists of two strings, tags lists of words; name only tasks"):
        check([["Anna", "sings"]], ["pairs", "tags"], reads)


def test_a_client_that_hangs_up_leaves_no_traceback(running):
    address, _, printed = running  # which is looked through once more when the server has ended
    head = b"POST /predict HTTP/1.1\r\nHost: here\r\nContent-Length: 1000\r\n\r\n{"
    with socket.create_connection(("127.0.0.1", urlsplit(address).port)) as client:
        client.sendall(head)
    assert ask(address, {"texts": TEXTS, "tasks": ["sings"]})[0] == 200
    assert "Traceback" not in printed.read_text()


def test_a_bounded_load_is_held_and_said(running, capsys):
    """Requests of eight threads, the limit: every answer is what one client gets; what was held is printed."""
    address, server, _ = running
    bodies = [{"texts": TEXTS[: 1 + n % 3], "tasks": [("sings", "rivers")[n % 2]]} for n in range(REQUESTS)]
    alone = {json.dumps(body): ask(address, body) for body in bodies[:6]}

    before = resident(server)
    replies, seconds, whole = under_load(address, bodies, CLIENTS)
    after = resident(server)
    assert [reply == alone[json.dumps(body)] for body, reply in zip(bodies, replies, strict=True)] == [True] * REQUESTS
    median, p99 = np.percentile(seconds, [50, 99]) * 1e3
    with capsys.disabled():
        print(
            f"\nheld {REQUESTS} requests of {CLIENTS} clients: {REQUESTS / whole:.0f} requests/s, "
            f"median {median:.0f} ms, P99 {p99:.0f} ms, memory {before / 1024:.0f} to {after / 1024:.0f} MiB"
        )
    assert after < 1.5 * before, "the load left memory behind"


def test_the_load_test_sends_whole_lines_in_utf_8_as_tasks_read_them(address, tmp_path):
    file = tmp_path / "lines.txt"
    file.write_text("Änne sings\tthe river\nsings\tÅse\n", encoding="utf-8")
    texts = [body["texts"] for body in requests_of(file, ["sings", "rivers"], address)]
    assert texts == [["Änne sings\tthe river"], ["sings\tÅse"]]
    pairs = [body["texts"] for body in requests_of(file, ["pairs"], address)]
    assert pairs == [[["Änne sings", "the river"]], [["sings", "Åse"]]]


@pytest.mark.usefixtures("running")  # which skips without the extra
def test_the_load_test_makes_its_folder(written, tmp_path, monkeypatch):  # noqa: F811
    (tmp_path / "lines.txt").write_text("sings\n" * 3)
    out = tmp_path / "new" / "tables"
    words = [written, "--tasks", "sings", "--texts", tmp_path / "lines.txt", "--out", out]
    monkeypatch.setattr("sys.argv", ["served.py", *map(str, words)])
    load_test.main()
    clients = [line.split(",")[:2] for line in (out / "served.csv").read_text().splitlines()[1:]]
    assert clients == [["1", "3"], ["8", "3"]] and "| 8 | 3 |" in (out / "served.md").read_text()


def test_more_requests_than_the_limit_are_told_so_and_none_is_lost(address):
    """Of 32 at once on a server of eight at once each is answered, or refused with 503 and one sentence."""
    body = {"texts": TEXTS * 5, "tasks": ["sings", "rivers"]}
    with ThreadPoolExecutor(4 * CLIENTS) as clients:
        replies = list(clients.map(lambda _: ask(address, body), range(REQUESTS)))
        right = ask(address, body)
    assert right[0] == 200 and {code for code, _ in replies} <= {200, 503}
    assert all(reply == right for reply in replies if reply[0] == 200)
    refused = [reply["error"] for code, reply in replies if code == 503]
    assert refused and len(set(refused)) == 1 and "at once" in refused[0]


def test_without_the_extra_and_without_a_folder_one_sentence_says_what_to_do(written, tmp_path):  # noqa: F811
    with pytest.raises(UserError, match="has no thaw.json; name a folder that thaw merge or thaw export wrote"):
        load(tmp_path)
    with pytest.raises(ValueError, match="a text has more than 5 characters"):
        answer(load(written), {"texts": ["sings sings"], "tasks": ["sings"]}, Limits(characters=5))


def test_a_port_that_is_taken_is_one_sentence_before_anything_is_printed(written, address, capsys):  # noqa: F811
    host, port = address.removeprefix("http://").rsplit(":", 1)
    with pytest.raises(UserError, match=f"{host}:{port}: Address already in use; name another with --port"):
        serve(written, host, int(port), Limits(), 1)
    assert capsys.readouterr().out == ""


def test_an_export_of_one_run_is_served_alike(runs, tmp_path):  # noqa: F811
    formats.write(open_run(runs["sings"]), tmp_path)
    model = load(tmp_path)
    assert answer(model, {"texts": TEXTS}, Limits()) == {"sings": Model(tmp_path).predict(TEXTS)}
    assert model.tasks == {"sings": {"reads": "text", "labels": ["no", "yes"]}}
    assert warnings(tmp_path) == ["sings: predicts a single class, or one set of labels, on validation"]
    with pytest.raises(ValueError, match="there is no task 'songs'; there are sings"):
        answer(model, {"texts": TEXTS, "tasks": ["songs"]}, Limits())
    with pytest.raises(ValueError, match="sings reads strings"):
        answer(model, {"texts": [["a", "b"]]}, Limits())
