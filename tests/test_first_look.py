"""What `thaw new task` takes a file for: small files with all the forms that users bring, one line of answer each.

`known/first_look.txt` has the answers; --update-messages writes it anew. Each line was checked by hand.
"""

import csv
import io
import json
from pathlib import Path

import pytest

from corpora import spec_for
from thaw.core.errors import UserError
from thaw.data.catalogue_stub import draft_of_file
from thaw.data.column_roles import Wishes
from thaw.data.corpus import Corpus
from thaw.data.preparation import prepare
from thaw.schema.catalogue import Catalogue
from thaw.schema.entry import spec_of

KNOWN = Path(__file__).parent / "known/first_look.txt"
N = range(60)
TEXTS = [f"the {('lamp', 'soup', 'train', 'coat')[i % 4]} of shop {i} was {('fine', 'bad')[i % 2]}" for i in range(616)]
LABELS = [("pos", "neg")[i % 2] for i in range(616)]
TRAIN = ("train", "train", "train", "dev", "test")
WORDS = [
    ("the", "O"),
    ("doctor", "O"),
    ("Anna", "B-PER"),
    ("Boris", "I-PER"),
    ("", "O"),
    ("in", "O"),
    ("Rome", "B-LOC"),
]
SENTENCES = [[(word or f"case{i}", tag) for word, tag in WORDS] for i in range(50)]
BILOU = {"B-LOC": "U-LOC", "I-PER": "L-PER"}
IOBES = {"B-LOC": "S-LOC", "I-PER": "E-PER"}
KAGGLE = ("The DT O", "man NN O", "in IN O", "Rome NNP B-geo", "met VB O", "Anna NNP B-per")
BUILT: dict[str, object] = {}  # name of the file: its content
WISHES = {
    "77 numbers as scores.csv": Wishes(type="regression"),
    "1 to 5 as labels.csv": Wishes(type="classification"),
    "one of three as a set.csv": Wishes(type="multi_label_classification"),
    "null labels dropped.jsonl": Wishes(drop_empty=True),
    "many names.csv": Wishes(targets=("note",)),
    "one word a row, named.csv": Wishes(texts=("Word",), targets=("POS",)),
    "spans as tags.conll": Wishes(type="tagging"),
    "labels as scores.csv": Wishes(type="regression"),
    "no label key, named.jsonl": Wishes(targets=("mood",)),
    "written lists, named.csv": Wishes(targets=("labels",)),
    "a row that looks like names.csv": Wishes(targets=("2",)),
    "names that look like a row.csv": Wishes(texts=("text",), targets=("good",)),
    "no names.csv": Wishes(texts=("1",), targets=("2",)),
    "no such number.csv": Wishes(targets=("7",)),
    "mood and stars.csv": Wishes(targets=("mood", "Stars given")),
    "POS and NER.conll": Wishes(targets=("1", "2")),
    "duplicate named.csv": Wishes(texts=("0",), targets=("label",)),
}


def table(name: str, head: str, rows, end: str = "\n", **form) -> None:
    file = io.StringIO()
    csv.writer(file, lineterminator=end, **form).writerows([head.split("|"), *rows])
    BUILT[name] = file.getvalue()


def lines(name: str, rows) -> None:
    BUILT[name] = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def sentences(name: str, form="{} {}".format, above: str = "") -> None:
    BUILT[name] = "".join(above + "".join(form(*word) + "\n" for word in words) + "\n" for words in SENTENCES)


