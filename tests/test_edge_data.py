"""Labelled spans, and files that hold several splits: read from CoNLL-U, jiant's JSON and SentEval's files."""

import pytest

from corpora import prepared, spec_for
from thaw.core.errors import UserError
from thaw.data.corpus import Corpus
from thaw.data.preparation import prepare
from thaw.data.readers import read
from thaw.schema.corpora import FilesConfig

# A tree drawn by hand: (form, upos, features, head, relation).
PAST = [
    ("The", "DET", "_", 2, "det"),
    ("dogs", "NOUN", "Number=Plur", 4, "nsubj"),
    ("had", "AUX", "Mood=Ind|Tense=Past|VerbForm=Fin", 4, "aux"),
    ("seen", "VERB", "Tense=Past|VerbForm=Part", 0, "root"),
    ("a", "DET", "_", 6, "det"),
    ("cat", "NOUN", "Number=Sing", 4, "obj"),
    (".", "PUNCT", "_", 4, "punct"),
]


def conllu(*sentences) -> str:
    blocks = []
    for words in sentences:
        lines = (f"{i}\t{w[0]}\t_\t{w[1]}\t_\t{w[2]}\t{w[3]}\t{w[4]}\t_\t_" for i, w in enumerate(words, 1))
        blocks.append("\n".join(lines) + "\n\n")
    return "".join(blocks)


def table(tmp_path, content: str, wanted: list[str], **entry):
    path = tmp_path / "file"
    path.write_text(content, encoding="utf-8")
    return read(path, FilesConfig.model_validate({"splits": {"train": "file"}} | entry), wanted)


def test_arcs_are_pairs_of_a_word_and_its_head(tmp_path):
    found = table(tmp_path, conllu(PAST), ["words", "arcs"], format="conllu", columns={"words": "form"})
    assert found.columns["words"] == [["The", "dogs", "had", "seen", "a", "cat", "."]]
    assert found.columns["arcs"][0][:4] == [
        {"span1": [0, 1], "span2": [1, 2], "label": "det"},
        {"span1": [1, 2], "span2": [3, 4], "label": "nsubj"},
        {"span1": [2, 3], "span2": [3, 4], "label": "aux"},
        {"span1": [3, 4], "span2": [3, 4], "label": "root"},
    ]


@pytest.mark.parametrize(
    "heads, message",
    [
        ((2, 1, 0), "file:1: column 'head': the sentence is no tree with one root; 1 of its words hang on 0"),
        ((0, 0, 1), "file:1: column 'head': the sentence is no tree with one root; 2 of its words hang on 0"),
        ((0, 4, 1), "file:2: column 'head': '4' is no word; the sentence has 1 to 3"),
        ((0, "_", 1), "file:2: column 'head': '_' is no word; the sentence has 1 to 3"),
    ],
)
def test_heads_that_make_no_tree(tmp_path, heads, message):
    content = conllu([("a", "X", "_", head, "dep") for head in heads])
    with pytest.raises(UserError, match=message):
        table(tmp_path, content, ["words", "arcs"], format="conllu", columns={"words": "form"})


JIANT = [
    {
        "text": "Ian ate strawberry ice cream",
        "targets": [
            {"span1": [1, 2], "span2": [0, 1], "label": "A0"},
            {"span1": [1, 2], "span2": [2, 5], "label": ["A1", "was_used"], "info": {"height": 1}},
        ],
        "info": {"source": "PropBank"},
    },
    {"text": "He slept", "targets": [{"span1": [0, 2], "label": "A0"}], "info": {}},
    {"text": "Yes", "targets": [], "info": {}},
]
ENTRY = {"words": "words", "targets": {"roles": "edges"}, "files": {"columns": {"words": "text", "roles": "targets"}}}


def test_the_json_of_jiant(tmp_path):
    corpus = prepared(tmp_path, ENTRY, train=JIANT, test=JIANT[:2])
    assert corpus.labels("roles") == ["A0", "A1", "was_used"]
    assert corpus.card["splits"]["train"]["labels"]["roles"] == {"A0": 2, "A1": 1, "was_used": 1}
    assert list(corpus.frame("train")["words"][0]) == ["Ian", "ate", "strawberry", "ice", "cream"]
    task = {"target": "roles"}
    assert corpus.targets(task, "train") == [[(1, 2, 0, 1, [0]), (1, 2, 2, 5, [1, 2])], [(0, 2, -1, -1, [0])], []]


@pytest.mark.parametrize(
    "edges, message",
    [
        ([{"span1": [0, 3], "label": "x"}], r"edge 1: span1 \[0, 3\] is no span; the sentence has 2 words"),
        ([{"span1": [1, 1], "label": "x"}], r"edge 1: span1 \[1, 1\] is no span"),
        ([{"span1": [0, 1], "span2": [-2, 1], "label": "x"}], r"edge 1: span2 \[-2, 1\] is no span"),
        ([{"label": "x"}], "edge 1: span1 is None"),
        ([{"span1": [0, 1]}], r"edge 1: label is \[None\]; expected a text or a list of texts"),
        ("nothing", "expected a list of labelled spans"),
    ],
)
def test_spans_outside_the_sentence(tmp_path, edges, message):
    with pytest.raises(UserError, match=rf"train.jsonl:2: column 'targets': {message}"):
        prepared(tmp_path, ENTRY, train=[JIANT[0], {"text": "He slept", "targets": edges}])
    assert not (tmp_path / "out" / "card.json").exists()


def test_a_file_of_senteval_holds_all_splits(tmp_path):
    lines = ["tr\tPRES\tShe sings .", "va\tPAST\tHe sang .", 'tr\tPAST\tIt was " odd .', "te\tPRES\tThey are ."]
    (tmp_path / "past_present.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    files = {"format": "tsv", "quoting": "none", "header": False, "columns": {"text": 2, "label": 1}}
    files["splits"] = dict.fromkeys(("train", "validation", "test"), "past_present.txt")
    files["marks"] = {"train": "tr", "validation": "va", "test": "te"}
    entry = {"texts": ["text"], "targets": {"label": "label"}, "files": files}
    prepare(spec_for(entry, tmp_path), tmp_path, tmp_path / "out")
    corpus = Corpus(tmp_path / "out")
    found = {
        split: list(zip(*(corpus.frame(split)[c] for c in ("text", "label")), strict=True)) for split in files["splits"]
    }
    assert found == {
        "train": [("She sings .", "PRES"), ('It was " odd .', "PAST")],
        "validation": [("He sang .", "PAST")],
        "test": [("They are .", "PRES")],
    }
    with pytest.raises(ValueError, match="marks: there is no split dev; there are train, validation, test"):
        FilesConfig.model_validate(files | {"marks": {"dev": "va"}})
    with pytest.raises(ValueError, match="marks has no meaning with format jsonl"):
        FilesConfig.model_validate(files | {"format": "jsonl"})
