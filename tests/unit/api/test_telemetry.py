"""Counts and histograms, and their Prometheus names."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from deepinfer.metrics import StepStats
from deepinfer_api.backends.scripted import ScriptedBackend
from deepinfer_api.telemetry import Histogram, PrometheusExposition, ServerMetrics

FAMILIES = {
    "num_requests_running": "gauge",
    "num_requests_waiting": "gauge",
    "kv_cache_usage_ratio": "gauge",
    "prompt_tokens_total": "counter",
    "generation_tokens_total": "counter",
    "prefix_cache_queries_total": "counter",
    "prefix_cache_hits_total": "counter",
    "num_preemptions_total": "counter",
    "request_success_total": "counter",
    "request_errors_total": "counter",
    "admission_rejections_total": "counter",
    "time_to_first_token_seconds": "histogram",
    "inter_token_latency_seconds": "histogram",
    "e2e_request_latency_seconds": "histogram",
    "request_queue_time_seconds": "histogram",
    "request_prefill_time_seconds": "histogram",
    "request_decode_time_seconds": "histogram",
    "request_prompt_tokens": "histogram",
    "request_generation_tokens": "histogram",
    "step_duration_seconds": "histogram",
    "spec_decode_draft_tokens_total": "counter",
    "spec_decode_accepted_tokens_total": "counter",
    "spec_decode_verify_len": "histogram",
    "codec_encode_seconds": "histogram",
    "codec_stream_push_seconds": "histogram",
    "grammar_compile_seconds": "histogram",
    "step_predicted_seconds_total": "counter",
    "step_prediction_error_ratio": "gauge",
}


def step(**fields):
    values = dict.fromkeys(
        ("num_running", "num_waiting", "num_prefill_tokens", "num_decode_tokens", "num_preemptions",
         "num_prefix_cache_queries", "num_prefix_cache_hits"), 0,
    )  # fmt: skip
    return StepStats(
        **(values | {"kv_cache_usage_ratio": 0.0, "step_seconds": 0.01, "execute_seconds": 0.009} | fields)
    )


def test_names_and_types_are_the_documented_ones():
    exposition = PrometheusExposition(ServerMetrics())
    exposition.attach(ScriptedBackend(lambda request: []), "m")
    text = exposition.render().decode()
    types = dict(re.findall(r"^# TYPE deepinfer:(\S+) (\S+)$", text, re.MULTILINE))
    assert types == FAMILIES
    for family in text_string_to_metric_families(text):
        assert all(sample.labels["model_name"] == "m" for sample in family.samples)


def test_drafts_are_counted():
    metrics = ServerMetrics()
    metrics.on_step(step(num_decode_tokens=5, num_draft_tokens=3, num_accepted_tokens=2, verify_lens=(4, 1)))
    metrics.on_step(step(num_decode_tokens=2, num_draft_tokens=1, verify_lens=(2,)))
    assert (metrics.num_draft_tokens, metrics.num_accepted_tokens) == (4, 2)
    assert (sum(metrics.verify_len.counts), metrics.verify_len.total) == (3, 7.0)


def test_predicted_and_measured_times_of_steps():
    metrics = ServerMetrics()
    exposition = PrometheusExposition(metrics)

    def shown():
        text = exposition.render().decode()
        found = re.findall(r'^deepinfer:step_prediction_error_ratio\{.*quantile="([0-9.]+)"\} (\S+)$', text, re.M)
        return {quantile: float(value) for quantile, value in found}

    assert shown() == {"0.5": 0.0, "0.95": 0.0}
    for number in range(600):
        metrics.on_step(step(num_decode_tokens=1, step_seconds=0.1, predicted_seconds=0.15 if number % 10 else 0.3))
    metrics.on_step(step(num_decode_tokens=1, step_seconds=0.1))  # not predicted
    metrics.on_step(step(step_seconds=0.1, predicted_seconds=9.0))  # nothing computed
    assert shown() == pytest.approx({"0.5": 0.5, "0.95": 2.0})
    assert len(metrics.prediction_errors) == 512
    assert metrics.num_predicted_seconds == pytest.approx(60 * 0.3 + 540 * 0.15)


def test_steps_are_sorted_by_phase_and_summed():
    metrics = ServerMetrics()
    metrics.on_step(step(num_prefill_tokens=5, num_prefix_cache_queries=10, num_prefix_cache_hits=4))
    metrics.on_step(step(num_decode_tokens=1, kv_cache_usage_ratio=0.5, num_preemptions=2))
    metrics.on_step(step(num_prefill_tokens=1, num_decode_tokens=1))
    metrics.on_step(step())
    assert {phase: sum(h.counts) for phase, h in metrics.step_duration.items()} == {
        "prefill": 1,
        "decode": 1,
        "mixed": 1,
    }
    assert (metrics.num_prefix_cache_queries, metrics.num_prefix_cache_hits, metrics.num_preemptions) == (10, 4, 2)
    assert metrics.kv_cache_usage_ratio == 0.0


@given(st.lists(st.floats(0, 1000), max_size=50))
def test_buckets_are_cumulative_counts(values):
    histogram = Histogram((0.1, 1, 10))
    for value in values:
        histogram.observe(value)
    expected = [sum(v <= bound for v in values) for bound in (0.1, 1, 10)] + [len(values)]
    assert [count for _, count in histogram.buckets()] == expected
    assert histogram.total == pytest.approx(sum(values))


def test_labels_appear_with_their_values():
    metrics = ServerMetrics()
    metrics.request_success["stop"] += 3
    metrics.admission_rejections["requests"] += 1
    text = PrometheusExposition(metrics).render().decode()
    assert 'deepinfer:request_success_total{finish_reason="stop",model_name=""} 3.0' in text
    assert 'deepinfer:admission_rejections_total{model_name="",reason="requests"} 1.0' in text
