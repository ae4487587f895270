"""Which column of a file is the text, the second text or the words, and which is to be predicted.

What each column could be follows from its values and its name. A column is taken where one alone is left, by an exact
name, by a word in its name, or by its values; what is not sure is a guess that is printed. Else the user is asked.
"""

import re
from collections import Counter
from dataclasses import dataclass, field, replace

from thaw.core.errors import UserError, suggestion
from thaw.core.phrases import listing, plural
from thaw.data.checks import split_labels
from thaw.data.column_evidence import (
    FEW_LABELS,
    FEW_SCORES,
    IDS,
    LABELS,
    SCORES,
    TEXTS,
    WORDS,
    are_pair,
    are_texts,
    evidence_table,
    has_word,
    is_indicator,
    is_named,
    is_whole,
    kind_of,
    marked_splits,
    one_of,
    refuse_written_lists,
    separator_of,
    stated,
    why_unfit,
)
from thaw.data.file_profile import FileProfile, Name, is_number
from thaw.data.spans import bounds_of, scheme_of
from thaw.data.squad import are_answers
from thaw.schema.entry import free_id, id_of

SENTENCE = re.compile(r"sent(ence)?([\W_]*(id|idx|no|num|number|#))?", re.IGNORECASE)  # which numbers sentences
NO_LABEL = ("-", "-1")  # which SNLI and the Hub write where there is none
MOST_SHOWN = 12  # numbers that a message lists
LEAKS = 0.8  # share of rows whose text names the label


@dataclass
class Roles:
    """What each column is for: `texts` or `words`, the columns to predict (several of 0 and 1 for a set), the kind.

    rename: tags of another scheme in BIO. only: the labels whose rows are kept; none for all. words_by: the column that
    numbers the sentence of a row with one word. split: the column that names each row's split, with its value by split.
    target: its name in the corpus, where it is the only one that of its kind.
    """

    texts: list[Name]
    words: Name | None
    targets: list[Name]
    kind: str
    values: list[str] = field(default_factory=list)
    scheme: str = "bio"
    spans: bool = False
    offsets: bool = False
    separator: str | None = None
    rename: dict[str, str] = field(default_factory=dict)
    only: list[str] = field(default_factory=list)
    words_by: Name | None = None
    split: tuple[Name, dict[str, str]] | None = None
    target: str = ""
    guesses: dict[str, str] = field(default_factory=dict)


@dataclass
class Wishes:
    """What the user decides: the entry's id, the text columns, the columns to predict, the type; the rest is guessed.

    drop_empty: rows without a label are left out.
    """

    name: str | None = None
    texts: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    type: str | None = None
    drop_empty: bool = False


def find_tasks(profile: FileProfile, path: str, wishes: Wishes) -> list[Roles]:
    """Return the roles of a file's columns for each task: several columns to predict that are not all of 0 and 1 are
    a task each. Args, errors: as of `find_roles`.
    """
    positions = {str(name): name for name in profile.columns if isinstance(name, int)}
    named = [positions.get(name, name) for name in wishes.targets]
    if len(named) == 1 or all(is_indicator(profile.columns[name]) for name in named if name in profile.columns):
        roles = find_roles(profile, path, wishes)
        roles.target = "labels" if roles.kind == "label_set" else roles.kind
        return [roles]
    tasks = [find_roles(profile, path, replace(wishes, targets=(name,))) for name in wishes.targets]
    taken = {"text", "text_a", "text_b", "words"}
    for roles, name in zip(tasks, wishes.targets, strict=True):
        if roles.kind == "answers" or roles.offsets or roles.scheme != tasks[0].scheme:
            raise UserError(f"{path}: column '{name}' can not be predicted beside others; name one by --label")
        wanted = id_of(name, roles.kind)
        wanted = wanted if wanted[0].isalpha() else f"{roles.kind}_{wanted}"
        roles.target = free_id(wanted, taken) if wanted in taken else wanted
        taken.add(roles.target)
    return tasks


