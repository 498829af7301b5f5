"""Products of many small matrices whose bits do not hang on how many there are."""

from __future__ import annotations

SIDE = 16  # float32 numbers in a cache line


def aligned(m):
    """m [T, rows, columns] with rows and columns of zeros added, to multiples of 16.

    Each matrix then begins where a cache line does; elsewhere the library sums small products in
    another order, and a trial's weights would hang on which others still train.
    """
    from torch.nn import functional as F  # slow to import, and reading records does without

    rows, columns = (-side % SIDE for side in m.shape[1:])
    return F.pad(m, (0, columns, 0, rows)) if rows or columns else m
