"""The command line of a step: what is required, what may be absent, and a spec that is no JSON object."""

import sys
from argparse import ArgumentTypeError
from pathlib import Path

import pytest

from thaw.core.digests import canonical
from thaw.core.step_arguments import CATALOGUES, DATA, any_number, at_least_one, parse_arguments, read_spec
from thaw.planning.questions import by_file

GIVEN = ["--spec", '{"a": 1e-5}', "--data", "d", "--seeds", "1", "2", "--out", "o"]


def parsed(monkeypatch, words):
    monkeypatch.setattr(sys, "argv", ["step", *words])
    return parse_arguments("A step.\n\n  as it is", DATA, at_least_one("--seeds", "", int), CATALOGUES, out="folder")


def test_values_have_their_types_and_lists_may_be_absent(monkeypatch):
    arguments = parsed(monkeypatch, GIVEN)
    assert vars(arguments) == {
        "spec": {"a": 1e-5},
        "data": Path("d"),
        "seeds": [1, 2],
        "catalogues": [],
        "out": Path("o"),
    }
    assert parsed(monkeypatch, [*GIVEN, "--catalogues", "x", "y"]).catalogues == [Path("x"), Path("y")]
    assert any_number("--x", "")[1]["default"] == []


@pytest.mark.parametrize(
    "text, message", [("{", "argument --spec: not JSON"), ("[1]", "expected a JSON object, not [1]")]
)
def test_a_spec_is_a_json_object(monkeypatch, capsys, text, message):
    with pytest.raises(SystemExit):
        parsed(monkeypatch, ["--spec", text, *GIVEN[2:]])
    assert message in capsys.readouterr().err


def test_a_long_spec_is_read_from_its_file(tmp_path, monkeypatch):
    """The command in a log names the file, and can be pasted."""
    monkeypatch.chdir(tmp_path)
    long = canonical({"words": ["word"] * 1000})
    assert by_file("{}") == "{}" and read_spec("{}") == {}
    word = by_file(long)
    assert len(word) < 100 and word == by_file(long) and canonical(read_spec(word)) == long
    with pytest.raises(ArgumentTypeError, match="none.json cannot be read"):
        read_spec("@none.json")
