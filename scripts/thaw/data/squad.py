"""Questions with their answers in a context: SQuAD's JSON files, and what is checked of answers from any source.

A file is {"data": [{"title", "paragraphs": [{"context", "qas": [{"id", "question", "answers": [{"text",
"answer_start"}], "is_impossible"}]}]}]} (Rajpurkar et al. 2016; 2018, whose questions may have no answer). Rows of
other formats have the answers as the Hub has them, {"text": [...], "answer_start": [...]}, or as a list as above.

Here a question has a list of {"start", "text"}, where `start` counts the characters of the context; [] is no answer.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from thaw.core.errors import UserError, suggestion
from thaw.data.rows_table import RowsTable, read_whole_json
from thaw.schema.corpora import FilesConfig

COLUMNS = ["id", "title", "question", "context", "answers"]
NEARBY = 15  # characters of the context that an error shows
SEEN = 10_000  # bytes in which a file names its list of articles


def read_squad(path: Path, source: FilesConfig, columns: dict) -> Iterator[tuple[str, dict]]:
    """Yield (place in the file, {our column: value}) of the questions. Raises UserError, with the place.

    Every question has an id of its own, and answers unless it says is_impossible: true.
    """
    for name in columns.values():
        if name not in COLUMNS:
            raise UserError(f"{path}: column '{name}': a file in SQuAD's format has no such{suggestion(name, COLUMNS)}")
    known: dict[str, str] = {}
    content = JsonObject(path, "", read_whole_json(path, source.encoding))
    for article in content.parts("data"):
        for paragraph in article.parts("paragraphs"):
            context = paragraph.text("context")
            for question in paragraph.parts("qas"):
                row: dict = {"id": question.text("id"), "title": article.value.get("title"), "context": context}
                if (first := known.setdefault(row["id"], question.place)) != question.place:
                    raise question.mistake(f"the id {row['id']} is that of {first} too; give every question its own")
                row |= {"question": question.text("question"), "answers": _answers(question)}
                yield question.place, {ours: row[name] for ours, name in columns.items()}


def recognised(content: bytes) -> bool:
    return (
        content.lstrip().startswith(b"{")
        and re.search(rb'"data"\s*:\s*\[', content[:SEEN]) is not None
        and (b'"paragraphs"' in content and b'"qas"' in content)
    )


def are_answers(values: list) -> bool:
    """Return whether a column holds answers, in either form."""
    keys = {"text", "answer_start"}
    forms = (value if isinstance(value, list) else [value] for value in values)
    return all(isinstance(one, dict) and keys <= set(one) for form in forms for one in form)


class JsonObject:
    """An object within a file, and where it is."""

    def __init__(self, path: Path, place: str, value):
        """Keep where it is. Raises UserError for what is no object."""
        self.path, self.place, self.value = path, place, value
        if not isinstance(value, dict):
            raise self.mistake(f"expected a JSON object, this is {value!r:.40}")

    def mistake(self, message: str) -> UserError:
        """Return the error `file: place: message`."""
        return UserError(": ".join(filter(None, [str(self.path), self.place, message])))

    def text(self, key: str) -> str:
        if not isinstance(self.value.get(key), str):
            what = f"'{key}' is {self.value[key]!r:.40}" if key in self.value else f"'{key}' is missing"
            raise self.mistake(f"{what}; expected a text{self._near(key)}")
        return self.value[key]

    def parts(self, key: str) -> list["JsonObject"]:
        if not isinstance(self.value.get(key), list):
            raise self.mistake(f"'{key}' is missing or no list; expected SQuAD's format{self._near(key)}")
        above = f"{self.place}." if self.place else ""
        return [JsonObject(self.path, f"{above}{key}[{n}]", value) for n, value in enumerate(self.value[key])]

    def _near(self, key: str) -> str:
        return "" if key in self.value else suggestion(key, self.value)


def _answers(question: JsonObject) -> dict[str, list]:
    answers = [answer.value for answer in question.parts("answers")]
    impossible = question.value.get("is_impossible", False)
    if not isinstance(impossible, bool):
        raise question.mistake(f"'is_impossible' is {impossible!r:.40}; expected true or false")
    if impossible and answers:
        raise question.mistake("has answers, though is_impossible is true; empty the list, or say false")
    if not (impossible or answers):
        raise question.mistake("has no answer; add one, or say is_impossible: true")
    return {key: [answer.get(key) for answer in answers] for key in ("text", "answer_start")}


def checked(value, table: RowsTable, row: int, column: str) -> list[dict]:
    """Return the answers of a row in canonical form. Raises UserError for what is no list of answers."""
    if isinstance(value, list) and all(isinstance(answer, dict) for answer in value):
        value = {key: [answer.get(key) for answer in value] for key in ("text", "answer_start")}
    texts, starts = (value.get("text"), value.get("answer_start")) if isinstance(value, dict) else (None, None)
    if not isinstance(texts, list) or not isinstance(starts, list) or len(texts) != len(starts):
        example = '{"text": ["in May"], "answer_start": [17]}'
        raise table.mistake(row, column, f"expected answers as {example}, this is {value!r:.60}")
    for number, (text, start) in enumerate(zip(texts, starts, strict=True), 1):
        if not isinstance(text, str) or not text.strip():
            raise table.mistake(
                row, column, f"answer {number}: its text is {text!r:.40}; expected words of the context"
            )
        if type(start) is not int or start < 0:
            raise table.mistake(
                row, column, f"answer {number}: answer_start is {start!r:.40}; expected a number of characters"
            )
    return [{"start": start, "text": text} for text, start in zip(texts, starts, strict=True)]


def check_within(answers: list[dict], context: str, table: RowsTable, row: int, column: str) -> None:
    """Raise UserError for the first answer of a row that is not where it says in its context."""
    for number, answer in enumerate(answers, 1):
        start, text = answer["start"], answer["text"]
        if context[start : start + len(text)] != text:
            there = context[start : start + max(len(text), NEARBY)]
            elsewhere = context.find(text)
            right = f"it begins at {elsewhere}" if elsewhere >= 0 else "the context does not hold it"
            message = f"answer {number}: {text!r:.40} is not at character {start}, where {there!r:.40} is; {right}"
            raise table.mistake(row, column, message)


def encoded(answers) -> list[tuple[int, str]]:
    """Return the answers of a row as (first character, text)."""
    return [(int(answer["start"]), answer["text"]) for answer in answers]
