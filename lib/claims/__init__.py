"""The papers' claims and the rules by which the records judge them: what a claim box and the ledger
show.
"""

from lib.claims.claim import (
    AGAINST,
    CONTRADICTED,
    FOR,
    OPEN,
    PAPERS,
    PART,
    REPRODUCED,
    STAND_INS,
    UNDECIDED,
    Claim,
    Group,
    decide,
    ratio,
    summed_up,
    unmeasured,
)
from lib.claims.judging import judge, kept, registered
