"""Continuous batching: which request gets how many tokens in the next step, and what the step's result means.

State in, plan out. Knows no model, no device, no text.
"""

from __future__ import annotations

import time
from array import array
from collections import deque
from collections.abc import Callable

from deepinfer.config import SchedulerConfig
from deepinfer.cost import StepCostModel
from deepinfer.errors import RequestError
from deepinfer.kvcache import KVCacheManager, PrefixHit
from deepinfer.metrics import StepStats
from deepinfer.outputs import EngineOutput, KnownRequestData, ModelRunnerOutput, NewRequestData, SchedulerOutput
from deepinfer.request import Request, RequestStatus
from deepinfer.scheduler.chunking import ChunkBudget, ChunkPhase, compute_prefill_seconds, order_phases
from deepinfer.scheduler.drafts import DraftPolicy, clip_drafts, count_draft_rows
from deepinfer.scheduler.inflight import InflightStep, land, list_decoding
from deepinfer.scheduler.outcome import collect_prompt_logprobs, compute_cost, find_end, make_output, max_reused_tokens
from deepinfer.scheduler.preemption import choose_victim
from deepinfer.scheduler.request_queue import RequestQueue, compute_longest_wait

# Output tokens that a new request is charged for; the difference is settled when it ends.
_ASSUMED_OUTPUT_TOKENS = 64


