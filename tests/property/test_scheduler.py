"""Whatever is added, aborted, preempted or shared: nothing leaks, nobody starves, every output is what it must be."""

from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from deepinfer import CacheConfig, EngineConfig, FinishReason, SamplingParams, SchedulerConfig
from deepinfer.engine.build import make_engine_core
from deepinfer.executor.scripted import ScriptedExecutor, make_scripted_model_config
from deepinfer.testing.foreseen_drafts import ForeseenDrafts

EOS = frozenset({0})
BLOCK_SIZE = 16
MAX_IDLE_STEPS = 3000
stems = st.sampled_from([[7] * 40, [7] * 20 + [8] * 20, [9, 10, 11] * 14, [5]])


class SchedulerMachine(RuleBasedStateMachine):
    requests = Bundle("requests")

    @initialize(
        num_blocks=st.integers(6, 14),
        max_num_seqs=st.integers(1, 5),
        extra_tokens=st.sampled_from([0, 3, 16, 200]),
        caching=st.booleans(),
        target_itl=st.sampled_from([None, 0.01]),
        draft_kind=st.sampled_from([None, "right", "wrong", "mixed"]),
        overlap=st.booleans(),
    )
    def start(self, num_blocks, max_num_seqs, extra_tokens, caching, target_itl, draft_kind, overlap):
        model = make_scripted_model_config(vocab_size=24, max_position_embeddings=90)
        self.executor = ScriptedExecutor(num_blocks=num_blocks, block_size=16, model_config=model)
        config = EngineConfig(
            model=Path("scripted"),
            cache=CacheConfig(block_size=16, enable_prefix_caching=caching),
            scheduler=SchedulerConfig(
                max_num_seqs=max_num_seqs,
                max_num_batched_tokens=max_num_seqs + extra_tokens,
                max_lookahead=2,
                max_overtakes=2,
                max_wait_seconds=10.0,
                target_itl_seconds=target_itl,
                min_prefill_tokens=2,
                overlap_scheduling=overlap,
            ),
        )
        self.now = 0.0
        self.expected, self.got, self.reasons, self.aborted = {}, {}, {}, set()
        drafts = None if draft_kind is None else ForeseenDrafts(self.expected, draft_kind, vocab_size=24)
        self.core = make_engine_core(config, self.executor, model_identity=b"", drafts=drafts, clock=lambda: self.now)
        self.scheduler = self.core.scheduler

    @rule(
        target=requests,
        stem=stems,
        length=st.integers(1, 60),
        max_tokens=st.integers(1, 30),
        priority=st.integers(0, 1),
        client=st.sampled_from(["", "x"]),
        salt=st.sampled_from(["", "a"]),
        prompt_logprobs=st.sampled_from([None, None, 0]),
    )
    def add(self, stem, length, max_tokens, priority, client, salt, prompt_logprobs):
        request_id = f"r{len(self.expected)}"
        prompt = (stem * 60)[:length]
        params = SamplingParams(
            temperature=0.0,
            max_tokens=max_tokens,
            priority=priority,
            cache_salt=salt,
            prompt_logprobs=prompt_logprobs,
        )
        self.core.add_request(
            self.core.rules.make_request(request_id, prompt, params, arrival_time=self.now, client_key=client)
        )
        self.expected[request_id] = self.executor.predict(prompt, params, EOS)
        self.got[request_id] = []
        return request_id

    @rule(request_id=requests)
    def abort(self, request_id):
        if request_id not in self.reasons:
            self.aborted.add(request_id)
        self.core.abort_request(request_id)

    @rule(request_id=requests)
    def abort_during_a_step(self, request_id):
        if self.core._queue is not None:
            return  # there every abort may come while a step computes
        plan = self.scheduler.schedule()
        if request_id not in self.reasons:
            self.aborted.add(request_id)
        self.core.abort_request(request_id)
        if plan.num_scheduled_tokens:
            self.take(self.scheduler.update(plan, self.executor.execute(plan)))
        else:
            self.take(self.scheduler.take_outputs())

    @rule()
    def abort_unknown(self):
        self.core.abort_request("nobody")

    @rule(count=st.integers(1, 12))
    def step(self, count):
        for _ in range(count):
            self.now += 1.0
            self.take(self.core.step().outputs)
            self.blocks_add_up()

    def take(self, outputs):
        for output in outputs:
            assert output.request_id not in self.reasons, "nothing comes after the end"
            self.got[output.request_id].extend(output.new_token_ids)
            if output.finish_reason is not None:
                self.reasons[output.request_id] = output.finish_reason

    @invariant()
    def blocks_add_up(self):
        if not hasattr(self, "scheduler"):
            return
        pool = self.scheduler.cache.pool
        holders = [0] * pool.num_blocks
        running = [*self.scheduler._prefilling, *self.scheduler._decoding]
        for request in running:
            assert len(request.block_ids) == len(set(request.block_ids))
            if request in self.scheduler._decoding:
                num_covered = request.num_computed_tokens + request.num_inflight_rows
                num_most = num_covered + max(0, request.num_pending_tokens - 1)
                assert -(-num_covered // BLOCK_SIZE) <= len(request.block_ids) <= -(-num_most // BLOCK_SIZE)
            assert len(request.block_ids) * 16 - request.num_computed_tokens <= max(16, 16 + 200)
            for block_id in request.block_ids:
                holders[block_id] += 1
        for step in self.scheduler._inflight:
            for block_id in step.copy_sources:
                holders[block_id] += 1
        assert [pool.ref_count(b) for b in range(pool.num_blocks)] == holders
        assert pool.num_available == holders.count(0)
        assert len(running) <= self.scheduler.config.max_num_seqs

    def teardown(self):
        if not hasattr(self, "scheduler"):
            return
        num_steps = 0
        while self.core.has_work:
            num_steps += 1
            self.now += 1.0
            assert num_steps < MAX_IDLE_STEPS, "somebody starves"
            self.take(self.core.step().outputs)
        self.core.close()
        pool = self.scheduler.cache.pool
        assert pool.num_available == pool.num_blocks
        assert self.reasons.keys() == self.expected.keys()
        for request_id, expected in self.expected.items():
            got, reason = self.got[request_id], self.reasons[request_id]
            if request_id in self.aborted:
                assert reason is FinishReason.ABORT
                assert got == expected[: len(got)]
            else:
                assert got == expected
                assert reason is (FinishReason.STOP if got[-1] == 0 else FinishReason.LENGTH)


SchedulerMachine.TestCase.settings = settings(max_examples=80, stateful_step_count=30)
TestScheduler = SchedulerMachine.TestCase
