"""The claims of Shallue et al. (2019) and the rules by which the records judge them."""

from __future__ import annotations

import numpy as np
import pandas as pd

from lib.analysis import scaling
from lib.claims.verdicts import FAILS, HOLDS, OPEN, PART, SUMMARISED, by_chance, claim, each, title, told
from lib.wording import named, number, span


def rules(spread: pd.DataFrame, powers: pd.DataFrame) -> dict:
    """C10 of Shallue et al.; spread: of `rules.costs`, without the size at which the rules start; beyond is judged, which is
    free of the luck of tuned winners.  powers: of `rules.exponents`, of the same workloads: the best rate has to rise.
    """
    followed = spread[spread.rule.isin(["linear rule", "square-root rule"]) & ~spread.base.astype(bool)]
    worst = followed.groupby("rule").beyond.max()
    told = [
        f"{title(name)}: " + ", ".join(f"the {rule} at {_followed(own)}" for rule, own in rows.groupby("rule", sort=False))
        for name, rows in followed.groupby("workload", sort=False)
    ]
    known = powers[powers.workload.isin(followed.workload)]
    rise, rest = (
        [f"{title(r.workload)}: {r.power:.2f} ({span((r.low, r.high))})" for r in rows.itertuples()]
        for rows in (known, powers.drop(known.index))
    )
    elsewhere = f"Where no rule was retrained{each(rest)} " if rest else ""
    rises = len(known) > 0 and (known.low > 0).all()
    return claim(
        "The best effective learning rate rises with the batch size but follows neither the linear nor the square-root rule "
        "consistently.",
        f"It grows as this power of the batch size (5–95 %){each(rise)} {elsewhere}"
        f"A rule fails where it takes more than twice the tuned steps (in brackets: retraining apart), and one such batch size is "
        f"enough for it not to be followed"
        f"{each(told)}",
        OPEN if len(worst) < 2 else HOLDS if rises and (worst > 2).all() else PART if rises or (worst > 2).any() else FAILS,
        SUMMARISED,
    )


def _followed(own: pd.DataFrame) -> str:
    """At how many batch sizes one rule fails, and at which it misses the goal, in words."""
    lost = ", ".join(f"{b:,}" for b in own.batch_size[np.isinf(own.beyond)])
    missed = f", and misses the goal at batch size {lost}" if lost else ""
    return f"{(own.over > 2).sum()} ({(own.beyond > 2).sum()}) of {len(own)} batch sizes{missed}"


def goals_shift(pairs: pd.DataFrame, together: tuple[float, float, float]) -> dict:
    """C2; pairs: of `families.easy_over_hard`; together: `scaling.middle` of their draws."""
    low, middle, high = together
    moved = ((pairs.bend_low > 2) | (pairs.bend_high < 0.5)).sum() if len(pairs) else 0
    earlier, later = ((pairs.bend_high < 1).sum(), (pairs.bend_low > 1).sum()) if len(pairs) else (0, 0)
    return claim(
        "Another goal error shifts the curve up or down; the transitions between its regimes stay.",
        f"{len(pairs)} curves of dense networks at the easiest and the hardest goal of their ladders: the bend at the easiest is "
        f"{number(middle)} times ({span((low, high))}) that at the hardest in the median over curves; single ranges lie below it "
        f"for {earlier} and above for {later}. To hold, the range of the median has to stay within a factor of two and reach one, "
        f"and some part of every single range has to stay within a factor of two ({moved} do not).",
        OPEN if not len(pairs) else FAILS if high < 0.5 or low > 2 else OPEN if low < 0.5 or high > 2
        else PART if moved or not low <= 1 <= high else HOLDS,
        SUMMARISED,
    )  # fmt: skip


EQUAL = (0.8, 1.25)  # ratios of steps that count as none


def momentum_extends(pairs: pd.DataFrame, bend: tuple[float, ...], steps: tuple[float, ...]) -> dict:
    """C7; pairs: of `families.over_sgd`; bend, steps: `scaling.middle` of their draws."""
    told = [
        f"{title(r.workload)}, {named(r.algorithm)}, {r.sizes} batch sizes: {number(r.bend)} "
        f"({span((r.bend_low, r.bend_high))})"
        for r in pairs.itertuples()
    ]
    smallest = span((pairs.smallest.min(), pairs.smallest.max())) if len(pairs) else "—"
    return claim(
        "Momentum and Nesterov momentum extend perfect scaling to larger batches than SGD; at small batches all three are equal.",
        f"Bend over that of SGD, dense networks{each(told)} In the median over pairs {number(bend[1])} "
        f"({span(bend[::2])}). At the smallest batch of each pair ({smallest} examples) SGD takes {number(steps[1])} times the "
        f"steps ({span(steps[::2])}); to count as equal, this range has to lie within {span(EQUAL)}.",
        OPEN if not len(pairs) or bend[0] <= 1 <= bend[2] else FAILS if bend[2] < 1
        else HOLDS if EQUAL[0] <= steps[0] and steps[2] <= EQUAL[1] else PART,
        SUMMARISED,
    )  # fmt: skip


