"""Speculative decoding: who drafts, how likely drafts are accepted, how many of them are worth a row. Pure Python."""

from deepinfer.speculative.confidence import AcceptanceTable
from deepinfer.speculative.cost_curve import RowCurve
from deepinfer.speculative.ngram import NgramProposer
from deepinfer.speculative.proposer import Draft, Proposer
from deepinfer.speculative.speculator import Speculator, make_speculator
from deepinfer.speculative.verify_length import choose_num_drafts, share_drafts

__all__ = [
    "AcceptanceTable",
    "Draft",
    "NgramProposer",
    "Proposer",
    "RowCurve",
    "Speculator",
    "choose_num_drafts",
    "make_speculator",
    "share_drafts",
]
