"""Values inside records; where one is missing, the error names the file and the key."""

from thaw.core.errors import UserError


def value(record, path, *keys):
    """Return a value inside a record; a missing key is a UserError that names the file and the key."""
    inner = record
    for key in keys:
        if not isinstance(inner, dict) or key not in inner:
            raise UserError(f"{path}: '{'.'.join(keys)}' is missing; delete the file so that it is made again")
        inner = inner[key]
    return inner