def kinds_differ(effects: pd.DataFrame) -> dict:
    """C5; effects: of `families.effects`, families that change the kind of network."""
    apart = ((effects.ratio_low > 1) | (effects.ratio_high < 1)).sum()
    alike = ((effects.ratio_low > EQUAL[0]) & (effects.ratio_high < EQUAL[1])).sum()
    chance = by_chance(apart, len(effects))
    return claim(
        "The kind of network changes the largest useful batch size at equal data and goal.",
        f"Bend of a convolutional network over that of a fully connected one, at batch sizes both have{told(effects)} As many "
        f"ranges as leave out one ({apart}) would by chance with probability {chance:.2g}.",
        OPEN if not len(effects) or chance > 0.05 and alike < len(effects)
        else HOLDS if apart == len(effects) else PART if apart else FAILS,
        SUMMARISED,
    )  # fmt: skip


def small_batches_diverge(trials: pd.DataFrame) -> dict:
    """C15; trials: run to their budgets, of one search space at every batch size, compared within equal steps."""
    told, found = [], []
    for name, own in trials.groupby("workload", sort=False) if len(trials) else ():
        steps = int(own.groupby("batch_size").max_steps.max().min())
        lost = own.status.eq("infeasible") & (own.last_step <= steps)
        ends = [(b, own.batch_size == b) for b in (own.batch_size.min(), own.batch_size.max())]
        few, many = (scaling.wilson(lost[at].sum(), at.sum()) for _, at in ends)
        found.append(int(few[0] > many[1]) - int(many[0] > few[1]))
        parts = (f"{lost[at].sum()} of {at.sum()} at batch size {b:,} ({(lost & own.cause.eq('diverged'))[at].sum()} diverged)"
                 for b, at in ends)  # fmt: skip
        told.append(f"{title(name)}, {steps:,} steps: {', '.join(parts)}")
    return claim(
        "In a broad search space more trials fail at small batches than at large ones: with Nesterov momentum on CIFAR-10, 108 of "
        "273 at batch size 2 and 31 of 190 at 4,096, in spaces that vary with the batch size.",
        f"Trials that diverged or died within as many steps at either batch size, of one space{each(told)} "
        f"The 95 % ranges are apart for {sum(map(abs, found))} of {len(found)}.",
        OPEN if not any(found) else HOLDS if min(found) == 1 else FAILS if max(found) < 1 else PART,
        "Shallue et al. 2019, released data",
    )


def limits_differ(bends: pd.DataFrame) -> dict:
    """C4 of Shallue et al.; bends: of `families.bends`; bends outside the batch sizes measured do not count."""
    bends = bends[bends.identified].drop_duplicates(["workload", "algorithm", "goal"]) if len(bends) else bends
    factor = bends.critical.max() / bends.critical.min() if len(bends) else np.nan
    apart = bends.critical_low.max() / bends.critical_high.min() if len(bends) else np.nan
    alike = scaling.by_chance(bends.curves) if len(bends) else np.nan
    return claim(
        "The largest useful batch size varies a great deal between workloads.",
        f"{len(bends)} curves of dense networks that bend within the batch sizes measured: bends differ by a factor of "
        f"{number(factor)}, and by {number(apart)} between the near ends of the ranges farthest apart; as many curves of one bend, "
        f"with ranges like these, would differ by less than {number(alike)} nineteen times out of twenty.",
        OPEN if not factor > alike else HOLDS if apart >= 4 else PART,
        "Shallue et al. 2019, abstract",
    )


