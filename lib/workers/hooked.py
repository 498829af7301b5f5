"""What both hooks ask of gradients, of a loss scaler and of a saved state."""

import math
from collections.abc import Iterable

import torch.distributed as dist

from lib import require, require_number

MOST_NAMED = 5  # of many keys
SPARSE = "a sparse tensor, as of nn.Embedding(sparse=True)"


def require_dense(bucket: dist.GradBucket) -> None:
    """Raise ValueError if the bucket's gradient is a sparse tensor."""
    require(
        not bucket.buffer().is_sparse, "gradient", SPARSE, "dense: give the embedding sparse=False"
    )


def require_scaler(scaler: object) -> None:
    """Raise ValueError unless it is None or tells its scale, as torch.amp.GradScaler does."""
    fine = scaler is None or callable(getattr(scaler, "get_scale", None))
    require(fine, "scaler", scaler, "None or a torch.amp.GradScaler")


def scale_of(scaler: object) -> float:
    """By what the loss of this step is multiplied.  Raises ValueError for a scale that no gradient
    survives.
    """
    scale = 1.0 if scaler is None else scaler.get_scale()
    require_number(
        "scaler", scale, lambda by: 0 < by < math.inf, "one whose scale is a positive finite number"
    )
    return scale


def require_fields(field: str, saved: object, names: Iterable[str]) -> None:
    """Raise ValueError unless a part of a saved state is a dictionary with these keys and no
    others.
    """
    allowed = "what state_dict() of this hook and network gives; load another checkpoint"
    require(isinstance(saved, dict), field, saved, allowed)
    differ = sorted(map(str, set(saved) ^ set(names)))
    require(not differ, field, f"with or without {', '.join(differ[:MOST_NAMED])}", allowed)
