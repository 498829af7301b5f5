"""Measuring data parallelism and sparsity: from a study's cells to records, and from records to charts."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
