"""Measuring data parallelism and sparsity: from a study's cells to records, and from records to charts."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def code(names: Iterable[str]) -> str:
    """Twelve hex digits of these modules of lib."""
    return hashlib.sha256(b"".join((ROOT / "lib" / f"{name}.py").read_bytes() for name in names)).hexdigest()[:12]


def require(fine: object, field: str, value: object, allowed: str) -> None:
    """Raise ValueError that names the field, its value and what is allowed, unless all is fine."""
    if not fine:
        raise ValueError(f"{field}: {value!r} is not allowed; it must be {allowed}")
