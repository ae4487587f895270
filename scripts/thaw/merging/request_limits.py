"""What one request to the server may hold. No torch."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """The most that one request may hold: bytes of its body, texts, characters of a text."""

    body: int = 1_000_000
    texts: int = 512
    characters: int = 20_000
