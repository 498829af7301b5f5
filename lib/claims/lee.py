"""The claims of Lee et al. (2020, 2021) and of McCandlish et al. (2018), and the rules that judge them."""

from lib.claims.verdicts import Rule

FOLLOWS = 1.5  # the residual of a curve that follows c1/B + c2, beyond what the scatter of searches explains (95 %)
SEEN = 5  # a fifth of the critical batch size takes a fifth more than c1/B, five times as much a fifth more than c2: both regimes

RULES = (
    Rule("L1", "three_regimes",
         "Across workloads there is one general trend: perfect scaling, then diminishing returns, then maximal data parallelism.",
         "In each group's median curve, the critical batch size lies over five times inside both ends of the batch sizes measured.",
         SEEN, True, "ratio",
         "For {group}, the critical batch size lies {effect} times inside the batch sizes measured, in the median curve.",
         "{times} times as many searches, {cost}", "Lee et al. 2021, abstract"),
    Rule("L2", "sparsity",
         "The trend holds irrespective of the sparsity level.",
         "At every sparsity, curves of eight or more batch sizes lie off their c₁/B + c₂ by less than a factor of 1.5.",
         FOLLOWS, False, "ratio",
         "Curves of sparse networks lie off c₁/B + c₂ by a factor of {effect} in the median, at {group}.",
         "sparse networks at eight or more batch sizes", "Lee et al. 2021, abstract of an earlier version"),
    Rule("L2b", "pruning_methods",
         "The trend between batch size and steps to result does not depend on how one prunes: no statement of theirs, who prune by "
         "connection sensitivity.",
         "For every other method, the critical batch size is within a factor of two of that after connection sensitivity.",
         2, False, "ratio",
         "The critical batch size with {group} differs from that after connection sensitivity by a factor of {effect}.",
         "{times} times as many searches of networks pruned in other ways, {cost}",
         "our question, after Lee et al. 2021"),
    Rule("L3", "sparsity",
         "Training is harder under sparsity: more steps to the same goal at every batch size.",
         "At every sparsity and every batch size, steps over the dense network's, pooled over curves, exceed one.",
         1, True, "ratio",
         "At {group}, a sparse network needs {effect} times the dense network's steps in the median.",
         "{times} times as many searches of dense and sparse networks, {cost}", "Lee et al. 2021, abstract"),
    Rule("L4", "sparsity",
         "Data parallelism in sparse training is no worse than in dense training.",
         "On every data set, the critical batch size at the highest sparsity is over half the dense one's, in the median pair.",
         0.5, True, "ratio",
         "On {group}, the critical batch size of sparse networks is {effect} times the dense network's in the median over pairs.",
         "{times} times as many searches of dense and sparse networks, {cost}",
         "Lee et al. 2021, abstract of an earlier version; Lee et al. 2020, abstract"),
    Rule("L5", "sparsity",
         "With momentum-based algorithms, perfect scaling can break at a much larger batch size for sparse networks than for dense "
         "ones.",
         "On every data set, with momentum, the critical batch size at the highest sparsity is over twice the dense one's.",
         2, True, "ratio",
         "On {group}, with momentum, the critical batch size of sparse networks is {effect} times the dense one in the median.",
         "{times} times as many searches with momentum, {cost}", "Lee et al. 2020, abstract"),
    Rule("L6", "theory",
         "Convergence theory of stochastic gradient methods accounts for the relation between batch size and steps to result. "
         "(Here: the form c₁/B + c₂, which other models share, not the values of its constants.)",
         "Predicting left-out batch sizes, c₁/B + c₂ errs by less than 1.1 times the best other form, overall and with plain SGD.",
         1.1, False, "ratio",
         "For {group}, c₁/B + c₂ predicts left-out batch sizes with {effect} times the error of the best other form.",
         "curves of eight or more batch sizes on more workloads", "Lee et al. 2021, abstract"),
    Rule("L7", "smoothness",
         "A lack of smoothness, a larger local Lipschitz constant of the gradient, accounts for the difficulty of training sparse "
         "networks. (Here: whether it is larger.)",
         "On every workload with three paths, the Lipschitz constant at the highest sparsity exceeds the dense one's.",
         1, True, "ratio",
         "On {group}, the Lipschitz constant along the fastest trials is {effect} times the dense network's in the median.",
         "{times} times as many followed trials of sparse networks, {cost}", "Lee et al. 2021, abstract"),
    Rule("M1", "theory",
         "The gradient noise scale predicts the largest useful batch size.",
         "On every workload, critical batch size and noise scale are typically less than a factor of two apart.",
         2, False, "ratio",
         "On {group}, the critical batch size and the gradient noise scale are a factor of {effect} apart.",
         "{times} times as many followed trials and searches, {cost}", "McCandlish et al. 2018, in our words"),
)  # fmt: skip
