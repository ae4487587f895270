"""What a user is shown: one sentence that says what is wrong, where, and what would be right."""

import contextlib
import difflib
import re


class UserError(Exception):
    """A mistake that the user can correct: one sentence that says what is wrong, where, and what would be right."""


MANY = 20  # a longer list of names helps nobody who reads one sentence
NEAR = 0.6  # from which ratio on a name is near, as in difflib.get_close_matches
SHORTENED = 3  # letters from which on a word may be the beginning of a name, as acc of accuracy


def suggestion(word: str | int, known, listing: str = "") -> str:
    """Return `; did you mean 'x'?`, or else the list of what exists; of many, `listing`, which says where they are."""
    known = [str(name) for name in known]
    if near := nearest(str(word), known):
        return f"; did you mean '{near}'?"
    if listing and len(known) > MANY:
        return f"; {listing}"
    return f"; there are {', '.join(sorted(known)) or 'none'}"


def nearest(word: str, known: list[str]) -> str | None:
    """Return the one name that a word begins, or else the name most like it, the first of those that are equally so.

    None where no name is near.
    """
    if word not in known and (folded := re.sub(r"[^a-z0-9]+", "_", word.lower())) in known:
        return folded
    begun = [name for name in known if len(word) >= SHORTENED and name.startswith(word.lower())]
    if len(begun) == 1:
        return begun[0]
    matcher = difflib.SequenceMatcher(b=word)
    ratios = []
    for name in known:
        matcher.set_seq1(name)
        ratios.append(matcher.ratio())
    best = max(ratios, default=0)
    return known[ratios.index(best)] if best >= NEAR else None


@contextlib.contextmanager
def wrap_corruption(path, to_delete: object):
    """Turn what a library raises over a file that Thaw made into one sentence; `to_delete` says what to delete."""
    try:
        yield
    except (UserError, MemoryError, ImportError):
        raise
    except Exception as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise UserError(f"{path} is damaged ({reason}); delete {to_delete} and run the workflow again") from error
