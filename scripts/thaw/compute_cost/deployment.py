"""What serving a model takes, in units that one pays: milliseconds a text, MB a task, and a million texts."""

from dataclasses import dataclass

STORED = 4  # bytes of a parameter in an export


@dataclass(frozen=True)
class Deployment:
    """What serving one arm takes; None where nobody measured it.

    milliseconds: of a text, without a cache. megabytes: what a further task adds where tasks share the frozen encoder.
    million: the price of a million texts, read in batches, in the user's currency.
    """

    milliseconds: float | None
    megabytes: float | None
    million: float | None
    currency: str

    @classmethod
    def of(cls, operations: float, rate: float, parameters: float, hour: float | None, currency: str) -> "Deployment":
        """Return the units. What is NaN is not known.

        Args: operations of one prediction; how many the encoder makes a second here; the parameters that are not the
        shared encoder's; the price of an hour of the machine.
        """
        milliseconds = 1e3 * operations / rate if operations > 0 and rate > 0 else None
        megabytes = STORED * parameters / 1e6 if parameters >= 0 else None
        million = None if milliseconds is None or hour is None else milliseconds * 1e6 / 3.6e6 * hour
        return cls(milliseconds, megabytes, million, currency)