def find_roles(profile: FileProfile, path: str, wishes: Wishes) -> Roles:
    """Return the roles of a file's columns. Args: the profile; the file, for messages; what the user decides.

    Raises UserError, with a table of the columns, where not one alone can be the text, or the target.
    """
    columns = profile.columns
    positions = {str(name): name for name in columns if isinstance(name, int)}
    texts, targets = ([positions.get(name, name) for name in names] for names in (wishes.texts, wishes.targets))
    _check_named(profile, path, texts, targets)
    if not texts and {"question", "context", "answers"} <= set(columns) and are_answers(columns["answers"]):
        return Roles(["question", "context"], None, ["answers"], "answers")
    named = {*texts, *targets}
    marked = ((name, marked_splits(name, values)) for name, values in columns.items() if name not in named)
    if split := next((one for one in marked if one[1]), None):
        columns = {name: values for name, values in columns.items() if name != split[0]}
    if (roles := _of_words(columns, path, texts, targets)) is None:
        guesses: dict[str, str] = {}
        texts = texts or _texts(profile, columns, path, targets, guesses)
        targets = targets or _target(profile, columns, path, texts, wishes.type, guesses)
        roles = _of_targets(profile, columns, path, texts, targets, wishes, guesses)
    if roles.words_by is not None and profile.rows_read is None:
        raise UserError(f"{path}: has one word a row, which is read of files alone; save it as CSV")
    if split and profile.rows_read:  # a data set of the Hub has splits of its own
        roles.split = split
        written = ", ".join(f"{ours} {value!r}" for ours, value in split[1].items())
        left = len({str(value) for value in profile.columns[split[0]]} - set(split[1].values()))
        more = f"; rows with {plural(left, 'other value')} are left out" if left else ""
        roles.guesses["splits"] = f"column {split[0]} names the split of each row: {written}{more}"
    if wishes.type:
        _check_type(roles, wishes.type, path)
    return roles


def _check_named(profile: FileProfile, path: str, texts: list[Name], targets: list[Name]) -> None:
    if len(texts) > 2:
        raise UserError(f"{path}: {len(texts)} columns are named as texts; expected one, or two for a pair")
    for name in [*texts, *targets]:
        if name not in profile.columns:
            raise UserError(f"{path}: has no column '{name}'{suggestion(name, profile.columns)}")
        if name in texts and name in targets:
            raise UserError(f"{path}: column '{name}' is the text, so it can not be predicted too; name another")


def _check_type(roles: Roles, wanted: str, path: str) -> None:
    """Apply the type that the user states; raise UserError where the columns cannot be of it."""
    found = {"label": "classification", "score": "regression", "label_set": "multi_label_classification"}
    if roles.kind == "tags" and wanted == "tagging" or found.get(roles.kind) == wanted:
        roles.spans = False
    elif not (roles.kind == "tags" and wanted == "spans" and roles.spans):
        is_now = "spans" if roles.spans else "tagging" if roles.kind == "tags" else found.get(roles.kind, roles.kind)
        raise UserError(f"{path}: --type {wanted} does not fit column '{roles.targets[0]}', which holds {is_now}")


# Texts.


def _texts(profile: FileProfile, columns: dict, path: str, targets: list[Name], guesses: dict[str, str]) -> list[Name]:
    others = {name: values for name, values in columns.items() if name not in targets}
    wordy = [name for name, values in others.items() if are_texts(values, name)]
    strings = [
        name for name, values in others.items() if all(value is None or isinstance(value, str) for value in values)
    ]
    strings = [name for name in strings if not all(map(is_number, others[name]))]
    pairs = [(a, b) for a in strings for b in strings if are_pair(a, b) and {a, b} & {*wordy}]
    if pair := min(pairs, key=lambda pair: len(str(pair[0])), default=None):
        return [*pair]
    taken = one_of(wordy, TEXTS)
    if len(taken) != 1:
        _refuse_objects(columns, path)
        several = f"{listing(map(str, wordy))} may be the text" if wordy else "no column holds texts of several words"
        both = f" --text {wordy[0]} {wordy[1]}" if len(wordy) == 2 else ""
        raise UserError(
            f"{path}: {several}; name it by --text, or the two of a pair{both}\n{evidence_table(profile.columns)}"
        )
    if rest := [str(name) for name in wordy if name != taken[0]]:
        two = [str(name) for name in wordy if str(name) in (str(taken[0]), rest[0])]
        joined = f"columns: {{text: [{', '.join(two)}]}} joins two in one, --text {' '.join(two)} makes a pair of them"
        guesses["texts"] = f"further texts: {', '.join(rest)}; {joined}"
    return taken


