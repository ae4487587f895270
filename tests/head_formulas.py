"""What heads compute, written from the papers' formulas in NumPy: one text at a time, token by token, without padding.

Nothing here calls the heads' own modules. `p` holds a head's parameters by their names in its state_dict, in float64.
n, m tokens or words of a text, d width, h width of a direction, C outputs, l perspectives. A text is [n, d].
"""

from itertools import product

import numpy as np


def sigmoid(x):
    """Return the logistic function of each number."""
    return 1 / (1 + np.exp(-x))


def softmax(x):
    """Return exp(x) over its sum along the last dimension."""
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def affine(p, name, x):
    """Return W x + b of each row of x [..., d]."""
    return x @ p[f"{name}.weight"].T + p[f"{name}.bias"]


def layer_norm(p, name, x, tiny=1e-5):
    """Return each row less its mean, over its standard deviation, times a gain, plus a bias (Ba et al. 2016)."""
    centred = x - x.mean(-1, keepdims=True)
    deviation = np.sqrt((centred**2).mean(-1, keepdims=True) + tiny)
    return centred / deviation * p[f"{name}.weight"] + p[f"{name}.bias"]


def lstm(p, name, text, ending):
    """Return the states [n, h] of one direction of a layer; `ending` names its parameters, as l0 or l0_reverse.

    Gates i, f, o and the candidate g read input and previous state; c = f c + i g, h = o tanh(c) (Hochreiter and
    Schmidhuber 1997, with Gers et al. 2000's forget gate).
    """
    read, back, b, c = (p[f"{name}.{part}_{ending}"] for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
    h = cell = np.zeros(back.shape[1])
    states = []
    for x in text:
        i, f, g, o = np.split(read @ x + b + back @ h + c, 4)
        cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(cell)
        states.append(h)
    return np.array(states)


def bilstm(p, name, text, layers=1):
    """Return [n, 2h]: at each token the state of a reading from the front, and of one from the end."""
    for n in range(layers):
        forward, backward = lstm(p, name, text, f"l{n}"), lstm(p, name, text[::-1], f"l{n}_reverse")[::-1]
        text = np.concatenate([forward, backward], 1)
    return text


def attended(u, v, scale=1.0):
    """Return for each token of u the mean of v's tokens, weighted by a softmax of dot products.

    (Chen et al. 2017, equations 11 to 13.)
    """
    said = []
    for token in u:
        weights = softmax(np.array([scale * token @ other for other in v]))
        said.append(sum(weight * other for weight, other in zip(weights, v, strict=True)))
    return np.array(said)


def compared(a, b):
    """Return [a; b; a - b; a * b] (Chen et al. 2017, equation 14)."""
    return np.concatenate([a, b, a - b, a * b], -1)


def bcn(p, texts, *, pool):
    """Return the logits [C] of the biattentive classification network (McCann et al. 2017, section 5).

    Args: one text, which attends to itself, or two; linear functions of a maxout unit.
    """
    encoded = [bilstm(p, "encoding.lstm", np.maximum(affine(p, "first", text), 0)) for text in texts]
    vector = []
    for x, y in zip(encoded, encoded[::-1], strict=True):
        said = attended(x, y)
        x = bilstm(p, "integrator.lstm", np.concatenate([x, x - said, x * said], 1))
        shares = softmax(np.array([p["attention.query"] @ token for token in x]))
        vector += [x.max(0), x.mean(0), x.min(0), shares @ x]
    vector = np.concatenate(vector)
    for name in ("reduction.0", "reduction.1", "output"):
        if f"{name}.functions.weight" not in p:
            return affine(p, "output", vector)
        functions = affine(p, f"{name}.functions", vector)
        vector = np.array([max(functions[k : k + pool]) for k in range(0, len(functions), pool)])
    return vector


def esim(p, texts, dropped=lambda x: x):
    """Return the logits [C] of the enhanced sequential inference model (Chen et al. 2017, equations 1 to 20).

    Args: dropped, what dropout below a BiLSTM makes of a text [n, w].
    """
    u, v = (bilstm(p, "encoding.lstm", dropped(text)) for text in texts)
    pooled = []
    for a, b in ((u, attended(u, v)), (v, attended(v, u))):
        enhanced = np.maximum(affine(p, "enhanced", compared(a, b)), 0)
        composed = bilstm(p, "composition.lstm", dropped(enhanced))
        pooled += [composed.mean(0), composed.max(0)]
    return affine(p, "output", np.tanh(affine(p, "hidden", np.concatenate(pooled))))


def bi_attention(p, texts):
    """Return the logits [C] of attention across two texts and the largest over each.

    Scale and concatenation are the head's own, which Peters et al. 2019, section 3, leave open.
    """
    u, v = texts
    scale = 1 / np.sqrt(u.shape[1])
    pooled = [compared(a, attended(a, b, scale)).max(0) for a, b in ((u, v), (v, u))]
    return affine(p, "output", np.concatenate(pooled))


def cosine(a, b):
    """Return the cosine of two vectors."""
    return a @ b / np.sqrt((a @ a) * (b @ b))


def perspectives(u, v, weights):
    """Return the cosine of two weighted vectors for each row of weights [l, d] (Wang et al. 2017, equations 4, 5)."""
    return np.array([cosine(w * u, w * v) for w in weights])


def matches(p, name, u, v, whole):
    """Return the four matches [n, 4l] of each token of u with v, represented by `whole` (Wang et al. 2017, 6 to 10)."""
    full, largest, attentive, nearest = (
        p[f"{name}.{kind}"] for kind in ("full", "maxpooling", "attentive", "max_attentive")
    )
    rows = []
    for token in u:
        alike = np.array([cosine(token, other) for other in v])
        mean = sum(weight * other for weight, other in zip(alike, v, strict=True)) / alike.sum()
        best = np.max([perspectives(token, other, largest) for other in v], 0)
        last = perspectives(token, v[alike.argmax()], nearest)
        rows.append(
            np.concatenate([perspectives(token, whole, full), best, perspectives(token, mean, attentive), last])
        )
    return np.array(rows)


def both_ends(states):
    """Return where each direction of a BiLSTM [n, 2h] has read all: the last state forward, the first backward."""
    forward, backward = np.split(states, 2, 1)
    return forward[-1], backward[0]


def matched(p, u, v, read, aggregate):
    """Return the logits [C] of a head with a matching layer, given its reading and its aggregation of a text."""
    u, v = read(u), read(v)
    vector = []
    for ours, theirs in ((u, v), (v, u)):
        sides = enumerate(zip(ours, theirs, strict=True))
        rows = [matches(p, f"streams.{n}", own, other, whole) for n, ((own, _), (other, whole)) in sides]
        vector.append(aggregate(np.concatenate(rows, 1)))
    return affine(p, "output", np.maximum(affine(p, "hidden", np.concatenate(vector)), 0))


def bimpm(p, texts):
    """Return the logits [C] of bilateral multi-perspective matching (Wang, Hamza, Florian 2017, section 3)."""

    def read(text):
        states = bilstm(p, "reading.lstm", text)
        return list(zip(np.split(states, 2, 1), both_ends(states), strict=True))

    return matched(p, *texts, read, lambda rows: np.concatenate(both_ends(bilstm(p, "aggregation.lstm", rows))))


def bimpm_no_lstm(p, texts):
    """Return the same where the encoder's states are the one stream and their mean is the whole text."""
    last = lambda rows: np.concatenate(both_ends(bilstm(p, "aggregation.lstm", rows)))  # noqa: E731
    return matched(p, *texts, lambda text: [(text, text.mean(0))], last)


def sim_transformer(p, texts, *, layers, heads):
    """Return the same with a transformer as aggregation (Vaswani et al. 2017; Wang, Su et al. 2019)."""

    def aggregate(rows):
        x = affine(p, "widened", rows)
        x = x + np.array([position(place, x.shape[1]) for place in range(len(x))])
        for n in range(layers):
            x = transformer_layer(p, f"layers.{n}", x, heads)
        return x.mean(0)

    return matched(p, *texts, lambda text: [(text, text.mean(0))], aggregate)


def position(place, width):
    """Return the encoding of a position: sine at even, cosine at odd dimensions (Vaswani et al. 2017, section 3.5)."""
    angles = [place / 10_000 ** (2 * (k // 2) / width) for k in range(width)]
    return np.array([np.cos(angle) if k % 2 else np.sin(angle) for k, angle in enumerate(angles)])


def transformer_layer(p, name, x, heads):
    """Return x [n, h] after self-attention and a feed-forward network with ReLU, each added and normalised."""
    size = x.shape[1] // heads
    joint = x @ p[f"{name}.self_attn.in_proj_weight"].T + p[f"{name}.self_attn.in_proj_bias"]
    parts = []
    for head in range(heads):
        q, k, v = (whole[:, head * size : (head + 1) * size] for whole in np.split(joint, 3, 1))
        parts.append(softmax(q @ k.T / np.sqrt(size)) @ v)
    x = layer_norm(p, f"{name}.norm1", x + affine(p, f"{name}.self_attn.out_proj", np.concatenate(parts, 1)))
    inner = np.maximum(affine(p, f"{name}.linear1", x), 0)
    return layer_norm(p, f"{name}.norm2", x + affine(p, f"{name}.linear2", inner))


def recurrent_words(p, words, *, layers):
    """Return the states [n, 2h] of layers of BiLSTM (Huang et al. 2015; Lample et al. 2016)."""
    return bilstm(p, "recurrent.lstm", words, layers)


def highway(p, words, *, layers):
    """Return [n, 2h] of layers y = g BiLSTM(x) + (1 - g) P x (Srivastava et al. 2015, equation 3)."""
    for n in range(layers):
        gate = sigmoid(affine(p, f"layers.{n}.gate", words))
        made = bilstm(p, f"layers.{n}.recurrent.lstm", words)
        words = gate * made + (1 - gate) * (words @ p[f"layers.{n}.carried.weight"].T)
    return words


def convolved(weight, bias, rows):
    """Return [n, c] of rows [n, k] convolved by weight [c, k, kernel], zeros around them."""
    kernel = weight.shape[2]
    made = []
    for place in range(len(rows)):
        total = bias.copy()
        for tap in range(kernel):
            seen = place + tap - (kernel - 1) // 2
            if 0 <= seen < len(rows):
                total += weight[:, :, tap] @ rows[seen]
        made.append(total)
    return np.array(made)


def densenet(p, words, appended, seen):
    """Return [n, c + d]: four blocks of four convolutions, each of which reads its block's input and all before it.

    (Huang et al. 2017, equation 2; He et al. 2016; Wang et al. 2019.) `appended` [n, d] is concatenated with
    the output. Where `seen` [n] is False, convolutions read zeros.
    """
    x, real = affine(p, "narrowed", words), seen[:, None]
    for block in range(4):
        read = layer_norm(p, f"blocks.{block}.norm", x) * real
        for n in range(4):
            name = f"blocks.{block}.convolutions.{n}"
            output = np.maximum(convolved(p[f"{name}.weight"], p[f"{name}.bias"], read), 0) * real
            read = np.concatenate([read, output], 1)
        x = x + output
    return np.concatenate([x, appended], 1)


def chain_score(p, emissions, tags):
    """Return the score of a sequence of tags: start, emissions, transitions, end (Lample et al. 2016, section 2.2)."""
    score = p["chain.start"][tags[0]] + p["chain.end"][tags[-1]]
    score += sum(emission[tag] for emission, tag in zip(emissions, tags, strict=True))
    return score + sum(p["chain.transitions"][a, b] for a, b in zip(tags, tags[1:], strict=False))


def chain_likelihood(p, emissions, tags):
    """Return the log-likelihood of a sequence of tags among all that there are, counted one by one."""
    every = [chain_score(p, emissions, other) for other in product(range(emissions.shape[1]), repeat=len(tags))]
    return chain_score(p, emissions, tags) - np.log(np.exp(every).sum())