def no_rule_for_size(effects: pd.DataFrame) -> dict:
    """C6; effects: of `families.effects`, of which those that change width or depth count, each kind by itself.

    A range of 5 to 95 % leaves out one by chance in a tenth of the families without any effect: as many prove nothing.
    """
    kinds = [effects[effects.family.str.contains(names)] for names in ("width|fully connected", "depth")]
    signs = [set(np.sign(np.log(own.ratio[(own.ratio_low > 1) | (own.ratio_high < 1)]))) for own in kinds]
    own, clear = pd.concat(kinds), sum(((k.ratio_low > 1) | (k.ratio_high < 1)).sum() for k in kinds)
    split = [name for name, sign in zip(("width", "depth"), signs) if len(sign) == 2]
    minority = min((own.ratio_low > 1).sum(), (own.ratio_high < 1).sum())
    chance = by_chance(clear, len(own))
    return claim(
        "Width and depth change the largest useful batch size, but not in the same direction in all families.",
        f"Bend of the largest member over that of the smallest, at batch sizes both have{told(own)} {clear} of {len(own)} "
        f"ranges leave one out, which as many would by chance with probability {chance:.2g}; families of one kind "
        f"contradict each other in {' and '.join(split) or 'neither width nor depth'}.",
        OPEN if len(own) < 2 or chance > 0.05 else HOLDS if split and by_chance(minority, len(own), 0.05) <= 0.05
        else FAILS if clear == len(own) and not split else PART,
        SUMMARISED,
    )


def data_size(effects: pd.DataFrame) -> dict:
    """C8; effects: of `families.effects`, families of fractions of a data set."""
    certain = (effects.ratio_low > 0.5) & (effects.ratio_high < 2)
    outside = (effects.ratio_low > 2) | (effects.ratio_high < 0.5)
    return claim(
        "The size of the data set hardly changes the largest useful batch size: fractions of MNIST have nearly the same curve.",
        f"Bend with all data over that with an eighth, at batch sizes both have{told(effects)} {certain.sum()} of "
        f"{len(effects)} ranges lie within a factor of two and {outside.sum()} beyond it; the others decide nothing.",
        OPEN if not (certain | outside).any() else HOLDS if certain.all() else FAILS if not certain.any() else PART,
        SUMMARISED,
    )


def region(share: pd.DataFrame) -> dict:
    """C12; share: of `budgets.shares`.  Workloads with five batch sizes count; all of them must agree."""
    told, found = [], []
    for name, own in share.groupby("workload", sort=False) if len(share) else ():
        kinds = {kind: rows.sort_values("batch_size") for kind, rows in own.groupby("kind")}
        if len(kinds) < 2 or min(map(len, kinds.values())) < 5:
            continue
        grow, shrink = kinds["fixed steps"], kinds["fixed epochs"]
        found.append(grow.low.iloc[-1] > grow.high.iloc[0])
        found.append(shrink.high.iloc[-1] < shrink.low.iloc[0])
        shares = "; ".join(
            f"{kind}, {r.share.iloc[0]:.0%} at batch size {r.batch_size.iloc[0]:,} and {r.share.iloc[-1]:.0%} at "
            f"{r.batch_size.iloc[-1]:,}"
            for kind, r in kinds.items()
        )
        told.append(f"{title(name)}: {shares}")
    return claim(
        "The region of metaparameters that reach the goal grows with the batch size at fixed steps and shrinks at fixed epochs.",
        f"Share of the trials that reach the goal{each(told)}",
        OPEN if not found else HOLDS if all(found) else PART if any(found) else FAILS,
        SUMMARISED,
    )


GONE = 0.01  # of the validation error: what is left of a difference that counts as none