def _refuse_objects(columns: dict[Name, list], path: str) -> None:
    """Raise UserError for the first column that holds objects: nobody looks for a text or label inside of them."""
    for name, values in columns.items():
        if inside := next((list(value) for value in values if isinstance(value, dict) and value), None):
            advice = f"write {listing(map(str, inside[:3]))} as keys of the line itself"
            raise UserError(f"{path}: column '{name}' holds objects, whose keys are no columns; {advice}")


# Targets.


def _target(
    profile: FileProfile, columns: dict, path: str, texts: list[Name], wanted: str | None, guesses: dict[str, str]
) -> list[Name]:
    others = {
        name: values
        for name, values in columns.items()
        if name not in texts and not (name == "" or has_word(name, IDS))
    }
    kinds = {name: kind for name, values in others.items() if (kind := kind_of(values, name))}
    few = [name for name in kinds if kinds[name] != "label" or len(set(map(str, others[name]))) <= FEW_LABELS]
    taken = one_of(list(kinds), LABELS)
    taken = taken if len(taken) == 1 else one_of(list(kinds), SCORES)
    taken = few if len(taken) != 1 and len(few) == 1 else taken
    if len(taken) > 1 and all(is_indicator(others[name]) for name in taken):
        is_set = wanted == "multi_label_classification"
        if is_set or all(sum(map(int, row)) == 1 for row in zip(*(others[name] for name in taken), strict=True)):
            guesses["targets"] = f"each row has a 1 in one of {listing(map(str, taken))}, which were taken as labels"
            return taken
    if len(taken) != 1:
        _refuse_objects(columns, path)
        unfit = "".join(f"; '{name}' {why_unfit(values)}" for name, values in others.items() if name not in kinds)
        if not kinds:
            said = f"no column looks like labels or scores{unfit or '; add one, or name it by --label'}"
        else:
            several = "name one by --label, or several columns of 0 and 1 as the labels of a set"
            said = f"{listing(map(str, kinds))} may be predicted; {several}"
        raise UserError(f"{path}: {said}\n{evidence_table(profile.columns)}")
    if rest := ", ".join(f"{name} ({kind})" for name, kind in kinds.items() if name != taken[0]):
        guesses["targets"] = f"could also be {rest}"
    return taken


def _of_targets(
    profile: FileProfile,
    columns: dict,
    path: str,
    texts: list[Name],
    targets: list[Name],
    wishes: Wishes,
    guesses: dict[str, str],
) -> Roles:
    if len(targets) > 1:
        one = all(sum(map(int, row)) == 1 for row in zip(*(columns[name] for name in targets), strict=True))
        of_set = "label" if one and wishes.type != "multi_label_classification" else "label_set"
        if of_set == "label":
            guesses["targets"] = (
                f"each row has a 1 in one of {listing(map(str, targets))}, so they are classes; --type "
                "multi_label_classification makes each a label of its own"
            )
        return Roles(texts, None, [*targets], of_set, sorted(map(str, targets)), guesses=guesses)
    (target,) = targets
    column = columns[target]
    refuse_written_lists(target, column, path)
    if spans := _of_offsets(columns, texts, target):
        return spans
    kind, full = _stated_kind(column, wishes.type) or kind_of(column, target), stated(column)
    one_label = kind != "label" or None in column or wishes.type == "classification"
    separator = None if one_label else separator_of(column)
    dropped = wishes.drop_empty and kind == "label" and not separator
    if kind is None or len(full) < len(column) and not (dropped or separator):
        empty = next((row for row, value in enumerate(column) if value in (None, "")), None)
        at = f"{path}:" if empty is None or wishes.drop_empty else profile.place(path, empty)
        raise UserError(f"{at} column '{target}' {why_unfit(column, wishes.drop_empty)}")
    if separator:
        guesses["separators"] = f"{separator!r} was taken to be between several labels of a row"
    if kind == "label_set" or separator:
        full, kind = [label for labels in split_labels(full, separator) for label in labels], "label_set"
    names = {str(value).lower() if isinstance(value, bool) else str(value) for value in full}
    roles = Roles(texts, None, [target], kind, separator=separator, guesses=guesses)
    if kind != "score":
        roles.values = sorted(names, key=int if all(re.fullmatch(r"-?\d+", name) for name in names) else None)
    _doubt(roles, full, columns, wishes)
    return roles


