"""When a request ends, and the output objects that say so. Pure functions over `Request`."""

from __future__ import annotations

from deepinfer.cost import StepCost
from deepinfer.outputs import EngineOutput, ModelRunnerOutput, RequestStats, TokenLogprob
from deepinfer.request import Request, RequestStatus


def find_end(request: Request, token_id: int) -> RequestStatus | None:
    """Whether the token just appended to the output ends the request, and how; sets `stop_token_id`."""
    params = request.sampling_params
    if (token_id in request.eos_token_ids and not params.ignore_eos) or token_id in params.stop_token_ids:
        request.stop_token_id = token_id
        return RequestStatus.FINISHED_STOPPED
    if len(request.output_token_ids) >= request.max_output_tokens:
        return RequestStatus.FINISHED_LENGTH
    return None


def compute_cost(request: Request, cost: StepCost, num_output_tokens: int) -> float:
    """Seconds that a request with so many output tokens takes of the engine, alone or shared."""
    num_prompt = request.num_prompt_tokens
    num_new = num_prompt - request.num_cached_tokens
    return cost.predict_prefill(num_new, request.num_cached_tokens) + cost.predict_decode(num_output_tokens, num_prompt)


def make_output(
    request: Request,
    new_token_ids: list[int],
    *,
    logprobs: list[TokenLogprob] | None = None,
    prompt_logprobs: list[TokenLogprob] | None = None,
) -> EngineOutput:
    """What one step gave a request, with its end if it has ended."""
    output = EngineOutput(
        request.request_id,
        new_token_ids,
        logprobs=logprobs,
        prompt_logprobs=prompt_logprobs,
        num_cached_tokens=request.num_cached_tokens,
        seed=request.sampling_params.seed or 0,
    )
    if request.finished_time is not None:
        output.finish_reason = request.finish_reason
        output.stop_token_id = request.stop_token_id
        output.error_message = request.error_message
        output.stats = make_stats(request)
    return output


def make_stats(request: Request) -> RequestStats:
    """Times and counts of a finished request."""
    end = request.finished_time
    assert end is not None
    scheduled = end if request.first_scheduled_time is None else request.first_scheduled_time
    first_token = end if request.first_token_time is None else request.first_token_time
    return RequestStats(
        arrival_time=request.arrival_time,
        queue_seconds=max(0.0, scheduled - request.arrival_time),
        prefill_seconds=first_token - scheduled,
        decode_seconds=end - first_token,
        num_prompt_tokens=request.num_prompt_tokens,
        num_cached_tokens=request.num_cached_tokens,
        num_output_tokens=len(request.output_token_ids),
        num_preemptions=request.num_preemptions,
        num_draft_tokens=request.num_draft_tokens,
        num_accepted_tokens=request.num_accepted_tokens,
    )


def collect_prompt_logprobs(request: Request, num_tokens: int, result: ModelRunnerOutput) -> None:
    """Append entries that a step computed, without those that a preempted attempt had delivered before."""
    entries = result.prompt_logprobs.get(request.request_id)
    if entries:
        first_position = request.num_computed_tokens - num_tokens + 1
        request.prompt_logprobs.extend(entries[len(request.prompt_logprobs) - first_position + 1 :])


def max_reused_tokens(request: Request) -> int:
    """The last token is always computed, for its logits; so is every prompt token whose logprobs are still missing."""
    if request.sampling_params.prompt_logprobs is not None:
        num_collected = len(request.prompt_logprobs)
        if num_collected < request.num_prompt_tokens - 1:
            return num_collected
    return request.num_tokens - 1
