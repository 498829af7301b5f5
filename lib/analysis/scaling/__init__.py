"""From trials to curves: steps to result with its interval, regimes, and the fit K* = c1/B + c2.

Works on the table of `lib.measuring.sweeps.results` (a row per trial) and measures nothing itself.  The unit is the search: a
point is the geometric mean of K* over its searches, an interval Student's t over them.
"""

from lib.analysis.scaling.draws import (
    DRAWS,
    REDRAWN,
    Curve,
    curve_from,
    curve_of,
    pair,
    ranged,
    ranges,
    redrawn,
    span_of,
    together,
    wilson,
)
from lib.analysis.scaling.fits import FAR, Hyperbola, check_points, fit_hyperbola, on_one_line
from lib.analysis.scaling.pairs import (
    DENSEST,
    SMALLEST,
    against_dense,
    against_sensitivity,
    at_equal_steps,
    beside,
    cost_of_sparsity,
    either_way,
    middle,
    pooled,
    ratios,
    relative,
    steps_over_dense,
    steps_ratio,
)
from lib.analysis.scaling.rules import (
    BEFORE,
    DIMINISHING,
    MAXIMAL,
    PERFECT,
    TOLERANCE,
    Regimes,
    label,
    regimes,
)
from lib.analysis.scaling.steps import (
    CELL,
    CURVE,
    LEVELS,
    LONG,
    ONE_SPLIT,
    PROTOCOL,
    SCATTER,
    SEARCH,
    across_replicates,
    all_goals,
    apart,
    at_every_goal,
    at_goal,
    at_goals,
    at_shared_goals,
    best_of_k,
    best_of_k_pmf,
    curve_names,
    goals,
    independent,
    kind_of,
    ladders,
    mixed,
    of_sizes,
    on_ladder,
    scatter_of,
    shared_goals,
    sparsest,
    steps_to_result,
    unmet,
    well_met,
)
from lib.analysis.scaling.table import of_searches, summaries