# Labels and scores.
table("77 numbers.csv", "text|label", [(TEXTS[i], i % 77) for i in range(616)])
table("77 numbers as scores.csv", "text|label", [(TEXTS[i], i % 77) for i in range(616)])
table("77 names.csv", "text|category", [(TEXTS[i], f"intent_{i % 77}") for i in range(616)])
table("many names.csv", "text|note|label", [(TEXTS[i], f"n{i % 200}", LABELS[i]) for i in range(616)])
table("12 numbers.csv", "text|label", [(TEXTS[i], i % 12) for i in N])
table("1 to 5.csv", "text|rating", [(TEXTS[i], i % 5 + 1) for i in N])
table("1 to 5 as labels.csv", "text|rating", [(TEXTS[i], i % 5 + 1) for i in N])
table("stars.csv", "review|stars", [(TEXTS[i], i % 5 + 1) for i in N])
table("decimals.csv", "text|value", [(TEXTS[i], f"{i / 7:.3f}") for i in N])
table("decimal commas.csv", "text|score", [(TEXTS[i], f"{i % 17 / 4:.2f}".replace(".", ",")) for i in N], delimiter=";")
table("thousands.csv", "text|price", [(TEXTS[i], f"{1000 + 37 * i:,}") for i in N])
table("per cent.csv", "text|share", [(TEXTS[i], f"{i}%") for i in N])
table("a running number.csv", "text|nr", [(TEXTS[i], i) for i in N])
table("labels as scores.csv", "text|label", [(TEXTS[i], LABELS[i]) for i in N])
table("a total.csv", "text|label", [*((TEXTS[i], LABELS[i]) for i in N), ("sum of all", "60")])
table("blanks after commas.csv", "text| label", [(TEXTS[i], f" {LABELS[i]}") for i in N])
table("no label in SNLI.csv", "premise|hypothesis|gold_label", [(TEXTS[i], TEXTS[i + 9], "en-c"[i % 4]) for i in N])
lines("minus one.jsonl", [{"text": TEXTS[i], "label": -1 if i % 5 == 0 else i % 2} for i in N])
lines("three and minus one.jsonl", [{"text": TEXTS[i], "label": i % 4 - 1} for i in N])
lines("booleans.jsonl", [{"text": TEXTS[i], "label": i % 2 == 0} for i in N])
lines("null labels.jsonl", [{"text": TEXTS[i], "label": None if i % 9 == 0 else LABELS[i]} for i in N])
BUILT["null labels dropped.jsonl"] = BUILT["null labels.jsonl"]
lines("null scores.jsonl", [{"text": TEXTS[i], "score": None if i % 9 == 0 else i / 3} for i in N])
table("a score is NA.csv", "text|score", [(TEXTS[i], "NA" if i == 3 else f"{i}.5") for i in N])
table("one class.csv", "text|label", [(TEXTS[i], "pos") for i in N])
table("a label each.csv", "text|label", [(TEXTS[i], f"c{i}") for i in N])
table("names and numbers.csv", "text|label|label_text", [(TEXTS[i], i % 2, LABELS[i]) for i in N])
table("slips.csv", "text|label", [(TEXTS[i], ("neg", "pos", " neg", "Pos", "negg")[i % 4 + (i == 39)]) for i in N])
table("several labels.csv", "text|label", [*((TEXTS[i], LABELS[i]) for i in N), (TEXTS[2], "neg"), (TEXTS[2], "neg")])
table("two labels.csv", "text|label|z", [(TEXTS[i], LABELS[i], "ab"[i % 2]) for i in N])
lines("no label key.jsonl", [{"text": TEXTS[i]} | ({"mood": LABELS[i]} if i % 10 != 3 else {}) for i in N])
BUILT["no label key, named.jsonl"] = BUILT["no label key.jsonl"]

# Several labels.
table("one of three.csv", "text|A|B|C", [(TEXTS[i], *(int(i % 3 == k) for k in range(3))) for i in N])
BUILT["one of three as a set.csv"] = BUILT["one of three.csv"]
table("any of three.csv", "text|A|B|C", [(TEXTS[i], i % 2, int(i % 3 == 0), int(i % 4 == 1)) for i in N])
table("pipes between labels.csv", "text|labels", [(TEXTS[i], ("a|b", "b", "a")[i % 3]) for i in N])
table("commas in topics.csv", "text|topics", [(TEXTS[i], ("food, drink", "food", "drink")[i % 3]) for i in N])
lines("lists of labels.jsonl", [{"text": TEXTS[i], "labels": [["a", "b"], ["b"], []][i % 3]} for i in N])
table("written lists.csv", "text|labels", [(TEXTS[i], "['a', 'b']" if i % 2 else "['a']") for i in N])
table("written lists, named.csv", "text|labels", [(TEXTS[i], '["a", "b"]' if i % 2 else '["a"]') for i in N])
lines("slips in sets.jsonl", [{"text": TEXTS[i], "labels": [["food", "room"], ["Food"], ["room"]][i % 3]} for i in N])
table(
    "mood and stars.csv", "text|mood|Stars given", [(TEXTS[i], ("bad", "good")[i % 2], (1, 2.5, 5)[i % 3]) for i in N]
)

