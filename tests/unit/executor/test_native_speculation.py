"""Through the native operators results are the same bits with drafts and without, overlap and not."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepinfer import CacheConfig, EngineConfig, SamplingParams, SchedulerConfig
from deepinfer.engine.build import make_engine_core
from deepinfer.testing.foreseen_drafts import KINDS, ForeseenDrafts
from deepinfer.testing.tiny_models import make_random_tensors, make_tiny_config

pytest.importorskip("deepinfer_cpu", reason="open-deepinfer-cpu is not installed")

from deepinfer.executor.native_runner import NativeRunner

MODEL_CONFIG = make_tiny_config("llama", hidden_size=64, intermediate_size=64, num_qo_heads=4)


class TinyCheckpoint:
    path = Path("tiny")
    config = MODEL_CONFIG
    tensors = make_random_tensors(MODEL_CONFIG, "q4_1")

    def release_pages(self):
        pass


def make_config(*, num_blocks, max_num_seqs, budget, overlap):
    return EngineConfig(
        model=Path("tiny"),
        device="cpu",
        num_threads=1,
        max_model_len=96,
        cache=CacheConfig(
            block_size=16, kv_cache_memory_bytes=num_blocks * 16 * 2 * MODEL_CONFIG.num_kv_values_per_token
        ),
        scheduler=SchedulerConfig(max_num_seqs=max_num_seqs, max_num_batched_tokens=budget, overlap_scheduling=overlap),
    )


@pytest.fixture(scope="module")
def executors():
    """Executors by number of blocks; engines over them come and go."""
    made = {}
    yield made
    for executor in made.values():
        executor.close()


def serve(executors, requests, *, drafts=None, num_blocks=24, max_num_seqs=6, budget=64, overlap=False):
    config = make_config(num_blocks=num_blocks, max_num_seqs=max_num_seqs, budget=budget, overlap=overlap)
    if num_blocks not in executors:
        executors[num_blocks] = NativeRunner(config, TinyCheckpoint())
    core = make_engine_core(config, executors[num_blocks], model_identity=b"", drafts=drafts)
    results = {name: ([], []) for name in requests}
    for name, (prompt, params) in requests.items():
        core.add_request(core.rules.make_request(name, prompt, params, arrival_time=0.0))
    while core.has_work:
        for output in core.step().outputs:
            assert output.error_message is None
            results[output.request_id][0].extend(output.new_token_ids)
            results[output.request_id][1].extend(output.logprobs or [])
    assert core.scheduler.cache.num_available_blocks == num_blocks
    core.stop_overlap()
    return results


params = st.builds(
    SamplingParams,
    temperature=st.sampled_from([0.0, 0.3, 1.0]),
    seed=st.integers(0, 2**64 - 1),
    top_p=st.sampled_from([1.0, 0.8]),
    top_k=st.sampled_from([-1, 5]),
    max_tokens=st.integers(1, 30),
    min_tokens=st.sampled_from([0, 1]),
    ignore_eos=st.booleans(),
    repetition_penalty=st.sampled_from([1.0, 1.3]),
    frequency_penalty=st.sampled_from([0.0, 0.5]),
    logit_bias=st.sampled_from([{}, {7: 5.0, 8: -100.0}]),
    logprobs=st.sampled_from([None, 2]),
    stop_token_ids=st.sampled_from([(), (7, 11)]),
    golden_token_ids=st.sampled_from([(), (9, -1, 3)]),
    bad_words_token_ids=st.sampled_from([(), ((5,), (3, 4))]),
)
requests = st.lists(st.tuples(st.lists(st.integers(0, 255), min_size=1, max_size=40), params), min_size=1, max_size=5)


@settings(max_examples=25)
@given(
    requests.map(lambda items: {f"r{number}": item for number, item in enumerate(items)}),
    st.sampled_from([None, *KINDS]),
    st.booleans(),
    st.sampled_from([(24, 6, 64), (24, 1, 64), (24, 6, 7), (7, 4, 32)]),
)
def test_same_bits(executors, requests, kind, overlap, limits):
    expected = serve(executors, requests)
    num_blocks, max_num_seqs, budget = limits
    foreseen = {name: result[0] for name, result in expected.items()}
    drafts = kind and ForeseenDrafts(foreseen, kind, vocab_size=MODEL_CONFIG.vocab_size)
    results = serve(
        executors,
        requests,
        drafts=drafts,
        num_blocks=num_blocks,
        max_num_seqs=max_num_seqs,
        budget=budget,
        overlap=overlap,
    )
    assert results == expected
