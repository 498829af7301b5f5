"""Measuring data parallelism and sparsity: from a study's cells to records, and from records to charts."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def code(places: Iterable[str]) -> str:
    """Twelve hex digits of the modules at these places in lib, files or whole packages."""
    folder = ROOT / "lib"
    found = {file for place in places for file in (folder.rglob("*.py") if place == "." else _modules(folder / place))}
    return hashlib.sha256(b"".join(file.read_bytes() for file in sorted(found))).hexdigest()[:12]


def _modules(place: Path) -> list[Path]:
    return [place] if place.suffix == ".py" else list(place.rglob("*.py"))


def require(fine: object, field: str, value: object, allowed: str) -> None:
    """Raise ValueError that names the field, its value and what is allowed, unless all is fine."""
    if not fine:
        raise ValueError(f"{field}: {value!r} is not allowed; it must be {allowed}")


MEASURING = (
    "own.py", "methods", "workloads", "messages", "engine", "studies/cells.py", "measuring/machine.py", "measuring/one_cell.py",
)  # fmt: skip
# The code that measures, taken when lib is loaded: a later edit is not what runs.
SOURCE = code(MEASURING)