# Texts.
table("a longer column.csv", "text|label|why", [(TEXTS[i], LABELS[i], f"{TEXTS[i]} and more of it") for i in N])
table("the label in the text.csv", "text|label", [(f"{LABELS[i]}: {TEXTS[i]}", LABELS[i]) for i in N])
table("Chinese.csv", "text|label", [(f"这家餐厅的菜很好吃{i}", LABELS[i]) for i in N])
table("Thai.csv", "comment|label", [(f"อาหารอร่อยมาก{i}", LABELS[i]) for i in N])
JAPANESE = [
    {"sentence1": f"牛が山の上に{i}頭います。", "sentence2": f"曇り空 の 山肌 で {i} 頭", "label": i % 11 / 2}
    for i in N
]
lines("Japanese pairs.jsonl", JAPANESE)
table(
    "Quora.csv", "id|qid1|qid2|question1|question2|is_duplicate", [(i, i, i + 1, *TEXTS[i : i + 2], i % 2) for i in N]
)
PARSED = [(f"( {TEXTS[i]} )", f"( {TEXTS[i + 1]} )", *TEXTS[i : i + 2], "enc"[i % 3]) for i in N]
table("SNLI with trees.tsv", "sentence1_parse|sentence2_parse|sentence1|sentence2|gold_label", PARSED, delimiter="\t")
table("two texts.csv", "title|body|mood", [(TEXTS[i], TEXTS[i + 1], LABELS[i]) for i in N])
table("no text.csv", "name|label", [(f"n{i}", LABELS[i]) for i in N])
table("long texts.csv", "text|label", [(f"{'word ' * 119}{i}", LABELS[i]) for i in N])
lines("a label in an object.jsonl", [{"text": TEXTS[i], "data": {"label": LABELS[i]}} for i in N])
lines("objects.jsonl", [{"id": i, "data": {"text": TEXTS[i], "label": LABELS[i]}} for i in N])
OF_ALL_KINDS = ("id", "review", "why", "mood", "stars", "price", "tokens", "topics", "split", "one")
VALUES = [(f"{i % 30}", TEXTS[i], f"{TEXTS[i]} too", LABELS[i], None if i == 3 else i % 5, i / 7) for i in N]
FURTHER = [(TEXTS[i].split(), ("a;b", "b", "a")[i % 3], TRAIN[i % 5], "same") for i in N]
lines("all kinds.jsonl", [dict(zip(OF_ALL_KINDS, VALUES[i] + FURTHER[i], strict=True)) for i in N])

# Splits.
table("splits.csv", "text|label|split", [(TEXTS[i], LABELS[i], TRAIN[i % 5]) for i in N])
lines("splits.jsonl", [{"text": TEXTS[i], "label": LABELS[i], "Set": TRAIN[i % 5].title()} for i in N])
table(
    "two splits and others.csv", "text|label|split", [(TEXTS[i], LABELS[i], ("train", "test", "x")[i % 3]) for i in N]
)
table("numbered folds.csv", "text|label|fold", [(TEXTS[i], LABELS[i], i % 5) for i in N])

# Rows, columns, quotes.
table("a name twice.csv", "text|text|label", [(TEXTS[i], TEXTS[i].upper(), LABELS[i]) for i in N])
BUILT["duplicate named.csv"] = BUILT["a name twice.csv"]
table("an index.csv", "|text|label", [(i, TEXTS[i], LABELS[i]) for i in N])
BUILT["a row that looks like names.csv"] = "1,text,good\n" + "".join(
    f"{i % 7},word{i} is here,{LABELS[i]}\n" for i in N
)
BUILT["names that look like a row.csv"] = BUILT["a row that looks like names.csv"]
BUILT["no names.csv"] = "".join(f"{i % 2},{TEXTS[i]},{i % 3}\n" for i in N)
BUILT["no such number.csv"] = BUILT["no names.csv"]
table("CRLF.csv", "text|label", [(TEXTS[i], LABELS[i]) for i in N], end="\r\n")
table("CR.csv", "text|label", [(TEXTS[i], LABELS[i]) for i in N], end="\r")
BUILT["a mark of order.csv"] = "\ufeff" + str(BUILT["CRLF.csv"])
BUILT["Excel's separator.csv"] = "sep=;\ntext;label\n" + "".join(f"{TEXTS[i]};{LABELS[i]}\n" for i in N)
BUILT["pipes.csv"] = "text|label\n" + "".join(f"{TEXTS[i]}|{LABELS[i]}\n" for i in N)
BUILT["pipes.txt"] = BUILT["pipes.csv"]
BUILT["backslashes.csv"] = "text,label\n" + "".join(f'"he said \\"{TEXTS[i]}\\", twice",{LABELS[i]}\n' for i in N)
BUILT["apostrophes.csv"] = "".join(f"{LABELS[i]};'{TEXTS[i]}, they said, and left, and came'\n" for i in N)
BUILT["fastText.txt"] = "".join(f"__label__{LABELS[i]} {TEXTS[i]}\n" for i in N)
BUILT["quotes in a tsv.tsv"] = "text\tlabel\n" + "".join(f'"{TEXTS[i]}\t{LABELS[i]}\n' for i in N)
BUILT["commas in texts.csv"] = "text,label\n" + "".join(f"Yes, {TEXTS[i]},{LABELS[i]}\n" for i in N)
RECORDS = [{"text": TEXTS[i], "label": LABELS[i]} for i in N]
BUILT["list.json"] = json.dumps(RECORDS, indent=1)
BUILT["columns.json"] = json.dumps({name: {str(i): RECORDS[i][name] for i in N} for name in ("text", "label")})
BUILT["broken.json"] = json.dumps(RECORDS)[:-1]
BUILT["one column in quotes.csv"] = "text\n" + "".join(f'"{TEXTS[i]}, they said"\n' for i in N)
LATIN = [f"{TEXTS[i]} by the café\t{LABELS[i]}\n" for i in N]
BUILT["Latin-1.tsv"] = "".join(["text\tlabel\n", *LATIN]).encode("latin-1")
BUILT["UTF-16.csv"] = "text,label\n".encode("utf-16")
BUILT["Excel.xlsx"] = b"PK\x03\x04" + bytes(100)
BUILT["nothing.csv"] = "\n"
BUILT["a header alone.csv"] = "text,label\n"
BUILT["prose.txt"] = "".join(f"word{i} stands here.\n" for i in N)
table("few rows.csv", "text|label", [(TEXTS[i], LABELS[i]) for i in range(9)])

