"""Weights: the encoder that a run begins with, as it was fetched or after further pretraining. No torch."""

from dataclasses import dataclass

from thaw.core import layout
from thaw.core.errors import UserError
from thaw.core.phrases import listing
from thaw.planning.jobs import Result
from thaw.schema.catalogue import Catalogue
from thaw.schema.strategy import StrategyConfig


@dataclass(frozen=True)
class InitialWeights:
    """An encoder's id; after further pretraining also the id of that, and of the corpus whose text it read."""

    encoder: str
    further: str = ""
    corpus: str = ""
    needs = ()  # what is read to make them is no run

    @property
    def key(self) -> str:
        """The name of its folder, and of its job: `minilm`, or `minilm.task_text.trec`."""
        return layout.weights(self.encoder, self.further, self.corpus)

    @property
    def names(self) -> dict[str, str]:
        return {"encoder": self.encoder, "further": self.further, "corpus": self.corpus}

    @property
    def step(self) -> str:
        return "pretrain" if self.further else "fetch"

    @property
    def result(self) -> Result:
        return Result(self.step, self.key)


def initial_weights(
    catalogue: Catalogue, strategy: StrategyConfig, encoder: str, task: str, place: str
) -> InitialWeights:
    """Return the weights that a run of a strategy without `after:` begins with.

    Args: ids of encoder and task; place of the strategy. Raises UserError for an encoder that nothing can be masked in.
    """
    if strategy.origin is None:
        return InitialWeights(encoder)
    entry = catalogue.get("further_pretraining", strategy.origin, f"{place}.from")
    kind, layers = (getattr(catalogue.get("encoders", encoder, "encoders"), key) for key in ("kind", "layers"))
    if kind != "transformers":
        raise UserError(f"{place}.from: {encoder} is of kind {kind}; tokens are masked for kind transformers alone")
    try:
        shape = entry.kept(layers)
    except UserError as error:
        raise UserError(f"{catalogue.place('further_pretraining', strategy.origin)}: {error}") from error
    if shape:
        _check_student(strategy, shape[0], layers, f"{place}.from: {strategy.origin}")
    return InitialWeights(encoder, strategy.origin, catalogue.get("tasks", task, "tasks").corpus)


def _check_student(strategy: StrategyConfig, kept: list[int], layers: int, place: str) -> None:
    """Raise UserError for a strategy that does not keep the layers, and only these, that were pretrained further."""
    own = strategy.student
    fixed = own and not any(isinstance(number, str) for number in (own.layers, own.top))
    if not own or not fixed or own.shape(layers, {}) != (kept, {}):
        raise UserError(
            f"{place} has trained layers {listing(map(str, kept))} alone; say student: {{layers: {kept}}}, without "
            "start:"
        )
