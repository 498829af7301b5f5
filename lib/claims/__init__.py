"""What the papers say, the rules by which records judge it, and what is shown without a rule."""

from lib.claims.claim import (
    MIXED,
    MOSTLY,
    NO,
    PAPERS,
    SHOWN,
    UNCLEAR,
    UNTESTED,
    YES,
    Claim,
    Finding,
    Group,
    decide,
    ratio,
    summed_up,
    unmeasured,
)
from lib.claims.judging import every, findings, judge, kept, of_chapter, registered
