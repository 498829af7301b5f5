"""From trials to curves: steps to result with intervals, regimes, forms, critical batch sizes.

Works on the table of `lib.records.results.read` (a row per trial) and measures nothing itself.  The
unit is the search.
"""

from lib.analysis.scaling.curve import (
    ENOUGH,
    LEVEL,
    Curve,
    Effect,
    alike,
    critical,
    critical_ratio,
    curve_of,
    curves,
    drawn,
    draws,
    estimate,
    less,
    mean_of,
    mean_steps_ratio,
    paired,
    share,
    span_of,
    steps_ratio,
)
from lib.analysis.scaling.ratios import ladders, pooled, shared_ratio
from lib.analysis.scaling.steps import (
    CURVE,
    GOALS,
    ONE_SPLIT,
    POINT,
    SCATTER,
    SEARCH,
    WITHIN_BUDGETS,
    apart,
    at_every_goal,
    at_goal,
    at_goals,
    best_of_k,
    curve_names,
    fitting,
    goal,
    goals,
    steps_to_result,
)
from lib.analysis.scaling.table import (
    TOLERANCE,
    across_replicates,
    all_goals,
    beside,
    by_curve,
    dense_key,
    of_searches,
    sparsest,
    steps_over_dense,
    summaries,
    tests_of_form,
    with_partner,
    with_perfect,
)
