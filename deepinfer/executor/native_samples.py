"""Choices and log probabilities that the native step makes itself, so that no full row of logits leaves it."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from deepinfer.executor.choice_rounds import NOT_FINITE, ChoiceRounds, ChooseTokens
from deepinfer.executor.prompt_rows import PromptRows
from deepinfer.executor.request_states import RequestState
from deepinfer.outputs import ModelRunnerOutput, TokenLogprob
from deepinfer.sampling import SampledRows
from deepinfer.sampling.random import compute_key
from deepinfer.sampling.sampler import NO_TOKEN

SampleSpec = tuple[int, float, int, float, float, int, int | None, int | None]
"""(index among the logit rows, temperature, top_k, top_p, min_p, key of the noise, token if known, number of most
likely tokens)."""
SampledToken = tuple[int, tuple[float, int, list[tuple[int, float]]] | None]
"""(token, (log probability, rank, most likely tokens))."""


class NativeSamples:
    """What the native step is to choose.

    Attributes:
        specs: one entry for each choice, in the order of addition.
    """

    __slots__ = ("_logit_rows", "specs")

    def __init__(self, logit_rows: array[int]) -> None:
        """`logit_rows` are rows of the forward pass whose logits are computed; those of the choices are appended."""
        self._logit_rows = logit_rows
        self.specs: list[SampleSpec] = []

    def add_choices(self, rounds: ChoiceRounds) -> None:
        """Ask for one token from each row of `rounds`, whose requests are all stateless."""
        for row, (state, position) in zip(rounds.rows, rounds.positions(), strict=True):
            params = state.sampling.params
            key = 0
            if not params.is_greedy:
                assert params.seed is not None
                key = compute_key(params.seed, position)
            self._add(row, params.temperature, params.top_k, params.top_p, params.min_p, key, None, params.logprobs)

    def add_prompt(self, prompt: PromptRows) -> None:
        """Ask for the log probabilities of the prompt's own tokens."""
        num_top = prompt.state.sampling.params.prompt_logprobs or 0
        for row, token_id in zip(range(prompt.rows.start, prompt.rows.stop), prompt.token_ids, strict=True):
            self._add(row, 0.0, 0, 1.0, 0.0, 0, token_id, num_top)

    def _add(
        self,
        row: int,
        temperature: float,
        top_k: int,
        top_p: float,
        min_p: float,
        key: int,
        token_id: int | None,
        num_top: int | None,
    ) -> None:
        top_k = max(top_k, 0)
        self.specs.append((len(self._logit_rows), temperature, top_k, top_p, min_p, key, token_id, num_top))
        self._logit_rows.append(row)


def take_sampled(sampled: Sequence[SampledToken | None]) -> ChooseTokens:
    """Take what the native step chose for the rows of all rounds."""

    def choose(indices: Sequence[int], states: Sequence[RequestState]) -> SampledRows:
        result = SampledRows([NO_TOKEN] * len(states), [None] * len(states))
        for position, index in enumerate(indices):
            token = sampled[index]
            if token is None:
                result.errors[position] = NOT_FINITE
                continue
            result.token_ids[position] = token[0]
            result.logprobs[position] = _logprob_of(token)
        return result

    return choose


def add_native_prompt_logprobs(
    output: ModelRunnerOutput, prompt: PromptRows, sampled: Sequence[SampledToken | None]
) -> None:
    """Append the entries of one slice of a prompt to the step's output."""
    entries = [None if token is None else _logprob_of(token) for token in sampled]
    request_id = prompt.state.request_id
    if None in entries:
        output.errors[request_id] = NOT_FINITE
        return
    output.prompt_logprobs.setdefault(request_id, []).extend(entry for entry in entries if entry is not None)


def _logprob_of(token: SampledToken) -> TokenLogprob | None:
    token_id, entry = token
    if entry is None:
        return None
    logprob, rank, top = entry
    return TokenLogprob(token_id, logprob, rank, tuple(top))
