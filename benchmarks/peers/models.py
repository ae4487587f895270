"""The models that a Trainer is given: transformers' own classifier, or a head of one's own on a frozen encoder.

B examples, T tokens, d width, C classes.
"""

from torch import nn
from torch.nn import functional
from transformers import AutoModel, AutoModelForSequenceClassification


class FirstToken(nn.Module):
    """An encoder, dropout, and a matrix on its first token, or one with a hidden layer of 300 below it."""

    def __init__(self, folder: str, classes: int, hidden: bool):
        """Load the encoder and make the head."""
        super().__init__()
        self.bert = AutoModel.from_pretrained(folder, add_pooling_layer=False)
        self.head = head(self.bert.config.hidden_size, classes, hidden)

    def forward(self, input_ids, attention_mask, token_type_ids=None, labels=None):
        """Return loss and logits [B, C]; a Trainer drops columns that have no name here."""
        states = self.bert(input_ids, attention_mask, token_type_ids).last_hidden_state
        logits = self.head(states[:, 0])
        return {"loss": None if labels is None else functional.cross_entropy(logits, labels), "logits": logits}


def head(width: int, classes: int, hidden: bool, size: int = 300) -> nn.Module:
    """Return a head on vectors [B, d], as Thaw's linear and mlp are: dropout before each matrix."""
    below = [nn.Dropout(0.1), nn.Linear(width, size), nn.ReLU()] if hidden else []
    last = nn.Linear(size if hidden else width, classes)
    nn.init.normal_(last.weight, std=0.02)
    nn.init.zeros_(last.bias)
    return nn.Sequential(*below, nn.Dropout(0.1), last)


def build(kind: str, folder: str, classes: int) -> nn.Module:
    """Return the model of a cell: `pooler` is transformers' own classifier, `linear` and `mlp` are FirstToken."""
    if kind == "pooler":
        return AutoModelForSequenceClassification.from_pretrained(folder, num_labels=classes)
    return FirstToken(folder, classes, kind == "mlp")


def with_lora(model: nn.Module, phase: dict) -> nn.Module:
    """Return transformers' own classifier with PEFT's LoRA in a phase's layers: those matrices and the head train."""
    from peft import LoraConfig, get_peft_model

    lora = phase["lora"]
    config = LoraConfig(
        r=lora["rank"],
        lora_alpha=lora["alpha"],
        target_modules=["query", "value"],
        layers_to_transform=phase["layers"],
        modules_to_save=["pooler", "classifier"],
    )
    return get_peft_model(model, config)


def thaw(model: nn.Module, components: list[str]) -> None:
    """Let the named components train and nothing else: "head", "embeddings", "layer.1" to "layer.L"."""
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(component(name) in components)


def component(name: str) -> str:
    """Return the component that a parameter of a BERT belongs to; the pooler belongs to the head."""
    words = name.split(".")
    if words[0] != "bert" or words[1] == "pooler":
        return "head"
    return "embeddings" if words[1] == "embeddings" else f"layer.{int(words[3]) + 1}"