def _stated_kind(values: list, wanted: str | None) -> str | None:
    full = stated(values)
    plain = not any(isinstance(value, (list, dict)) for value in full) and len(set(map(str, full))) > 1
    if wanted == "classification" and plain and len(set(map(str, full))) < len(full):
        return "label"
    return "score" if wanted == "regression" and plain and all(map(is_number, full)) else None


def _doubt(roles: Roles, values: list, columns: dict, wishes: Wishes) -> None:
    """Add what the values of a target leave open: numbers that may be labels or scores, marks that may be no label."""
    (target,) = roles.targets
    counts = Counter(map(str, values))
    if wishes.type is None and all(map(is_number, values)):
        shown = sorted({float(value) for value in values})
        which = ", ".join(f"{value:g}" for value in shown) if len(shown) <= MOST_SHOWN else f"{len(shown)} in all"
        if roles.kind == "label" and len(shown) > FEW_SCORES:
            roles.guesses["targets"] = f"the numbers ({which}) are labels; --type regression makes them scores"
        elif roles.kind == "score" and len(shown) <= len(values) / 2 and all(is_whole(2 * value) for value in shown):
            said = f"the numbers ({which}) are scores; --type classification makes them labels"
            roles.guesses["targets"] = "; ".join(filter(None, [said, roles.guesses.get("targets")]))
    if roles.kind != "label":
        return
    if len(values) < len(columns[target]):
        roles.only = roles.values
        roles.guesses["only"] = f"{plural(len(columns[target]) - len(values), 'row')} without a label are left out"
    for mark in NO_LABEL:
        rest = [name for name in roles.values if name != mark]
        if mark in counts and len(rest) > 1 and (mark == "-1") == all(name.isdigit() for name in rest):
            which = f"{mark!r} in {plural(counts[mark], 'row')}"
            if mark == "-":
                roles.values = roles.only = rest
                roles.guesses["only"] = f"{which} was taken for no label, and these rows are left out"
            else:
                keep = f"only: {{label: [{', '.join(rest)}]}} leaves these rows out"
                roles.guesses["labels"] = f"{which} was taken for a label; if it means none, {keep}"
    named = [
        (str(value).lower(), " ".join(str(columns[name][row] or "") for name in roles.texts).lower())
        for row, value in enumerate(columns[target])
        if len(str(value)) > 2 and not is_number(value)
    ]
    leaked = sum(bool(re.search(rf"\b{re.escape(label)}\b", text)) for label, text in named)
    if named and leaked >= LEAKS * len(columns[target]):
        said = f"the text contains its label in {leaked} of {len(columns[target])} rows; check that it was there before"
        roles.guesses["texts"] = "; ".join(filter(None, [said, roles.guesses.get("texts")]))


# Words with tags.


def _of_words(columns: dict[Name, list], path: str, texts: list[Name], targets: list[Name]) -> Roles | None:
    """Return the roles of words with tags, in lists or one word a row; None where there are none."""
    asked = [name for name in columns if name in texts or name in targets or not (texts and targets)]
    if sentences := _sentences({name: columns[name] for name in asked}):
        for name in sentences:
            refuse_written_lists(name, columns[name], path)
        return _tagged(sentences, targets)
    if by := _long_table(columns, texts, path):
        words, sentence = by
        rest = {name: values for name, values in columns.items() if name not in (words, sentence)}
        tags = {
            name: [[str(value)] for value in values]
            for name, values in rest.items()
            if kind_of(values, name) == "label"
        }
        if not {*targets} <= {*tags} or not tags:
            raise UserError(f"{path}: has one word a row, and no column of tags beside '{words}' and '{sentence}'")
        roles = _tagged({words: [[str(word)] for word in columns[words]], **tags}, targets, sentences=False)
        roles.words_by = sentence
        roles.guesses["words_by"] = f"each row is a word, and column {sentence} numbers the sentences"
        return roles
    return None


