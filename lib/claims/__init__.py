"""The papers' claims, the rules that judge them by records, and findings shown without a rule."""

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
)
from lib.claims.judging import every, findings, judge, kept, of_chapter, registered