class Scheduler:
    """Decides step by step. `schedule` and `update` alternate; `abort_request` is legal at any time.

    Order within a step: one row for each decoding request, then chunks of prompts as `order_phases` says.
    A request holds the blocks of the tokens scheduled so far and no more. When blocks run out, `choose_victim` names a
    request that gives up its own; it is computed again later, from what the prefix cache still holds.
    """

    def __init__(
        self,
        config: SchedulerConfig,
        cache: KVCacheManager,
        *,
        drafts: DraftPolicy | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`drafts` guesses tokens ahead; None computes one token of each request at a time."""
        self.config = config
        self.cache = cache
        self._drafts = drafts
        self._clock = clock
        self._requests: dict[str, Request] = {}
        self._waiting = RequestQueue()
        self._prefilling: list[Request] = []  # order of admission
        self._decoding: list[Request] = []
        self._inflight: deque[InflightStep] = deque()  # oldest first
        self._planned = InflightStep()  # the step that `schedule` plans
        self._settled = InflightStep()  # the step that `update` takes over
        self._ended_ids: list[str] = []  # known to the executor, to be named in the next plan that is executed
        self._preempted_ids: list[str] = []  # the same
        self._early_outputs: list[EngineOutput] = []
        self._is_turn_of_overdue = True
        self._chunk_turn = 0
        self.cost_model = StepCostModel()

    # State --------------------------------------------------------------------------------------------------------

    @property
    def num_running(self) -> int:
        """Requests that hold blocks."""
        return len(self._prefilling) + len(self._decoding)

    @property
    def num_waiting(self) -> int:
        """Requests that wait to start or to start again."""
        return len(self._waiting)

    @property
    def num_unfinished(self) -> int:
        """Requests that have not ended."""
        return len(self._requests)

    @property
    def has_work(self) -> bool:
        """Whether a step would compute or deliver anything."""
        return bool(self._requests or self._early_outputs or self._inflight)

    def add_request(self, request: Request) -> None:
        """Queue a request.

        Raises:
            RequestError: the id is in use, or the request can never fit the KV cache.
        """
        if request.request_id in self._requests:
            raise RequestError(
                f"request_id {request.request_id!r} is in use by an unfinished request", param="request_id"
            )
        self.cache.check_fits(request)
        self._requests[request.request_id] = request
        num_outputs = min(request.max_output_tokens, _ASSUMED_OUTPUT_TOKENS)
        self._waiting.add(request, compute_cost(request, self.cost_model.cost, num_outputs))

    def abort_request(self, request_id: str) -> None:
        """End a request in whatever state it is; an unknown id is ignored. Blocks return at once, or with `update` if
        a step is computing in them."""
        request = self._requests.get(request_id)
        if request is None or request.status.is_finished:
            return
        if any(request in step.requests for step in self._inflight):
            request.status = RequestStatus.FINISHED_ABORTED  # `update` completes it
            return
        self._end(request, RequestStatus.FINISHED_ABORTED)
        self._early_outputs.append(make_output(request, []))

    def take_outputs(self) -> list[EngineOutput]:
        """Outputs of requests that ended outside a step."""
        outputs, self._early_outputs = self._early_outputs, []
        return outputs

    # Plan ---------------------------------------------------------------------------------------------------------

    def schedule(self) -> SchedulerOutput:
        """Plan the next step. A plan without tokens must not be executed; drops are kept for the next one."""
        self._planned = step = InflightStep()
        plan = step.plan
        if is_ahead := bool(self._inflight):
            self._inflight[-1].take_off()
        self._schedule_decodes(plan)
        cost, load = self.cost_model.cost, step.counts.load
        waited = compute_longest_wait(self._prefilling, self._waiting, self._clock())
        budget = ChunkBudget(
            cost,
            load,
            max_tokens=self.config.max_num_batched_tokens - load.num_decode_rows,
            prefill_seconds=compute_prefill_seconds(self.config, cost.predict(load), waited),
            min_tokens=self.config.min_prefill_tokens,
        )
        self._schedule_chunks(plan, budget)
        step.counts.predicted_seconds = cost.predict(load)
        if plan.num_scheduled_tokens:
            plan.finished_request_ids, self._ended_ids = self._ended_ids, []
            plan.preempted_request_ids, self._preempted_ids = self._preempted_ids, []
            if is_ahead:
                step.take_off()
            self._inflight.append(step)
        return plan

    def _schedule_decodes(self, plan: SchedulerOutput) -> None:
        counts = plan.num_scheduled_tokens
        known = plan.scheduled_known_requests
        step, block_size = self._planned, self.cache.block_size
        candidates = list_decoding(self._decoding, self._prefilling) if self._inflight else list(self._decoding)
        drafts = None
        if self._drafts is not None:
            max_rows = count_draft_rows(
                self.config, len(candidates), has_prompts=bool(self._prefilling or self._waiting)
            )
            drafts = self._drafts.propose(candidates, max_rows, self.cost_model.cost)
        num_pairs = 0
        for request in candidates:
            if request.status is not RequestStatus.RUNNING:
                continue  # preempted for a request before it, or aborted
            # Behind pending tokens, of which there may come fewer, the executor knows the position.
            num_pending = request.num_pending_tokens
            position = request.num_tokens - 1 + num_pending if num_pending else request.num_computed_tokens
            num_blocks = len(request.block_ids)
            new_block_ids: list[int] = []
            if position >= num_blocks * block_size:
                if not self._make_room(plan, request):
                    continue
                new_block_ids = self.cache.allocate(request, position + 1)
            known.append(KnownRequestData(request.request_id, new_block_ids, None if num_pending else position))
            counts[request.request_id] = 1
            step.requests.append(request)
            num_pairs += position
            if drafts is not None:
                known[-1].num_kept_blocks = num_blocks
                if request.request_id in drafts:
                    self._add_drafts(plan, request, drafts[request.request_id])
        # Rows of requests preempted on the way are few; their pairs do not matter to the prediction.
        step.counts.num_decoding = len(counts)
        step.counts.has_drafts = drafts is not None
        step.counts.load.num_decode_rows = len(counts) if drafts is None else sum(counts.values())
        step.counts.load.num_decode_pairs = num_pairs

    def _add_drafts(self, plan: SchedulerOutput, request: Request, guess: list[int]) -> None:
        """Append drafts to a request's row. A block for them alone is taken only while there are plenty."""
        cache = self.cache
        num_pending = request.num_pending_tokens
        draft_token_ids = guess[num_pending:]
        has_plenty = cache.num_available_blocks > len(self._decoding)
        clip_drafts(draft_token_ids, request, (len(request.block_ids) + has_plenty) * cache.block_size)
        if not draft_token_ids:
            return
        new_block_ids = cache.allocate(request, request.num_tokens + num_pending + len(draft_token_ids))
        plan.scheduled_known_requests[-1].new_block_ids.extend(new_block_ids)
        plan.num_scheduled_tokens[request.request_id] = 1 + len(draft_token_ids)
        plan.draft_token_ids[request.request_id] = draft_token_ids
        if num_pending:
            plan.assumed_token_ids[request.request_id] = guess[:num_pending]

    def _schedule_chunks(self, plan: SchedulerOutput, budget: ChunkBudget) -> None:
        """Continue prefills and start waiting requests."""
        unfinished = [request for request in self._prefilling if not request.num_pending_tokens]
        oldest, others = unfinished[:1], unfinished[1:]
        phases, short = [(ChunkPhase.NEW, 1.0)], 0
        if oldest:
            phases = order_phases(
                has_others=bool(others), has_new=bool(self._waiting), is_tight=budget.is_tight, turn=self._chunk_turn
            )
            self._chunk_turn += 1
            short = oldest[0].num_missing_tokens // 2
        for phase, share in phases:
            budget.limit(share)
            match phase:
                case ChunkPhase.OLDEST:
                    self._continue_prefills(plan, budget, oldest)
                case ChunkPhase.OTHERS:
                    self._continue_prefills(plan, budget, others)
                case ChunkPhase.SHORT_OTHERS:
                    chosen = [each for each in others if each.num_missing_tokens <= short]
                    self._continue_prefills(plan, budget, chosen)
                case _ if self._waiting and not self._planned.counts.num_preemptions:
                    self._admit(plan, budget, short if phase is ChunkPhase.SHORT_NEW else None)

    def _continue_prefills(self, plan: SchedulerOutput, budget: ChunkBudget, requests: list[Request]) -> None:
        cache = self.cache
        for request in requests:
            computed = request.num_computed_tokens + request.num_inflight_rows
            num_tokens = budget.largest_chunk(request.num_tokens - computed, computed)
            if num_tokens <= 0:
                break
            if request.status is not RequestStatus.RUNNING or request.request_id in plan.num_scheduled_tokens:
                continue
            is_stuck = computed >= len(request.block_ids) * cache.block_size and not cache.num_available_blocks
            # Those who have a row will free blocks sooner or later; if nobody has one, somebody has to give way.
            if is_stuck and (plan.num_scheduled_tokens or not self._make_room(plan, request)):
                continue
            coverable = (len(request.block_ids) + cache.num_available_blocks) * cache.block_size - computed
            num_tokens = min(num_tokens, coverable)
            new_block_ids = cache.allocate(request, computed + num_tokens)
            plan.scheduled_known_requests.append(KnownRequestData(request.request_id, new_block_ids, computed))
            self._add_row(plan, request, num_tokens)
            budget.take(num_tokens, computed)

    def _admit(self, plan: SchedulerOutput, budget: ChunkBudget, max_tokens: int | None) -> None:
        """Start waiting requests; who cannot, or has more than `max_tokens` to go, is overtaken within bounds."""
        waiting, index, num_tried = self._waiting, 0, 0
        coming_keys = {key for request in self._prefilling if (key := self.cache.next_block_key(request))}
        overdue_arrival = self._clock() - self.config.max_wait_seconds
        while index < len(waiting) and num_tried < self.config.max_lookahead:
            num_running = self.num_running
            if num_running >= self.config.max_num_seqs or budget.num_tokens <= 0:
                break
            if num_running and self.cache.num_available_blocks <= num_running:
                break  # nobody could start, see `_try_start`; looking up prompts would be in vain
            is_overdue = self._is_turn_of_overdue and waiting.longest_waiting.arrival_time < overdue_arrival
            request = waiting.longest_waiting if is_overdue else waiting[index]
            is_due = is_overdue or request.num_overtakes >= self.config.max_overtakes
            if self._try_start(plan, request, budget, coming_keys, None if is_due else max_tokens):
                position = waiting.index(request)
                waiting.let_in(position)
                for overtaken in range(min(position, self.config.max_lookahead)):
                    waiting[overtaken].num_overtakes += 1
                self._is_turn_of_overdue = not is_overdue
                continue
            if is_due:
                break
            index += 1
            num_tried += 1

    def _try_start(
        self,
        plan: SchedulerOutput,
        request: Request,
        budget: ChunkBudget,
        coming_keys: set[tuple[bytes, bytes]],
        max_tokens: int | None,
    ) -> bool:
        """Start a waiting request with as many tokens as budget and blocks allow; False if it has to wait."""
        cache = self.cache
        max_reused = max_reused_tokens(request)
        hit = cache.find_prefix(request, max_reused)
        if hit.next_key in coming_keys and hit.num_tokens < max_reused:
            return False  # a running prefill computes the same block now: reuse it instead
        if max_tokens is not None and request.num_tokens - hit.num_tokens > max_tokens:
            return False
        for usable in (hit, hit.without_copy(), hit.without_blocks()):
            # One block for each running request stays free: starting somebody should not preempt somebody soon.
            spare = cache.num_available_blocks - cache.count_taken(usable) - self.num_running
            coverable = (len(usable.block_ids) + spare) * cache.block_size - usable.num_tokens
            chunk = budget.largest_chunk(request.num_tokens - usable.num_tokens, usable.num_tokens)
            num_tokens = min(chunk, coverable)
            if num_tokens > 0:
                self._start(plan, request, usable, num_tokens)
                budget.take(num_tokens, usable.num_tokens)
                if (key := cache.next_block_key(request)) is not None:
                    coming_keys.add(key)
                return True
            if self.num_running or chunk <= 0:
                break  # wait; if nobody runs, the blocks of the hit itself are in the way
        return False

    def _start(self, plan: SchedulerOutput, request: Request, hit: PrefixHit, num_tokens: int) -> None:
        copy = self.cache.allocate_prefix(request, hit)
        if copy is not None:
            plan.block_copies.append(copy)
            self._planned.copy_sources.append(copy[0])
        self.cache.allocate(request, hit.num_tokens + num_tokens)
        request.status = RequestStatus.RUNNING
        request.num_computed_tokens = hit.num_tokens
        if request.first_scheduled_time is None:
            request.first_scheduled_time = self._clock()
            request.num_cached_tokens = hit.num_tokens
            self._planned.counts.num_prefix_cache_queries += request.num_prompt_tokens
            self._planned.counts.num_prefix_cache_hits += hit.num_tokens
        token_ids = request.prompt_token_ids
        if request.output_token_ids:
            token_ids = token_ids + array("I", request.output_token_ids)
        plan.scheduled_new_requests.append(
            NewRequestData(
                request_id=request.request_id,
                token_ids=token_ids,
                num_prompt_tokens=request.num_prompt_tokens,
                sampling_params=request.sampling_params,
                eos_token_ids=request.eos_token_ids,
                block_ids=list(request.block_ids),
                num_computed_tokens=hit.num_tokens,
                constraint=request.constraint,
            )
        )
        self._prefilling.append(request)
        self._add_row(plan, request, num_tokens)

    def _add_row(self, plan: SchedulerOutput, request: Request, num_tokens: int) -> None:
        plan.num_scheduled_tokens[request.request_id] = num_tokens
        self._planned.requests.append(request)

    def _make_room(self, plan: SchedulerOutput, request: Request) -> bool:
        """See to it that one block is available, by preemption if need be; False if `request` itself had to go."""
        while not self.cache.num_available_blocks:
            running = (*self._decoding, *self._prefilling)
            victim = choose_victim(each for each in running if each.status is RequestStatus.RUNNING)
            if victim is None:
                return False
            self._preempt(plan, victim)
            if victim is request:
                return False
        return True

    def _preempt(self, plan: SchedulerOutput, victim: Request) -> None:
        if plan.num_scheduled_tokens.pop(victim.request_id, None) is not None:
            self._planned.requests.remove(victim)
            plan.draft_token_ids.pop(victim.request_id, None)
            plan.assumed_token_ids.pop(victim.request_id, None)
            plan.scheduled_known_requests[:] = [
                data for data in plan.scheduled_known_requests if data.request_id != victim.request_id
            ]
        self._take_from_running(victim)
        self.cache.free(victim)
        if self._drafts is not None:
            self._drafts.forget(victim)
        victim.status = RequestStatus.PREEMPTED
        victim.num_computed_tokens = victim.num_inflight_rows = victim.num_pending_tokens = 0
        victim.num_preemptions += 1
        self._planned.counts.num_preemptions += 1
        self._preempted_ids.append(victim.request_id)
        self._waiting.put_back(victim)

    # Result -------------------------------------------------------------------------------------------------------

    def update(self, plan: SchedulerOutput, result: ModelRunnerOutput) -> list[EngineOutput]:
        """Take over what the step produced; returns one output for each request that got something or ended."""
        outputs = self.take_outputs()
        now = self._clock()
        block_size = self.cache.block_size
        sampled_token_ids, errors, drafts = result.sampled_token_ids, result.errors, plan.draft_token_ids
        self._settled = step = self._inflight.popleft()
        if step.plan is not plan:
            raise RuntimeError("results must come in the order of the plans")
        for block_id in step.copy_sources:
            self.cache.release_copy_source(block_id)
        for request, num_tokens in zip(step.requests, plan.num_scheduled_tokens.values(), strict=True):
            if step.is_noted:
                land(request, num_tokens)
            if request.status is not RequestStatus.RUNNING:
                if (output := self._settle_stopped(request)) is not None:
                    outputs.append(output)
                continue
            num_drafts = len(drafts[request.request_id]) if drafts and request.request_id in drafts else 0
            # Which drafts are output, and so have KV entries to keep, is known when their tokens are appended.
            request.num_computed_tokens = num_computed = request.num_computed_tokens + num_tokens - num_drafts
            if errors and request.request_id in errors:
                request.error_message = errors[request.request_id]
                self._end(request, RequestStatus.FINISHED_ERROR)
                outputs.append(make_output(request, []))
                continue
            if num_computed >= (len(request.block_hashes) + 1) * block_size:
                self.cache.commit(request)
            if request.sampling_params.prompt_logprobs is not None:
                collect_prompt_logprobs(request, num_tokens, result)
            new_token_ids = sampled_token_ids.get(request.request_id)
            is_complete = num_computed >= len(request.prompt_token_ids) + len(request.output_token_ids)
            if is_complete != bool(new_token_ids) or len(new_token_ids or ()) > 1 + num_drafts:
                raise RuntimeError(
                    f"the executor sampled {new_token_ids or 'nothing'} for request {request.request_id!r} after "
                    f"{num_computed} of {request.num_tokens} tokens"
                )
            if new_token_ids:
                outputs.append(self._append(request, new_token_ids, result, now, num_drafts))
        return outputs

    def _append(
        self, request: Request, sampled_token_ids: list[int], result: ModelRunnerOutput, now: float, num_drafts: int
    ) -> EngineOutput:
        """Append sampled tokens up to the one that ends the request."""
        params = request.sampling_params
        prompt_logprobs = None
        if request.first_token_time is None:
            request.first_token_time = now
            if params.prompt_logprobs is not None:
                prompt_logprobs = request.prompt_logprobs
        new_token_ids: list[int] = []
        end = RequestStatus.FINISHED_LENGTH if request.max_output_tokens == 0 else None
        if end is None:
            for token_id in sampled_token_ids:
                request.output_token_ids.append(token_id)
                new_token_ids.append(token_id)
                end = find_end(request, token_id)
                if end is not None:
                    break
        if num_drafts:
            self._settle_drafts(request, num_drafts, len(new_token_ids) - 1)
        if self._drafts is not None:
            self._drafts.observe_tokens(request, len(new_token_ids))
        if end is not None:
            self._end(request, end)
        elif self._prefilling and request in self._prefilling:
            self._prefilling.remove(request)
            self._decoding.append(request)
            self.cache.commit_tail(request)
        logprobs = None
        if params.logprobs is not None:
            logprobs = result.logprobs.get(request.request_id, [])[: len(new_token_ids)]
        return make_output(request, new_token_ids, logprobs=logprobs, prompt_logprobs=prompt_logprobs)

    def _settle_drafts(self, request: Request, num_drafts: int, num_accepted: int) -> None:
        """KV entries of accepted drafts are computed; the blocks of the others go back."""
        request.num_computed_tokens = request.num_tokens - 1
        self.cache.trim(request, request.num_computed_tokens + request.num_inflight_rows)
        if request.num_computed_tokens >= (len(request.block_hashes) + 1) * self.cache.block_size:
            self.cache.commit(request)
        request.num_draft_tokens += num_drafts
        request.num_accepted_tokens += num_accepted
        self._settled.counts.num_draft_tokens += num_drafts
        self._settled.counts.num_accepted_tokens += num_accepted

    def _end(self, request: Request, status: RequestStatus) -> None:
        """Give back everything a request holds."""
        if self._drafts is not None:
            self._drafts.forget(request)
        request.status = status
        if request.block_ids:  # running, so the executor knows it
            self._take_from_running(request)
            # A step in flight may still have a row of it, which writes behind what is computed. Plans are executed in
            # their order, so whoever gets the block writes later.
            self.cache.free(request, discard=status is RequestStatus.FINISHED_ERROR)
            self._ended_ids.append(request.request_id)
        else:
            self._waiting.remove(request)
        request.finished_time = self._clock()
        num_outputs = len(request.output_token_ids)
        self._waiting.settle(request, compute_cost(request, self.cost_model.cost, num_outputs))
        del self._requests[request.request_id]

    def _settle_stopped(self, request: Request) -> EngineOutput | None:
        """End a request that was aborted while the step ran. One that had ended before computed a row in vain, one that
        was preempted will compute all that again."""
        if not request.status.is_finished or request.finished_time is not None:
            return None
        self._end(request, RequestStatus.FINISHED_ABORTED)
        return make_output(request, [])

    def _take_from_running(self, request: Request) -> None:
        (self._prefilling if request in self._prefilling else self._decoding).remove(request)

    def record_step(self, plan: SchedulerOutput, *, step_seconds: float, execute_seconds: float) -> StepStats:
        """Learn from the step just updated, and report its numbers."""
        counts = self._settled.counts
        self.cost_model.observe(counts.load, step_seconds)
        if self._drafts is not None:
            self._drafts.observe_step(counts.load, counts.num_decoding, step_seconds)
        return counts.make_stats(
            plan,
            num_running=self.num_running,
            num_waiting=len(self._waiting),
            kv_cache_usage_ratio=self.cache.usage_ratio,
            step_seconds=step_seconds,
            execute_seconds=execute_seconds,
        )
