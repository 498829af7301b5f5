"""A model that returns a dictionary of loss and logits, as in Hugging Face; the metric is F1."""

import torch
from torch import nn
from torch.utils.data import DataLoader

from lib.own import Metric, Training

WORDS, LENGTH = 20, 8


class Classifier(nn.Module):
    """Classifies a sentence by the mean of its words' embeddings."""

    def __init__(self):
        super().__init__()
        self.words, self.head = nn.Embedding(WORDS, 16, padding_idx=0), nn.Linear(16, 2)

    def forward(self, input_ids, attention_mask, labels=None):
        shown = attention_mask[..., None].float()
        logits = self.head((self.words(input_ids) * shown).sum(1) / shown.sum(1))
        loss = None if labels is None else nn.functional.cross_entropy(logits, labels)
        return {"loss": loss, "logits": logits}


def f1(outputs, targets):
    """The F1 score of class 1, from the outputs and targets of the whole validation set."""
    said = outputs.argmax(1)
    both = ((said == 1) & (targets == 1)).sum()
    return 2 * both / ((said == 1).sum() + (targets == 1).sum()).clamp(min=1)


def sentences() -> list[dict]:
    draw, rows = torch.Generator().manual_seed(0), []
    for length in torch.randint(3, LENGTH + 1, (500,), generator=draw).tolist():
        ids = torch.randint(1, WORDS, (length,), generator=draw)
        label = int((ids % 2).sum() * 2 > length)
        rows.append({"input_ids": ids, "label": label})
    return rows


def collate(batch: list[dict]) -> dict:
    """Padded to the longest sentence."""
    ids = nn.utils.rnn.pad_sequence([one["input_ids"] for one in batch], batch_first=True)
    return {"input_ids": ids, "attention_mask": ids > 0, "labels": torch.tensor([one["label"] for one in batch])}


def dictionaries() -> Training:
    every = sentences()

    def train(batch_size: int, seed: int) -> DataLoader:
        order = torch.Generator().manual_seed(seed)
        return DataLoader(every[:400], batch_size, shuffle=True, generator=order, drop_last=True, collate_fn=collate)

    return Training(
        model=Classifier,
        train=train,
        examples=400,
        validation=lambda batch_size, seed: DataLoader(every[400:], batch_size, collate_fn=collate),
        loss=lambda model, batch: model(**batch)["loss"],
        metric=Metric(f1, "F1", highest=1.0, whole=True),
        goals=(0.95, 0.9, 0.85),
        title="Sentences in dictionaries",
        max_steps=2_000,
    )
