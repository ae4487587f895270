"""Numbers in print: fixed decimals, units, intervals."""

DASH = "–"


def points(margin: float) -> str:
    """Return a margin in points."""
    return f"{margin:g} {'point' if margin == 1 else 'points'}"


def number(value: float | None, digits: int = 1) -> str:
    """Return a number with a fixed count of decimals, a dash where it is undefined; never `-0.0`."""
    if value is None or value != value:
        return DASH
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if float(text) == 0 else text.replace("-", "−")


def interval(low: float | None, high: float | None, digits: int = 1) -> str:
    """Return both ends of an interval in print: [−2.0, −0.4]."""
    return f"[{number(low, digits)}, {number(high, digits)}]"


def count(value: float) -> str:
    """Return a count with thin groups: 12 345."""
    return f"{int(value):,}".replace(",", "\u202f")


def short(value: float | None) -> str:
    """Return a large number in three digits with its unit: 22.7 M, 3.1 T."""
    if value is None or value != value:
        return DASH
    for size, unit in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= 0.9995 * size:
            return f"{value / size:.3g}\u202f{unit}"
    return f"{value:.3g}"


def seconds(value: float | None) -> str:
    """Return a duration: 0.4 s, 35 s, 4.2 min, 1.5 h."""
    if value is None or value != value:
        return DASH
    if value < 90:
        return f"{value:.2g}\u202fs" if value < 9.95 else f"{value:.0f}\u202fs"
    return f"{value / 60:.1f}\u202fmin" if value < 5400 else f"{value / 3600:.1f}\u202fh"


def operations(value: float) -> str:
    """Return operations in print: 3.1 TFLOPs."""
    return f"{short(value)}{'' if value >= 999.5 else ' '}FLOPs"
