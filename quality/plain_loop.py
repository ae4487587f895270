"""Fine-tuning top layers or all as one writes it by hand: random batches, torch's dropout, fp32, no cache.

It shares no code with Thaw but the recipe: what trains, AdamW, rates, schedule, clipping, mean pooling, dropout 0.1.
"""

import torch
from torch.nn import functional
from transformers import AutoModel, AutoTokenizer


def fine_tune(folder, texts: list[tuple[str, ...]], labels: list[int], classes: int, seed: int, updates: int, **recipe):
    """Return predict(texts) after so many updates.

    Args: the encoder's folder; a tuple of one text or two per row; top: None trains all layers and the embeddings.
    """
    size, top = recipe.get("size", 16), recipe.get("top", 2)
    torch.manual_seed(seed)
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder)
    head = torch.nn.Linear(model.config.hidden_size, classes)
    torch.nn.init.normal_(head.weight, std=0.02), torch.nn.init.zeros_(head.bias)
    parts = [model.embeddings, *model.encoder.layer]
    count = len(parts) if top is None else top
    frozen, thawed = torch.nn.ModuleList(parts[:-count]), torch.nn.ModuleList(parts[-count:])
    model.requires_grad_(False), thawed.requires_grad_(True)
    groups = [
        {
            "params": [p for p in part.parameters() if (p.ndim > 1) == decayed],
            "lr": rate,
            "weight_decay": 0.01 * decayed,
        }
        for part, rate in ((thawed, recipe.get("rate", 2e-4)), (head, recipe.get("head_rate", 1e-3)))
        for decayed in (True, False)
    ]
    optimizer, rise = torch.optim.AdamW(groups), max(1, round(0.1 * updates))
    shares = [min((n + 1) / rise, (updates - n) / (updates - rise)) for n in range(updates)]
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: shares[min(n, updates - 1)])

    def logits(some):
        given = tokenizer(
            *map(list, zip(*some, strict=True)), padding=True, truncation=True, max_length=128, return_tensors="pt"
        )
        states, mask = model(**given).last_hidden_state, given["attention_mask"].unsqueeze(-1)
        return head(functional.dropout((states * mask).sum(1) / mask.sum(1), 0.1, model.training))

    order = [row for _ in range(-(-updates * size // len(texts)) + 1) for row in torch.randperm(len(texts)).tolist()]
    for start in range(0, updates * size, size):
        model.train(), frozen.eval()
        batch = order[start : start + size]
        loss = functional.cross_entropy(
            logits([texts[row] for row in batch]), torch.tensor([labels[row] for row in batch])
        )
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_([p for group in groups for p in group["params"]], 1.0)
        optimizer.step(), schedule.step()

    @torch.no_grad()
    def predict(some: list[tuple[str, ...]]) -> list[int]:
        model.eval()
        return [int(one) for n in range(0, len(some), 64) for one in logits(some[n : n + 64]).argmax(-1)]

    return predict
