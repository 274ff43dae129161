"""The default model in an engine, and the reference that scripts/make_reference_ids.py wrote."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from deepinfer.config import CacheConfig, EngineConfig, SchedulerConfig
from deepinfer.engine.build import make_engine_core
from deepinfer.executor.factory import make_executor
from deepinfer.executor.native_weights import find_native_obstacle
from deepinfer.loader import open_checkpoint
from deepinfer.loader.default_model import find_default_model
from deepinfer.sampling_params import SamplingParams

VALUES_PER_TOKEN = 2 * 30 * 3 * 64  # keys and values
BYTES_PER_VALUE = {"torch": 4, "native": 2}


@dataclass(frozen=True)
class Case:
    """One prompt of the reference: greedy output by transformers in float32."""

    name: str
    prompt_token_ids: list[int]
    output_token_ids: list[int]
    logprobs: list[float]
    margins: list[float]

    def num_comparable(self, num_tokens: int, *, tie: float) -> int:
        """Steps before the first at which the two best logits are less than `tie` apart."""
        ties = (step for step, margin in enumerate(self.margins[:num_tokens]) if margin < tie)
        return next(ties, num_tokens)


@pytest.fixture(scope="session")
def cases() -> dict[str, Case]:
    content = json.loads((Path(__file__).parent / "data" / "reference_ids.json").read_text())
    return {case["name"]: Case(**case) for case in content["cases"]}


@pytest.fixture(scope="session")
def model_path() -> Path:
    path = find_default_model()
    if path is None:
        pytest.skip("the default model's file is not here; make model fetches it")
    return path


@dataclass
class Result:
    """What a run produced for one prompt."""

    token_ids: list[int]
    logprobs: list[float]
    num_cached_tokens: int = 0
    num_preemptions: int = 0


class Engines:
    """Engines over the default model that share loaded weights where threads and KV blocks are the same."""

    def __init__(self, model_path: Path, backend: str) -> None:
        self.model_path = model_path
        self.backend = backend
        self._executor = None
        self._key = None

    def make(self, *, drafts=None, **options):
        """A core with an empty prefix cache. Only the last executor is kept: two sets of weights are a gigabyte."""
        config = self.make_config(**options)
        key = (config.num_threads, config.cache.block_size, config.cache.kv_cache_memory_bytes)
        if self._key != key:
            self.close()
            self._executor = make_executor(config, open_checkpoint(self.model_path))
            self._key = key
        return make_engine_core(config, self._executor, model_identity=b"test", drafts=drafts)

    def make_config(self, *, num_threads=1, num_blocks=200, block_size=64, chunk=512, cache=True):
        """What `make` builds an engine from."""
        return EngineConfig(
            model=self.model_path,
            device="cpu",
            cpu_backend=self.backend,
            num_threads=num_threads,
            max_model_len=min(8192, num_blocks * block_size),
            cache=CacheConfig(
                block_size=block_size,
                kv_cache_memory_bytes=num_blocks * block_size * VALUES_PER_TOKEN * BYTES_PER_VALUE[self.backend],
                enable_prefix_caching=cache,
            ),
            scheduler=SchedulerConfig(max_num_seqs=min(chunk, 20), max_num_batched_tokens=chunk),
        )

    @staticmethod
    def run(core, cases, *, num_tokens=64, batch=True) -> dict[str, Result]:
        """Greedy output of each case, all at once or one after the other."""
        results = {case.name: Result([], []) for case in cases}
        params = SamplingParams(temperature=0, max_tokens=num_tokens, ignore_eos=True, logprobs=0)
        for group in [cases] if batch else [[case] for case in cases]:
            for case in group:
                request = core.rules.make_request(
                    case.name, case.prompt_token_ids, params, arrival_time=time.monotonic()
                )
                core.add_request(request)
            while core.has_work:
                for output in core.step().outputs:
                    assert output.error_message is None
                    result = results[output.request_id]
                    result.token_ids += output.new_token_ids
                    result.logprobs += [entry.logprob for entry in output.logprobs or []]
                    result.num_cached_tokens = output.num_cached_tokens
                    if output.stats is not None:
                        result.num_preemptions = output.stats.num_preemptions
        return results

    def close(self):
        if self._executor is not None:
            self._executor.close()
        self._executor = self._key = None


@pytest.fixture(scope="module", params=["torch", "native"])
def engines(model_path, request):
    """Engines on each executor of a CPU: torch in float32, and the native operators."""
    if request.param == "native":
        config = EngineConfig(model=model_path, device="cpu", cpu_backend="native")
        obstacle = find_native_obstacle(config, open_checkpoint(model_path))
        if obstacle is not None:
            pytest.skip(f"no native operators: {obstacle}")
    engines = Engines(model_path, request.param)
    yield engines
    engines.close()
