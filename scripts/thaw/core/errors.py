"""What a user is shown: one sentence that says what is wrong, where, and what would be right."""

import contextlib
import difflib


class UserError(Exception):
    """A mistake that the user can correct: one sentence that says what is wrong, where, and what would be right."""


def suggestion(word: str, known) -> str:
    """Return `; did you mean 'x'?`, or else the list of what exists."""
    close = difflib.get_close_matches(str(word), [str(k) for k in known], n=1)
    if close:
        return f"; did you mean '{close[0]}'?"
    return f"; there are {', '.join(sorted(map(str, known)))}"


@contextlib.contextmanager
def wrap_corruption(path, to_delete: str):
    """Turn what a library raises over a file that Thaw made into one sentence; `to_delete` says what to delete."""
    try:
        yield
    except (UserError, MemoryError, ImportError):
        raise
    except Exception as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise UserError(f"{path} is damaged ({reason}); delete {to_delete} and run the workflow again") from error
