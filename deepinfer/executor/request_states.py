"""What an executor remembers about each running request. No torch here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from deepinfer.outputs import NewRequestData, SchedulerOutput
from deepinfer.sampling import SamplingRow


@dataclass(slots=True, eq=False)
class RequestState:
    """One request the executor knows.

    Attributes:
        token_ids: prompt and output; sampled tokens are appended.
        sampling: what the sampler knows; it sees `token_ids` itself.
        block_ids: its KV blocks in order of position.
        num_computed_tokens: tokens whose KV entries exist before the step at hand.
    """

    request_id: str
    token_ids: list[int]
    num_prompt_tokens: int
    sampling: SamplingRow
    block_ids: list[int]
    num_computed_tokens: int


@dataclass(frozen=True, slots=True)
class ScheduledRequest:
    """The share of one request in a step: `num_tokens` rows from `num_computed_tokens` on, the last for drafts."""

    state: RequestState
    num_tokens: int
    draft_token_ids: Sequence[int] = ()

    @property
    def start(self) -> int:
        """Position of the first row."""
        return self.state.num_computed_tokens

    @property
    def end(self) -> int:
        """Position after the last row."""
        return self.state.num_computed_tokens + self.num_tokens

    @property
    def row_token_ids(self) -> list[int]:
        """Token of each row."""
        known = self.state.token_ids[self.start : self.end]
        return [*known, *self.draft_token_ids] if self.draft_token_ids else known

    @property
    def samples_token(self) -> bool:
        """Whether the rows reach the last known token, so that the next one is sampled."""
        return self.end - len(self.draft_token_ids) == len(self.state.token_ids)


class RequestStates:
    """Requests by id, kept in step with the scheduler by its plans."""

    def __init__(self) -> None:
        self._states: dict[str, RequestState] = {}

    def __len__(self) -> int:
        """Requests known."""
        return len(self._states)

    def apply(self, plan: SchedulerOutput) -> list[ScheduledRequest]:
        """Drop, add and update requests as the plan says.

        Returns:
            The scheduled requests in the order of the batch rows.
        """
        for request_id in (*plan.preempted_request_ids, *plan.finished_request_ids):
            self._states.pop(request_id, None)
        for new in plan.scheduled_new_requests:
            self._states[new.request_id] = _state_of(new)
        for known in plan.scheduled_known_requests:
            state = self._states[known.request_id]
            if known.num_kept_blocks is not None:
                del state.block_ids[known.num_kept_blocks :]
            state.block_ids.extend(known.new_block_ids)
            computed = known.num_computed_tokens
            state.num_computed_tokens = len(state.token_ids) - 1 if computed is None else computed
        states, drafts = self._states, plan.draft_token_ids
        if not drafts:
            return [ScheduledRequest(states[name], count) for name, count in plan.num_scheduled_tokens.items()]
        scheduled = []
        for name, count in plan.num_scheduled_tokens.items():
            state, draft = states[name], drafts.get(name, ())
            assumed = plan.assumed_token_ids.get(name)
            if assumed and state.token_ids[-len(assumed) :] != assumed:
                count, draft = count - len(draft), ()
            scheduled.append(ScheduledRequest(state, count, draft))
        return scheduled


def _state_of(new: NewRequestData) -> RequestState:
    token_ids = list(new.token_ids)
    return RequestState(
        request_id=new.request_id,
        token_ids=token_ids,
        num_prompt_tokens=new.num_prompt_tokens,
        sampling=SamplingRow(
            new.sampling_params,
            token_ids,
            new.num_prompt_tokens,
            new.eos_token_ids,
            matcher=None if new.constraint is None else new.constraint.make_matcher(),
        ),
        block_ids=list(new.block_ids),
        num_computed_tokens=new.num_computed_tokens,
    )
