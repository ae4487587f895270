"""Parts of a phase with keys of their own, and what keys say whose sentence depends on others."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from thaw.core.phrases import plural
from thaw.schema.keys import ConfigModel, Key, clauses, format_value

Fraction = Annotated[float, Field(gt=0, le=1)]
BETAS = (0.9, 0.999)
CHAIN_THAW = "Chain-thaw: the head alone, then each block alone from below, at last all of them together."
OPTIMIZERS = {  # what a Methods text says of each
    "adamw": "AdamW",
    "bert_adam": "Adam without bias correction (BertAdam)",
    "lbfgs": "L-BFGS to convergence on standardised features",
}
SCHEDULES = {
    "linear": "linear decay",
    "constant": "constant learning rate",
    "cosine": "cosine decay",
    "slanted_triangular": "slanted triangular schedule",
    "plateau": "learning rate halved after each {} without a better validation score",
}


class UnfreezeConfig(ConfigModel):
    """Gradual unfreezing: training begins with the head; in stages, further layers from the top train with it."""

    layers: Annotated[
        int, Key(lambda layers, *_: f"{plural(layers, 'more layer')} from the top in each stage", unit="layers")
    ] = Field(1, ge=1, description="number of further layers in each stage")
    epochs: Annotated[int, Key(lambda epochs, *_: f"{plural(epochs, 'epoch')} per stage", unit="epochs")] = Field(
        1, ge=1, description="length of each stage but the last, which has the phase's own epochs"
    )
    updates: Annotated[int | None, Key("{} updates in each stage but the last", unit="updates")] = Field(
        None,
        ge=1,
        description="of a phase with updates: those of each stage but the last, which has the rest; null: equal shares",
    )
    restart: Annotated[
        bool, Key({False: "one schedule over all stages", True: "the schedule restarting in each stage"})
    ] = Field(False, description="restart the schedule in each stage; otherwise one schedule spans the phase")

    def meaningful(self) -> set[str]:
        """Return the keys that are read: stages have epochs or updates."""
        return set(type(self).model_fields) - ({"epochs"} if self.updates else set())

    def refused_with(self, name: str) -> str:
        """Return the setting under which a key has no meaning."""
        return f"with updates: {self.updates}"


class EarlyStoppingConfig(ConfigModel):
    """When a phase ends before its last epoch; checked after each epoch, either condition is enough."""

    gap: Annotated[
        float | None, Key("early stopping when training and validation score differ by more than {}", unit="score, 0-1")
    ] = Field(None, gt=0, description="stop when training and validation score differ by more than this")
    score: Annotated[float | None, Key("early stopping when the validation score reaches {}", unit="score, 0-1")] = (
        Field(None, description="stop when the validation score reaches this")
    )

    @model_validator(mode="after")
    def _says_something(self):
        if self.gap is None and self.score is None:
            raise ValueError("early_stopping needs gap or score, as {gap: 0.02}")
        return self


SELECTIONS = {"group_lasso": {"penalty"}, "clusters": {"correlation"}}  # the keys that each way of selecting reads


class SelectConfig(ConfigModel):
    """Which features a linear head is fitted on; which fraction of them, validation chooses."""

    by: Annotated[
        Literal["group_lasso", "clusters"],
        Key({"group_lasso": "relevance in a group lasso", "clusters": "weight, one of each cluster of neurons"}),
    ] = Field(
        description="group_lasso: by relevance in a group lasso (Head2Toe, Evci et al. 2022); clusters: one neuron of "
        "each cluster, and of these by weight (Dalvi et al. 2020)"
    )
    penalty: Annotated[float, Key("with a penalty of {} times the least one that leaves no feature")] = Field(
        0.1, gt=0, le=0.9, description="group_lasso: penalty, as a share of the least one that leaves no feature"
    )
    correlation: Annotated[float, Key("which correlate by {} or more on average")] = Field(
        0.7, gt=0, lt=1, description="clusters: least mean correlation of the neurons of a cluster, in absolute value"
    )
    fractions: Annotated[list[Fraction], Key("fraction chosen on validation among {}")] = Field(
        [0.02, 0.05, 0.1, 0.25, 0.5, 1.0],
        min_length=1,
        description="fractions of the features, of which validation chooses one",
    )

    def meaningful(self) -> set[str]:
        """Return the keys that the way of selecting reads."""
        return {"by", "fractions"} | SELECTIONS[self.by]

    def refused_with(self, name: str) -> str:
        """Return the setting under which a key has no meaning."""
        return f"with by: {self.by}"


def say_selection(select, phase, context) -> str:
    """Say which features the head is fitted on."""
    return select and f"Features selected by {', '.join(clauses(select, context))}."


def say_rate(rate, phase, context) -> str:
    """Say the learning rate, by width where it has several; where layers have rates of their own it is the head's."""
    if isinstance(rate, dict):
        (_, said), *wider = ((width, format_value(rate[width])) for width in sorted(rate))
        said += f" ({', '.join(f'{value} from width {width} on' for width, value in wider)})" if wider else ""
    else:
        said = format_value(rate)
    if phase.layer_rates:
        return "" if phase.head_rate else f"head learning rate {said}"
    return f"learning rate {said}"


