import time
from pathlib import Path

import pytest

from deepinfer import CacheConfig, EngineConfig, SamplingParams, SchedulerConfig
from deepinfer.engine.build import make_engine_core
from deepinfer.executor.scripted import ScriptedExecutor, make_scripted_model_config


class Bench:
    """A scheduler with a scripted executor, driven step by step."""

    def __init__(self, *, num_blocks=64, caching=True, max_model_len=400, choose_token=None, **limits):
        model = make_scripted_model_config(vocab_size=1000, max_position_embeddings=max_model_len)
        self.executor = ScriptedExecutor(
            num_blocks=num_blocks, block_size=16, model_config=model, choose_token=choose_token
        )
        config = EngineConfig(
            model=Path("scripted"),
            cache=CacheConfig(block_size=16, enable_prefix_caching=caching),
            scheduler=SchedulerConfig(**{"max_num_seqs": 8, "max_num_batched_tokens": 64, **limits}),
        )
        self.core = make_engine_core(config, self.executor, model_identity=b"")
        self.scheduler = self.core.scheduler
        self.outputs = {}
        self.last = {}

    def add(self, request_id, prompt, *, age=0.0, client_key="", **params):
        options = {"temperature": 0.0, "max_tokens": 5, "ignore_eos": True, **params}
        request = self.core.rules.make_request(
            request_id,
            prompt,
            SamplingParams(**options),
            arrival_time=time.monotonic() - age,
            client_key=client_key,
        )
        self.core.add_request(request)
        self.outputs[request_id] = []

    def expected(self, prompt, **params):
        return self.executor.predict(prompt, SamplingParams(**{"temperature": 0.0, "ignore_eos": True, **params}))

    def plan(self):
        """Run one step and return its plan as {request id: tokens}."""
        plan = self.scheduler.schedule()
        outputs = self.scheduler.update(plan, self.executor.execute(plan))
        self._take(outputs)
        return plan.num_scheduled_tokens

    def run(self, max_steps=2000):
        for _ in range(max_steps):
            self._take(self.core.step().outputs)
            if not self.core.has_work:
                return
        raise AssertionError("requests do not end")

    def _take(self, outputs):
        for output in outputs:
            self.outputs[output.request_id].extend(output.new_token_ids)
            self.last[output.request_id] = output


@pytest.fixture
def make_bench():
    return Bench
