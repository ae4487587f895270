"""Forward operations of what heads are made of; a multiplication and an addition are two, only products are counted.

n vectors, d width of what is read, D width of what is made. torch counts nothing for an LSTM, hence formulas.
"""


def matrix(read: int, made: int, vectors: int) -> float:
    """Return the operations of a matrix [D, d] on n vectors."""
    return 2.0 * read * made * vectors


def bilstm(read: int, size: int, layers: int, vectors: int) -> float:
    """Return the operations of a BiLSTM with D in each direction: four gates, each of input and hidden state."""
    widths = [read] + [2 * size] * (layers - 1)
    return sum(2 * matrix(width + size, 4 * size, vectors) for width in widths)


def attention(width: int, queries: int, keys: int) -> float:
    """Return the operations of each of some queries reading a weighted mean of some keys: scores, then the sum."""
    return 2 * matrix(width, keys, queries)
