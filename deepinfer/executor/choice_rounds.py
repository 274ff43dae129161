"""Tokens chosen row by row: while a draft turns out to be the token chosen before it, its own row gives the next one.

A token is chosen with the request in exactly the state that it would have without drafts: penalties, grammar, forced
tokens and the noise of its position see accepted tokens only. So the output does not depend on what was drafted, and
nothing has to be taken back. For a draft without a distribution of its own no rule accepts more often: whatever the
coupling, it is accepted with the probability that the model gives to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from deepinfer.executor.request_states import RequestState, ScheduledRequest
from deepinfer.outputs import ModelRunnerOutput, TokenLogprob
from deepinfer.sampling import SampledRows, Sampler

NOT_FINITE = "the model computed logits that are not finite"

ChooseTokens = Callable[[Sequence[int], Sequence[RequestState]], SampledRows]
"""(indices into `ChoiceRounds.rows`, their requests) -> one token for each."""


class ChoiceRounds:
    """Rows from which tokens are chosen: first one of each request, then those behind the first drafts, and so on.

    Attributes:
        rows: rows of the forward pass, round after round.
    """

    __slots__ = ("_rounds", "rows")

    def __init__(self, items: Sequence[tuple[ScheduledRequest, int]]) -> None:
        """`items` are requests that reach their last known token, each with the row after all of its rows."""
        first_round = [(item, end - 1 - len(item.draft_token_ids)) for item, end in items]
        self._rounds = [first_round]
        self.rows = [row for _, row in first_round]
        depth = 1
        while members := [pair for pair in self._rounds[-1] if len(pair[0].draft_token_ids) >= depth]:
            self._rounds.append(members)
            self.rows.extend(row + depth for _, row in members)
            depth += 1

    def positions(self) -> Iterator[tuple[RequestState, int]]:
        """For each of `rows` its request, and the position of the token to be chosen there if it gets so far."""
        for depth, members in enumerate(self._rounds):
            for item, _ in members:
                yield item.state, item.state.sampling.position + depth

    def run(self, output: ModelRunnerOutput, choose: ChooseTokens) -> None:
        """Choose tokens; append them to their requests and to the step's output, with the reasons of failures.

        A row behind an accepted draft that fails gives nothing: the next step meets the failure again.
        """
        first_index = 0
        going: set[str] = set()
        for depth, members in enumerate(self._rounds):
            indices = range(first_index, first_index + len(members))
            states = [item.state for item, _ in members]
            drafts = [item.draft_token_ids for item, _ in members]
            first_index += len(members)
            if depth > 0:
                kept = [position for position, state in enumerate(states) if state.request_id in going]
                if not kept:
                    return
                indices = [indices[position] for position in kept]  # type: ignore[assignment]
                states = [states[position] for position in kept]
                drafts = [drafts[position] for position in kept]
            sampled = choose(indices, states)
            going = set()
            for position, (state, draft) in enumerate(zip(states, drafts, strict=True)):
                if position in sampled.errors:
                    if depth == 0:
                        output.errors[state.request_id] = sampled.errors[position]
                    continue
                token_id = sampled.token_ids[position]
                _record(output, state, token_id, sampled.logprobs[position])
                if depth < len(draft) and token_id == draft[depth] and token_id not in state.sampling.end_token_ids:
                    going.add(state.request_id)


def sample_from(sampler: Sampler, logits: NDArray[np.float32]) -> ChooseTokens:
    """Choose by the sampler from `logits` [rows of all rounds, V]."""

    def choose(indices: Sequence[int], states: Sequence[RequestState]) -> SampledRows:
        rows = [state.sampling for state in states]
        if isinstance(indices, range):
            return sampler.sample(logits[indices.start : indices.stop], rows)
        return sampler.sample(logits[list(indices)], rows)

    return choose


def take_best(best: Sequence[int | None]) -> ChooseTokens:
    """Take what is known to be each row's argmax; None or a negative number stands for logits that are not finite."""

    def choose(indices: Sequence[int], states: Sequence[RequestState]) -> SampledRows:
        token_ids = [-1 if (token_id := best[index]) is None else token_id for index in indices]
        errors = {index: NOT_FINITE for index, token_id in enumerate(token_ids) if token_id < 0}
        return SampledRows(token_ids, [None] * len(states), errors)

    return choose


def _record(output: ModelRunnerOutput, state: RequestState, token_id: int, logprob: TokenLogprob | None) -> None:
    state.token_ids.append(token_id)
    output.sampled_token_ids.setdefault(state.request_id, []).append(token_id)
    if logprob is not None:
        output.logprobs.setdefault(state.request_id, []).append(logprob)