def _long_table(columns: dict[Name, list], texts: list[Name], path: str) -> tuple[Name, Name] | None:
    """Return the column of words and the one that numbers sentences, where each row is a word."""
    words = next((name for name in columns if is_named(name, WORDS) and (not texts or name in texts)), None)
    if words is None or not all(isinstance(value, str) for value in columns[words]):
        return None
    if sum(len(value.split()) > 1 for value in columns[words]) > len(columns[words]) / 20:
        return None
    numbers = [name for name in columns if SENTENCE.fullmatch(str(name)) and name != words]
    if not numbers:
        said = f"has one word a row in column '{words}', and no column that numbers the sentences, as sentence_id"
        raise UserError(f"{path}: {said}; add one, or write a blank line after each sentence")
    return words, numbers[0]


def _of_offsets(columns: dict[Name, list], texts: list[Name], target: Name) -> Roles | None:
    """Return the roles of a text with spans by their first character and end; None where the target holds no such."""
    if len(texts) != 1 or kind_of(columns[target], target) != "spans":
        return None
    kinds = sorted({bounds[2] for row in columns[target] for span in row or [] if (bounds := bounds_of(span))})
    values = sorted([f"{mark}-{kind}" for kind in kinds for mark in "BI"] + ["O"])
    guesses = {"offsets": "spans take the words that they touch; words and marks are cut from each other"}
    return Roles([], texts[0], [target], "tags", values, spans=True, offsets=True, guesses=guesses)


def _sentences(columns: dict[Name, list]) -> dict[Name, list[list[str]]]:
    """Return the columns with as many entries as words in every row, the words first; none where there are no two.

    They are lists already, or texts in which one column has as many words as the other and fewer distinct ones.
    """
    lists = {name: values for name, values in columns.items() if all(isinstance(value, list) for value in values)}
    if len(lists) < 2:
        strings = {name: v for name, v in columns.items() if all(isinstance(value, str) for value in v)}
        lists = {name: [value.split() for value in values] for name, values in strings.items()}
        lists = {name: values for name, values in lists.items() if sum(map(len, values)) > 2 * len(values)}
    distinct = {name: {str(entry) for row in values for entry in row} for name, values in lists.items()}
    for words, rows in lists.items():
        alike = [name for name in lists if name != words and list(map(len, lists[name])) == list(map(len, rows))]
        tags = [name for name in alike if len(distinct[name]) <= min(FEW_LABELS, len(distinct[words]) - 1)]
        if tags and all(isinstance(word, str) for row in rows for word in row):
            return {name: lists[name] for name in [words, *tags]}
    return {}


def _tagged(lists: dict[Name, list[list]], targets: list[Name], sentences: bool = True) -> Roles:
    """Return the roles of words with tags: the named column, the last of spans, one named so, or the last.

    sentences: whether an entry is a sentence, so that the tag before a word is known.
    """
    words, *others = lists
    tags = {name: {str(tag) for row in lists[name] for tag in row} for name in others}
    schemes = {name: scheme_of(tags[name]) for name in others}
    spans = [name for name in others if schemes[name][0]]
    named = [name for name in others if name in targets]
    target = (named or spans or [name for name in others if has_word(name, LABELS)] or others)[-1]
    rest = ", ".join(str(name) for name in others if name != target)
    scheme, rename = schemes[target]
    found = {rename.get(tag, tag) for tag in tags[target]}
    roles = Roles([], words, [target], "tags", sorted(found), spans=bool(scheme), rename=rename)
    roles.guesses |= {"targets": f"other columns of tags: {rest}"} if rest and not named else {}
    if rename:
        dress = scheme if scheme != "BIO" else "BIO in another dress"
        roles.guesses["rename"] = f"the tags are {dress}, as {next(iter(rename))}, and become BIO"
    if all(tag.isdecimal() for tag in tags[target]):
        named_by = "rename: {tags: {'0': O, '1': B-PER, ...}}"
        roles.guesses["labels"] = f"the tags are numbers without names; {named_by} names them, and B- and I- make spans"
        roles.values = sorted(found, key=int)
    before_each = ((last, tag) for row in lists[target] for last, tag in zip(["O", *row], row, strict=False))
    plain = roles.spans and sentences and not rename
    if plain and any(tag.startswith("I-") and last[2:] != tag[2:] for last, tag in before_each):
        values = {f"{mark}{tag[1:]}" if tag != "O" else tag for tag in tags[target] for mark in "BI"}
        roles.values, roles.scheme = sorted(values), "iob1"
        roles.guesses["scheme"] = "somewhere I- begins a span"
    return roles