# Words with tags.
sentences("BIO.conll")
sentences("four columns.conll", "{0} X Y {1}".format, "-DOCSTART- X Y O\n\n")
sentences("underscores.conll", lambda word, tag: f"{word} {tag.replace('-', '_')}")
sentences("lower case.conll", lambda word, tag: f"{word} {tag.lower()}")
sentences("IOBES.conll", lambda word, tag: f"{word} {IOBES.get(tag, tag)}")
sentences("BILOU.conll", lambda word, tag: f"{word} {BILOU.get(tag, tag)}")
sentences("IOB1.conll", lambda word, tag: f"{word} {'I-LOC' if tag == 'B-LOC' else tag}")
sentences("comments.conll", "{0} _ _ {1}".format, "# id a1\tdomain=en\n")
sentences("blanks in words.txt", lambda word, tag: f"{'New York' if word == 'Rome' else word}\t{tag}")
sentences("no spans.conll", lambda word, tag: f"{word} {'N' if word[0].isupper() else 'X'}")
sentences("spans as tags.conll")
FORM = "{n}\t{word}\t_\t{kind}\t_\t_\t0\troot\t_\t_\n"
TREES = [[FORM.format(n=n, word=w, kind="NX"[w.islower()]) for n, (w, _) in enumerate(s, 1)] for s in SENTENCES]
BUILT["trees.conllu"] = "\n".join("".join(tree) for tree in TREES)
sentences("POS and NER.conll", lambda word, tag: f"{word} {'N' if word[0].isupper() else 'X'} {tag}")
lines(
    "numbered tags.jsonl", [{"tokens": [word for word, _ in s], "ner_tags": [0, 0, 1, 2, 0, 0, 3]} for s in SENTENCES]
)
lines(
    "named tags.jsonl", [{"tokens": [w for w, _ in s], "pos": ["X"] * 7, "ner": [t for _, t in s]} for s in SENTENCES]
)
KAGGLED = [("" if i % 6 else f"Sentence: {i}", *KAGGLE[i % 6].replace("man", f"man{i}").split()) for i in range(300)]
table("one word a row.csv", "Sentence #|Word|POS|Tag", KAGGLED)
table("one word a row, named.csv", "Sentence #|Word|POS|Tag", KAGGLED)
table(
    "one word a row, numbered.tsv",
    "sent_id|token|tag",
    [(i // 6, *KAGGLE[i % 6].split()[::2]) for i in range(300)],
    delimiter="\t",
)
table("no sentence.csv", "Word|Tag", [tuple(KAGGLE[i % 6].split()[::2]) for i in range(300)])
table("written words.csv", "tokens|tags", [(["the", f"n{i}", "of", "Rome"], ["O", "O", "O", "B-LOC"]) for i in N])
lines("doccano.jsonl", [{"text": TEXTS[i], "label": [[4, 8, "THING"]]} for i in N])
lines("spans as objects.jsonl", [{"text": TEXTS[i], "entities": [{"start": 4, "end": 8, "label": "T"}]} for i in N])
lines("a span beyond.jsonl", [{"text": TEXTS[i], "label": [[4, 99, "THING"]]} for i in N])
lines("spans that overlap.jsonl", [{"text": TEXTS[i], "label": [[0, 8, "A"], [4, 8, "B"]]} for i in N])


def content_of(name: str) -> bytes:
    return content if isinstance(content := BUILT[name], bytes) else str(content).encode()


def answer(path: Path, wishes: Wishes | None) -> str:
    """Return what is printed of a file in one line: type, rows, columns, guesses, or the error."""
    try:
        draft = draft_of_file(path, set(), wishes)
    except UserError as error:
        return f"error: {str(error).replace(str(path), path.name)}"
    columns = "; ".join(f"{role}: {taken}" for role, taken in draft.columns.items())
    guesses = [f"{key}: {said}" for key, said in draft.guesses.items() if key != "carve"]
    held_out = [] if "carve" in draft.guesses else ["nothing is held out"]
    return " | ".join([f"{', '.join(draft.types.values())}, {draft.rows} rows", columns, *guesses, *held_out])


def test_each_file_is_what_it_is_known_for(tmp_path, request):
    seen = []
    for name in BUILT:
        path = tmp_path / name
        path.write_bytes(content_of(name))
        seen.append(f"{name}\n    {answer(path, WISHES.get(name))}\n")
    if request.config.getoption("--update-messages"):
        KNOWN.write_text("".join(seen), encoding="utf-8")
    assert "".join(seen) == KNOWN.read_text(encoding="utf-8")


# Of few different texts, or with one in each pair after the other: none can be held out alone.
NOT_HELD_OUT = {"many names.csv", "Quora.csv", "SNLI with trees.tsv", "one word a row, numbered.tsv"}


def test_prepare_takes_each_draft_as_it_is(tmp_path, home):
    refused = set()
    for name in BUILT:
        try:
            draft, corpus = prepared(tmp_path, name, home)
        except UserError as error:
            if "no group is small enough" in str(error):
                refused.add(name)
            else:
                assert answer(tmp_path / name.replace(" ", "_") / name, WISHES.get(name)).startswith("error: ")
            continue
        assert sum(len(corpus.frame(split)) for split in corpus.splits) == draft.rows, name
        assert name != "Latin-1.tsv" or all("café" in text for text in corpus.frame("train")["text"])
    assert refused == NOT_HELD_OUT


@pytest.mark.parametrize("name", ["BILOU.conll", "IOBES.conll", "lower case.conll", "underscores.conll"])
def test_every_scheme_gives_the_spans_of_bio(tmp_path, name, home):
    """What `prepare` reads by the drafted entry is what it reads of the same sentences in BIO."""
    assert words_read(tmp_path, name, home) == words_read(tmp_path, "BIO.conll", home)


@pytest.mark.parametrize("name", ["doccano.jsonl", "one word a row.csv"])
def test_words_are_made_of_rows_and_of_offsets(tmp_path, name, home):
    rows = words_read(tmp_path, name, home)
    first = [("the", "O"), ("lamp", "B-THING"), ("of", "O"), ("shop", "O"), ("0", "O"), ("was", "O"), ("fine", "O")]
    kaggle = [("The", "O"), ("man7", "O"), ("in", "O"), ("Rome", "B-GEO"), ("met", "O"), ("Anna", "B-PER")]
    assert (first if name == "doccano.jsonl" else kaggle) in rows


def words_read(folder: Path, name: str, home: Path) -> list[list[tuple]]:
    """Return the words with tags of all splits, as `prepare` writes them by the entry that is drafted."""
    _, corpus = prepared(folder, name, home)
    frames = [corpus.frame(split) for split in corpus.splits]
    rows = [zip(words, tags, strict=True) for f in frames for words, tags in zip(f["words"], f["tags"], strict=True)]
    return sorted([(word, tag.upper()) for word, tag in row] for row in rows)


def prepared(folder: Path, name: str, home: Path):
    """Return the draft of a file, and what `prepare` makes of the file by it."""
    own = folder / name.replace(" ", "_")
    own.mkdir()
    (own / name).write_bytes(content_of(name))
    draft = draft_of_file(own / name, set(), WISHES.get(name))
    (own / "tasks.yaml").write_text("".join(f"{block}:\n{text}\n" for block, text in draft.blocks.items()))
    entry = spec_of(Catalogue([home / "config", own]).get("corpora", draft.name, "test"))
    prepare(spec_for(entry, own), own, own / "out")
    return draft, Corpus(own / "out")
