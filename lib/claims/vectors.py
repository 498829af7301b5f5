"""Claims on the vectors that Top-k compresses, which are judged by networks: vectors of one run are
no repeats.
"""

from lib.claims.claim import share
from lib.claims.names import title
from lib.probes import portraits

PRICE = "two more seeds of every network"
DEPENDENT = "vectors of one run are no independent repeats"


def fed():
    """Vectors of Top-k with feedback at the authors' density, a row each (`portraits.shapes`)."""
    planned = (
        p
        for p in portraits.PORTRAITS
        if p.density == 0.001 and p.compressor == "top-k" and p.feedback
    )
    return portraits.shapes(portraits.results(tuple(planned)))


def most_vectors(met, workloads):
    """The networks on which a condition is met by most vectors of their run, of all networks; each
    network's count as a note.
    """
    by = met.groupby(workloads, sort=False)
    counts = "; ".join(f"{title(name)}: {own.sum()} of {len(own)} vectors" for name, own in by)
    return [
        share(
            f"{by.ngroups} networks, a run each",
            int((by.mean() > 0.5).sum()),
            by.ngroups,
            True,
            counts,
        )
    ]
