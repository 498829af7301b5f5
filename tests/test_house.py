"""The code stays thin: what is counted here may fall, never rise.

Thin means few ideas, so syntax nodes count, not lines, which can be packed. A limit goes down with the code that it holds.
"""

import ast
import statistics

import pytest

from benchmarks.size import densities, syntax_nodes
from lib import ROOT

LIMITS = {  # files, syntax nodes; nodes a line in functions of eight lines or more: median, 95 %, most; lines over 100 characters
    "lib/**/*.py": (103, 122_650, 13.5, 18.6, 21.4, 1),
    "chapters/*/*.py": (122, 116_500, 14.0, 19.2, 23.9, 80),
    "tests/*.py": (65, 118_600, 16.2, 23.4, 29.8, 408),
}


def measured(pattern):
    files = [file for file in ROOT.glob(pattern) if file.parent.name != "own"]  # examples, whose records hold their digests
    sources = [file.read_text(encoding="utf-8") for file in files]
    dense = sorted(density for source in sources for density in densities(source))
    wide = sum(len(line) > 100 for source in sources for line in source.splitlines())
    total = sum(syntax_nodes(ast.parse(source)) for source in sources)
    return len(sources), total, statistics.median(dense), dense[int(0.95 * len(dense))], dense[-1], wide


@pytest.mark.parametrize("pattern", LIMITS)
def test_the_code_is_no_thicker_than_it_was(pattern):
    assert all(value <= limit for value, limit in zip(measured(pattern), LIMITS[pattern], strict=True)), measured(pattern)