def say_epochs(epochs, phase, context) -> str:
    """Say how many epochs there are, and of which part of a phase."""
    where = " in the last stage" if phase.unfreeze else " for each part" if phase.one_by_one else ""
    return plural(epochs, "epoch") + where


def say_updates(updates, phase, context) -> str:
    """Say how many updates there are, and of which part of a phase."""
    where = " in all stages together" if phase.unfreeze else " for each part" if phase.one_by_one else ""
    return plural(updates, "update") + where if updates else ""


def say_judge(judge, phase, context) -> str:
    """Say how often validation is scored on the way."""
    return f"validation scored {plural(judge, 'time')} at equal distances" if judge else ""


def say_schedule(schedule, phase, context) -> str:
    """Say how the rate falls."""
    return SCHEDULES[schedule].format(_scored_each(phase))


def say_patience(patience, phase, context) -> str:
    """Say after how long without a gain a phase ends."""
    each = _scored_each(phase)
    return patience and f"early stopping after {plural(patience, each)} without a better validation score"


def say_pick(pick, phase, context) -> str:
    """Say whose weights are kept."""
    if pick == "best":
        return f"weights of the best {_scored_each(phase)} on validation"
    return f"weights of the last {'epoch' if phase.updates is None else 'update'}"


def _scored_each(phase) -> str:
    """Return what a phase is scored after."""
    return "epoch" if phase.updates is None else "evaluation"


def say_reinit(layers, phase, context) -> str:
    """Say which layers start from random weights."""
    return f"The top {f'{layers} layers start' if layers > 1 else 'layer starts'} from random weights." * bool(layers)


def say_betas(betas, phase, context) -> str:
    """Say the constants of Adam where they are not the usual ones."""
    return f"betas {format_value(list(betas))}" if betas != BETAS else ""


def say_decay(decay, phase, context) -> str:
    """Say by how much each layer's rate is below that of the layer above."""
    return f"layer-wise learning-rate decay {format_value(decay)}" if decay < 1 else ""


def say_layer_rates(rates, phase, context) -> str:
    """Say the rates of layers that have their own."""
    return f"discriminative learning rates {format_value(rates)} from the top layer down" * bool(rates)


def say_warmup(share, phase, context) -> str:
    """Say how long the rate rises."""
    return f"warm-up ratio {format_value(share)}" if share else "no warm-up"


def say_l2(strengths, phase, context) -> str:
    """Say among which penalties one is chosen, and by what."""
    among = f"L2 penalty chosen on validation among {format_value(strengths)}"
    folds = f"by {phase.folds}-fold cross-validation over training and validation rows together"
    return f"{among} ({folds} where these are fewer than 2,000)" if phase.folds else among


def say_l2_sp(weight, phase, context) -> str:
    """Say the weight of L2-SP."""
    return f"L2-SP penalty {format_value(weight)}" if weight else ""


def say_clip(norm, phase, context) -> str:
    """Say how gradients are clipped."""
    if norm is None:
        return "no gradient clipping"
    of = "the norm of each tensor's gradient" if phase.clip_each else "gradient norm"
    return f"{of} clipped at {format_value(norm)}"


def say_inserted(insert, phase, context) -> str:
    """Say what is put into which layers."""
    if insert is None:
        return ""
    kind, where, *options = clauses(insert, context)
    return f"Inserts and trains {', '.join([f'{kind} {where}', *options])}."


def say_unfreezing(unfreeze, phase, context) -> str:
    """Say in which stages a phase unfreezes layers."""
    if unfreeze is None:
        return ""
    layers, length, *rest = clauses(unfreeze, context)
    if phase.updates is not None and unfreeze.updates is None:
        length = "all stages of equal length"
    return f"Gradual unfreezing: the head alone first, then {', '.join([layers, length, *rest])}."


def check_length(updates: int | None, judge: int | None, unfreeze: UnfreezeConfig | None) -> None:
    """Raise ValueError where evaluations or stages do not go with the length of a phase."""
    if judge and updates and judge > updates:
        raise ValueError(f"evaluations: {judge} do not fit into updates: {updates}; say {updates} or fewer")
    if unfreeze is None:
        return
    if updates is None and unfreeze.updates:
        raise ValueError("gradual_unfreezing: updates is for a phase with updates; this one has epochs, so say epochs")
    if updates is not None and "epochs" in unfreeze.model_fields_set:
        raise ValueError("gradual_unfreezing: epochs is for a phase with epochs; this one has updates, so say updates")
