"""The draft policy of an engine: a proposer, and the choice of what is worth verifying."""

from __future__ import annotations

from collections.abc import Sequence

from deepinfer.config import SpeculativeConfig
from deepinfer.config.speculative import MAX_DRAFT_TOKENS
from deepinfer.cost import StepCost, StepLoad
from deepinfer.request import Request
from deepinfer.speculative.cost_curve import RowCurve
from deepinfer.speculative.ngram import NgramProposer
from deepinfer.speculative.proposer import Draft, Proposer
from deepinfer.speculative.verify_length import choose_num_drafts, compute_min_survival, share_drafts

# Where nothing seems worth verifying, now and then something is, lest a curve measured in a bad moment stays for ever.
_TRIAL_INTERVAL = 64
_TRIAL_SURVIVAL = 0.5


class Speculator:
    """Implements `scheduler.DraftPolicy`."""

    def __init__(self, proposer: Proposer, num_draft_tokens: int | None) -> None:
        """`num_draft_tokens` None chooses step by step."""
        self.curve = RowCurve()
        self._proposer = proposer
        self._num_draft_tokens = num_draft_tokens
        self._pair_seconds = 0.0
        self._num_steps_without = 0

    @property
    def max_draft_tokens(self) -> int:
        """Drafts that one request gets at most."""
        return self._num_draft_tokens or MAX_DRAFT_TOKENS

    @property
    def chooses_lengths(self) -> bool:
        """Whether the number of drafts follows from step times."""
        return self._num_draft_tokens is None

    def propose(self, requests: Sequence[Request], max_rows: int, cost: StepCost) -> dict[str, list[int]]:
        """Drafts worth verifying; see `DraftPolicy`."""
        max_tokens = self.max_draft_tokens
        row_seconds: list[float] = []
        context_seconds = min_survival = 0.0
        is_trial = self._num_steps_without == _TRIAL_INTERVAL - 1
        if self._num_draft_tokens is None:
            row_seconds = self.curve.row_seconds(cost)
            self._pair_seconds = cost.decode_pair_seconds
            num_pairs = sum(request.num_computed_tokens for request in requests)
            context_seconds = self._pair_seconds * num_pairs / self.curve.slowness
            total = row_seconds[min(len(requests), len(row_seconds) - 1)] + context_seconds
            least = self.curve.least_row_seconds(len(requests))
            min_survival = _TRIAL_SURVIVAL if is_trial else compute_min_survival(least, total, len(requests))
        guessed: list[tuple[Request, Draft]] = []
        for request in requests:
            draft = self._proposer.propose(request, max_tokens, min_survival)
            if draft is not None:
                guessed.append((request, draft))
        survivals = [draft.survivals for _, draft in guessed]
        if self._num_draft_tokens is not None:
            counts = share_drafts([[1.0] * len(values) for values in survivals], max_rows)
        else:
            counts = self._choose_counts(
                survivals, row_seconds, context_seconds, len(requests), max_rows, is_trial=is_trial
            )
        return {
            request.request_id: draft.token_ids[: draft.num_pending + count]
            for (request, draft), count in zip(guessed, counts, strict=True)
            if count
        }

    def observe_tokens(self, request: Request, num_new_tokens: int) -> None:
        """Judge the last guess."""
        self._proposer.observe(request, num_new_tokens)

    def observe_step(self, load: StepLoad, num_requests: int, seconds: float) -> None:
        """Learn what rows take."""
        if load.num_prefill_tokens == 0 and num_requests:
            self.curve.observe(load.num_decode_rows, seconds, self._pair_seconds * load.num_decode_pairs)

    def forget(self, request: Request) -> None:
        """Drop what is kept for a request."""
        self._proposer.forget(request.request_id)

    def _choose_counts(
        self,
        survivals: list[list[float]],
        row_seconds: list[float],
        context_seconds: float,
        num_requests: int,
        max_rows: int,
        *,
        is_trial: bool,
    ) -> list[int]:
        if is_trial:
            self._num_steps_without = 0
            return share_drafts([values[:1] for values in survivals], min(max_rows, 1 + num_requests // 4))
        # Requests without a guess have a row and a sure token as well.
        without_guess: list[list[float]] = [[]] * (num_requests - len(survivals))
        num_drafts = choose_num_drafts([*survivals, *without_guess], row_seconds, context_seconds, max_rows)
        self._num_steps_without = 0 if num_drafts else self._num_steps_without + 1
        return share_drafts(survivals, num_drafts)


def make_speculator(config: SpeculativeConfig) -> Speculator | None:
    """The draft policy of a configuration; None for no speculation."""
    return None if config.proposer == "off" else Speculator(NgramProposer(), config.num_draft_tokens)