def budget_decides(ladders: dict[str, tuple[pd.DataFrame, pd.DataFrame]], enough: dict[str, tuple[bool, bool]]) -> dict:
    """C13; workload -> validation error with its range by batch_size and budget, of steps and of examples (`budgets.ladders`).

    The difference between the smallest and the largest batch is left where their ranges, each widened by what its validation
    set leaves open, do not meet, and gone where they cannot be further apart than GONE.  enough: of `budgets.enough`: what
    the largest budgets leave is judged where they are large.  Workloads with five batch sizes count; all of them must agree.
    """

    def ends(best: pd.DataFrame, column: str, pick) -> pd.DataFrame:
        """The rows of the smallest and the largest batch size, at one budget."""
        own = best[best[column] == pick(best[column])].sort_values("batch_size")
        return own.iloc[[0, -1]]

    def doubt(two: pd.DataFrame) -> float:
        return float(np.hypot(*two.unsure))

    def apart(two: pd.DataFrame) -> int:
        """-1, 1: the smallest, the largest batch has the lower error; 0: their ranges meet."""
        small, large = two.iloc[0], two.iloc[1]
        return int(large.high + doubt(two) < small.low) - int(small.high + doubt(two) < large.low)

    def left(two: pd.DataFrame) -> bool | None:
        """Whether a difference is; None if the ranges do not tell."""
        small, large = two.iloc[0], two.iloc[1]
        gone = max(small.high - large.low, large.high - small.low) + doubt(two) <= GONE
        return False if gone else True if apart(two) else None

    right, kept, told, brief = [], [], [], []
    for name, kinds in ladders.items():
        if min(best.batch_size.nunique() if len(best) else 0 for best in kinds) < 5:
            continue
        columns = list(zip(kinds, ("budget", "examples"), strict=True))
        early, late = ([ends(*kind, pick) for kind in columns] for pick in (min, max))
        right += [apart(early[0]) == 1, apart(early[1]) == -1]
        kept += [left(two) for two, large in zip(late, enough[name]) if large]
        brief += [f"{title(name)} ({kind})" for kind, large in zip(("steps", "epochs"), enough[name]) if not large]
        shown = [
            " and ".join(span((round(100 * r.low, 1), round(100 * r.high, 1))) for r in two.itertuples())
            for two in (*early, *late)
        ]
        told.append(f"{title(name)}: {shown[0]} (steps), {shown[1]} (epochs); largest {shown[2]}, {shown[3]}")
    clear = right + [one is False for one in kept]
    found = (
        "Validation error in per cent at the smallest and the largest batch (5–95 %), within the smallest budget of steps, that "
        f"of epochs, and the largest of either{each(told)} Of the {len(kept)} differences at budgets that are large enough, "
        f"{kept.count(False)} are below {100 * GONE:g} point with the standard errors of both validation errors, "
        f"{kept.count(True)} are left beyond these; the others are undecided. The largest is not large enough to be judged, "
        f"since the batch that has seen least still gains: {', '.join(brief) or 'nowhere'}."
    )
    return claim(
        "A budget of steps favours large batches, one of epochs small batches; with a large enough budget the difference goes.",
        found if told else "Fewer than five batch sizes are measured.",
        OPEN if not told else HOLDS if kept and all(clear) else PART if 2 * sum(clear) > len(clear) else FAILS,
        SUMMARISED,
    )


def no_accuracy_lost(steps: dict[str, tuple[float, float, float]], epochs: dict, settled: list[str]) -> dict:
    """C14; workload -> `budgets.slope` within the largest step budget, by which it is judged, and the largest of epochs.

    settled: of `budgets.slopes`.  Elsewhere the smallest batch has not had its steps, which favours the claim, so that only
    a loss counts there.
    """
    steps, beside = ({w: s for w, s in found.items() if np.isfinite(s[0])} for found in (steps, epochs))
    known, early = ({w: s for w, s in steps.items() if (w in settled) == done} for done in (True, False))
    told, short, less = (
        [f"{title(w)}: {100 * s[0]:+.2f} ({100 * s[1]:+.2f} to {100 * s[2]:+.2f})" for w, s in found.items()]
        for found in (known, early, beside)
    )
    worse, early_loss = ([w for w, s in found.items() if s[1] > 0] for found in (known, early))
    sharp = [w for w, s in known.items() if s[2] < 0.002]  # a fifth of a point per doubling: two points over ten
    return claim(
        "There is no evidence that larger batch sizes degrade out-of-sample performance.",
        f"Points of test error per doubling of the batch, at the largest step budget (95 %), where the smallest batch gains no "
        f"more from the last doubling of its steps{each(told, 'no workload')} To hold, all ranges must end below 0.2. Where it "
        f"still gains, which favours the claim, only a loss would count{each(short, 'none')} Not judged: "
        f"the largest budget of epochs, in which larger batches take fewer steps{each(less)}",
        FAILS
        if worse and len(worse) == len(known)
        else PART
        if worse or early_loss
        else HOLDS
        if len(sharp) == len(known) > 0
        else OPEN,
        "Shallue et al. 2019, abstract",
    )


def smoothing_helps(rates: dict[tuple[str, float], tuple[float, float, float]]) -> dict:
    """C9; rates: (workload, smoothing) -> change per doubling of the test error that smoothing saves (`budgets.helped`)."""
    known = {k: r for k, r in rates.items() if np.isfinite(r[0])}
    told = [
        f"{title(w)}, {share:g}: {100 * r[0]:+.2f} ({100 * r[1]:+.2f} to {100 * r[2]:+.2f})"
        for (w, share), r in known.items()
    ]
    up, down = (sum(test) for test in ([r[1] > 0 for r in known.values()], [r[2] < 0 for r in known.values()]))
    return claim(
        "Label smoothing helps more at large batch sizes.",
        f"Points of test error that smoothing saves, per doubling of the batch (95 %){each(told)} The range lies "
        f"above zero for {up} of {len(known)} and below for {down}.",
        OPEN if not up + down else HOLDS if up == len(known) else FAILS if not up else PART,
        SUMMARISED,
    )
