"""An executor without a model: the next token is a function of the token ids that it reads back through block tables.

A wrong block table, copy, position or reuse therefore changes the output. For tests and dry runs. No torch.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from deepinfer.config import ModelConfig
from deepinfer.errors import RequestError
from deepinfer.outputs import ModelRunnerOutput, SchedulerOutput, TokenLogprob, TokenMatcher
from deepinfer.sampling import SamplingRow
from deepinfer.sampling_params import SamplingParams

ChooseToken = Callable[[Sequence[int], SamplingParams], int]
"""(tokens so far, parameters) -> next token; may raise RequestError, which fails that request alone."""

_NEVER_WRITTEN = 2**32 - 1


@dataclass(slots=True)
class _Sequence:
    token_ids: array[int]
    num_prompt_tokens: int
    params: SamplingParams
    block_ids: list[int]
    matcher: TokenMatcher | None
    end_token_ids: frozenset[int]


class ScriptedExecutor:
    """Keeps token ids where a model keeps keys and values."""

    def __init__(
        self,
        *,
        num_blocks: int,
        block_size: int,
        model_config: ModelConfig | None = None,
        choose_token: ChooseToken | None = None,
    ) -> None:
        self._model_config = make_scripted_model_config() if model_config is None else model_config
        self._num_blocks = num_blocks
        self._block_size = block_size
        self._slots = array("I", [_NEVER_WRITTEN]) * (num_blocks * block_size)
        self._sequences: dict[str, _Sequence] = {}
        self._choose_token = choose_token or self._choose_by_hash

    @property
    def model_config(self) -> ModelConfig:
        """Shape of the pretended model."""
        return self._model_config

    @property
    def num_blocks(self) -> int:
        """Blocks it pretends to hold."""
        return self._num_blocks

    @property
    def num_known_requests(self) -> int:
        """Requests it keeps state for."""
        return len(self._sequences)

    def execute(self, plan: SchedulerOutput) -> ModelRunnerOutput:
        """Store the scheduled tokens, then choose a token for each request that has reached its last one.

        Raises:
            RuntimeError: the plan contradicts what the executor was told before.
        """
        for request_id in (*plan.preempted_request_ids, *plan.finished_request_ids):
            if self._sequences.pop(request_id, None) is None:
                raise RuntimeError(f"the plan drops {request_id!r}, which is not known")
        size = self._block_size
        for source, destination in plan.block_copies:
            block = self._slots[source * size : (source + 1) * size]
            self._slots[destination * size : (destination + 1) * size] = block
        starts = self._take_requests(plan)
        if starts.keys() != plan.num_scheduled_tokens.keys():
            raise RuntimeError("the scheduled requests and their data differ")
        result = ModelRunnerOutput()
        rows = {}
        for request_id, num_tokens in plan.num_scheduled_tokens.items():
            drafts = plan.draft_token_ids.get(request_id, [])
            num_tokens -= len(drafts)
            assumed = plan.assumed_token_ids.get(request_id, [])
            if assumed and self._sequences[request_id].token_ids[-len(assumed) :].tolist() != assumed:
                drafts = []
            rows[request_id] = (num_tokens, drafts)
        for request_id, (num_tokens, drafts) in rows.items():
            self._store(self._sequences[request_id], starts[request_id], num_tokens + len(drafts), drafts)
        for request_id, (num_tokens, drafts) in rows.items():
            self._finish_rows(result, request_id, starts[request_id], num_tokens, drafts)
        return result

    def predict(
        self, prompt_token_ids: Sequence[int], params: SamplingParams, eos_token_ids: frozenset[int] = frozenset()
    ) -> list[int]:
        """The output that a request must get, whatever else the engine does. `max_tokens` must be set."""
        assert params.max_tokens is not None
        tokens = array("I", prompt_token_ids)
        output: list[int] = []
        ends = {*params.stop_token_ids, *(() if params.ignore_eos else eos_token_ids)}
        while len(output) < params.max_tokens and not (output and output[-1] in ends):
            output.append(self._choose_token(tokens, params))
            tokens.append(output[-1])
        return output

    def describe(self) -> str:
        """One line for the start-up log."""
        return f"scripted executor, {self._num_blocks} blocks of {self._block_size} tokens, no model"

    def close(self) -> None:
        """Forget all requests."""
        self._sequences.clear()

    def _take_requests(self, plan: SchedulerOutput) -> dict[str, int]:
        starts = {}
        for new in plan.scheduled_new_requests:
            if new.request_id in self._sequences:
                raise RuntimeError(f"{new.request_id!r} is announced as new, but it is known")
            self._sequences[new.request_id] = _Sequence(
                array("I", new.token_ids),
                new.num_prompt_tokens,
                new.sampling_params,
                list(new.block_ids),
                None if new.constraint is None else new.constraint.make_matcher(),
                frozenset(new.sampling_params.stop_token_ids)
                | (frozenset() if new.sampling_params.ignore_eos else new.eos_token_ids),
            )
            starts[new.request_id] = new.num_computed_tokens
        for known in plan.scheduled_known_requests:
            sequence = self._sequences[known.request_id]
            block_ids = sequence.block_ids
            if known.num_kept_blocks is not None:
                del block_ids[known.num_kept_blocks :]
            block_ids.extend(known.new_block_ids)
            computed = known.num_computed_tokens
            starts[known.request_id] = len(sequence.token_ids) - 1 if computed is None else computed
        return starts

    def _store(self, sequence: _Sequence, start: int, num_tokens: int, drafts: Sequence[int]) -> None:
        token_ids = sequence.token_ids + array("I", drafts)
        end = start + num_tokens
        if num_tokens < 1 or end > len(token_ids) or (drafts and (end < len(token_ids) or num_tokens <= len(drafts))):
            raise RuntimeError(f"{num_tokens} tokens from {start} on, but there are {len(token_ids)}")
        for position in range(start, end):
            block_id = sequence.block_ids[position // self._block_size]
            self._slots[block_id * self._block_size + position % self._block_size] = token_ids[position]

    def _read(self, sequence: _Sequence, num_tokens: int) -> array[int]:
        """The first `num_tokens` tokens as the blocks have them."""
        size = self._block_size
        tokens = array("I")
        for block_id in sequence.block_ids[: -(-num_tokens // size)]:
            tokens.extend(self._slots[block_id * size : (block_id + 1) * size])
        return tokens[:num_tokens]

    def _finish_rows(
        self, result: ModelRunnerOutput, request_id: str, start: int, num_tokens: int, drafts: Sequence[int]
    ) -> None:
        """Choose what follows `num_tokens` known tokens, and what follows each draft that equals the choice before."""
        sequence = self._sequences[request_id]
        end = start + num_tokens
        if sequence.params.prompt_logprobs is not None and start < sequence.num_prompt_tokens - 1:
            tokens = self._read(sequence, end)
            result.prompt_logprobs[request_id] = [
                self._make_logprob(tokens[:position], sequence.token_ids[position], sequence.params.prompt_logprobs)
                for position in range(start + 1, min(end + 1, sequence.num_prompt_tokens))
            ]
        if end < len(sequence.token_ids):
            return
        for depth in range(len(drafts) + 1):
            tokens = self._read(sequence, end + depth)
            try:
                token_id = self._choose_token(tokens, sequence.params)
                if sequence.matcher is not None:
                    mask = sequence.matcher.compute_mask(sequence.token_ids[sequence.num_prompt_tokens :].tolist())
                    token_id = _choose_allowed(token_id, mask)
                forced_token_id = _find_forced(sequence)
                if forced_token_id is not None:
                    token_id = forced_token_id
            except RequestError as error:
                if depth == 0:
                    result.errors[request_id] = str(error)
                return
            sequence.token_ids.append(token_id)
            result.sampled_token_ids.setdefault(request_id, []).append(token_id)
            if sequence.params.logprobs is not None:
                entry = self._make_logprob(tokens, token_id, sequence.params.logprobs)
                result.logprobs.setdefault(request_id, []).append(entry)
            if depth == len(drafts) or token_id != drafts[depth] or token_id in sequence.end_token_ids:
                return

    def _choose_by_hash(self, tokens: Sequence[int], params: SamplingParams) -> int:
        """A function of all tokens and, unless greedy, of the seed."""
        seed = 0 if params.is_greedy or params.seed is None else params.seed
        return _hash_tokens(tokens, seed) % self._model_config.vocab_size

    def _make_logprob(self, tokens: Sequence[int], token_id: int, num_top: int) -> TokenLogprob:
        """Made-up but reproducible values between -10 and 0 that depend on all tokens before."""
        logprob = -(_hash_tokens(tokens, token_id) % 10_000) / 1000.0
        top = tuple((rank, logprob - 0.5 * rank) for rank in range(num_top))
        return TokenLogprob(token_id, logprob, 1, top)


def _choose_allowed(token_id: int, mask: bytes | None) -> int:
    """The token itself if it is allowed, else one of those that are, picked by it."""
    if mask is None:
        return token_id
    bits = int.from_bytes(mask, "little")
    if bits >> token_id & 1:
        return token_id
    allowed = [index for index in range(bits.bit_length()) if bits >> index & 1]
    if not allowed:
        raise RequestError("the grammar forbids every token")
    return allowed[token_id % len(allowed)]


def _find_forced(sequence: _Sequence) -> int | None:
    params = sequence.params
    if params.max_thinking_tokens is None and not params.golden_token_ids:
        return None
    return SamplingRow(params, sequence.token_ids, sequence.num_prompt_tokens).forced_token_id


def _hash_tokens(tokens: Sequence[int], seed: int) -> int:
    data = array("I", tokens).tobytes()
    return int.from_bytes(hashlib.blake2b(data, digest_size=8, salt=seed.to_bytes(8, "little")).digest(), "little")


def make_scripted_model_config(*, vocab_size: int = 512, max_position_embeddings: int = 4096) -> ModelConfig:
    """A small shape; token 0 ends an output."""
    return ModelConfig(
        architecture="llama",
        vocab_size=vocab_size,
        hidden_size=8,
        intermediate_size=8,
        num_layers=1,
        num_qo_heads=1,
        num_kv_heads=1,
        head_dim=8,
        max_position_embeddings=max_position_embeddings,
        eos_token_ids=(0,),
    )
