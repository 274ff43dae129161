"""Counts and times of the server, and their Prometheus form.

Observing costs a bisection and two additions: it happens for every token. The names are those of docs/metrics.md.
Everything is written by the event loop's thread, except `on_step`, which the engine's thread calls.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from deepinfer.metrics import StepStats
from deepinfer.outputs import RequestStats
from deepinfer_api.backends.base import GenerationBackend

PREFIX = "deepinfer:"
MAX_PREDICTION_ERRORS = 512

TOKEN_COUNT_BUCKETS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072)
LATENCY_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900)
STEP_BUCKETS = (0.0005, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 2.048)
VERIFY_LEN_BUCKETS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16)
CODEC_BUCKETS = (1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 5e-2, 0.1, 0.5)


class Histogram:
    """Counts per bucket; bounds are inclusive upper ends."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(self.bounds) + 1)
        self.total = 0.0

    def observe(self, value: float, count: int = 1) -> None:
        """Add `count` observations of `value`."""
        self.counts[bisect_left(self.bounds, value)] += count
        self.total += value * count

    def buckets(self) -> list[tuple[str, float]]:
        """Cumulative counts by upper bound, as Prometheus wants them."""
        names = [*(str(float(bound)) for bound in self.bounds), "+Inf"]
        return list(zip(names, (float(n) for n in accumulate(self.counts)), strict=True))


class ServerMetrics:
    """Everything `GET /metrics` shows."""

    def __init__(self) -> None:
        self.time_to_first_token = Histogram(LATENCY_BUCKETS)
        self.inter_token_latency = Histogram(LATENCY_BUCKETS)
        self.e2e_request_latency = Histogram(LATENCY_BUCKETS)
        self.request_queue_time = Histogram(LATENCY_BUCKETS)
        self.request_prefill_time = Histogram(LATENCY_BUCKETS)
        self.request_decode_time = Histogram(LATENCY_BUCKETS)
        self.request_prompt_tokens = Histogram(TOKEN_COUNT_BUCKETS)
        self.request_generation_tokens = Histogram(TOKEN_COUNT_BUCKETS)
        self.codec_encode = Histogram(CODEC_BUCKETS)
        self.codec_stream_push = Histogram(CODEC_BUCKETS)
        self.grammar_compile = Histogram(LATENCY_BUCKETS)
        self.num_predicted_seconds = 0.0
        self.prediction_errors: deque[float] = deque(maxlen=MAX_PREDICTION_ERRORS)
        self.step_duration = {phase: Histogram(STEP_BUCKETS) for phase in ("prefill", "decode", "mixed")}
        self.request_success: Counter[str] = Counter()
        self.request_errors: Counter[str] = Counter()
        self.admission_rejections: Counter[str] = Counter()
        self.num_prompt_tokens = 0
        self.num_generation_tokens = 0
        self.num_prefix_cache_queries = 0
        self.num_prefix_cache_hits = 0
        self.num_preemptions = 0
        self.num_draft_tokens = 0
        self.num_accepted_tokens = 0
        self.verify_len = Histogram(VERIFY_LEN_BUCKETS)
        self.kv_cache_usage_ratio = 0.0
        self.num_prefill_rows = 0
        self.num_decode_rows = 0

    def on_step(self, step: StepStats) -> None:
        """Take the numbers of one engine step; called from the engine's thread, one step at a time."""
        if step.num_prefill_tokens or step.num_decode_tokens:
            phase = (
                "mixed"
                if step.num_prefill_tokens and step.num_decode_tokens
                else ("prefill" if step.num_prefill_tokens else "decode")
            )
            self.step_duration[phase].observe(step.step_seconds)
            if step.predicted_seconds > 0.0 and step.step_seconds > 0.0:
                self.num_predicted_seconds += step.predicted_seconds
                self.prediction_errors.append(abs(step.predicted_seconds - step.step_seconds) / step.step_seconds)
        self.num_prefill_rows += step.num_prefill_tokens
        self.num_decode_rows += step.num_decode_tokens
        self.num_prefix_cache_queries += step.num_prefix_cache_queries
        self.num_prefix_cache_hits += step.num_prefix_cache_hits
        self.num_preemptions += step.num_preemptions
        self.num_draft_tokens += step.num_draft_tokens
        self.num_accepted_tokens += step.num_accepted_tokens
        for verify_len in step.verify_lens:
            self.verify_len.observe(verify_len)
        self.kv_cache_usage_ratio = step.kv_cache_usage_ratio

    def on_request_end(
        self, *, num_prompt_tokens: int, num_output_tokens: int, seconds: float, stats: Iterable[RequestStats]
    ) -> None:
        """Take the numbers of one HTTP request that was admitted, however it ended."""
        self.num_prompt_tokens += num_prompt_tokens
        self.num_generation_tokens += num_output_tokens
        self.request_prompt_tokens.observe(num_prompt_tokens)
        self.request_generation_tokens.observe(num_output_tokens)
        self.e2e_request_latency.observe(seconds)
        for each in stats:
            self.request_queue_time.observe(each.queue_seconds)
            self.request_prefill_time.observe(each.prefill_seconds)
            self.request_decode_time.observe(each.decode_seconds)


class PrometheusExposition(Collector):
    """Reads `ServerMetrics` and the backend's load at each scrape."""

    def __init__(self, metrics: ServerMetrics) -> None:
        self._metrics = metrics
        self._model_name = ""
        self._backend: GenerationBackend | None = None
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)

    def attach(self, backend: GenerationBackend, model_name: str) -> None:
        """Show this backend's load, and this label, from now on."""
        self._backend = backend
        self._model_name = model_name

    def render(self) -> bytes:
        """The text format, version 0.0.4."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        """All families; called by the registry."""
        metrics = self._metrics
        load = self._backend.load() if self._backend is not None else None
        yield self._gauge("num_requests_running", "Requests that get tokens.", load.num_running if load else 0)
        yield self._gauge("num_requests_waiting", "Requests that wait for room.", load.num_waiting if load else 0)
        yield self._gauge("kv_cache_usage_ratio", "Share of KV blocks in use, 0 to 1.", metrics.kv_cache_usage_ratio)
        yield self._counter("prompt_tokens", "Prompt tokens of admitted requests.", metrics.num_prompt_tokens)
        yield self._counter("generation_tokens", "Tokens produced.", metrics.num_generation_tokens)
        yield self._counter("prefix_cache_queries", "Prompt tokens looked up.", metrics.num_prefix_cache_queries)
        yield self._counter("prefix_cache_hits", "Prompt tokens found.", metrics.num_prefix_cache_hits)
        yield self._counter("num_preemptions", "Requests that lost their blocks for a while.", metrics.num_preemptions)
        yield self._counter("spec_decode_draft_tokens", "Drafts that were verified.", metrics.num_draft_tokens)
        yield self._counter("spec_decode_accepted_tokens", "Drafts that became output.", metrics.num_accepted_tokens)
        yield self._labelled("request_success", "Outputs by how they ended.", "finish_reason", metrics.request_success)
        yield self._labelled("request_errors", "Requests that failed.", "kind", metrics.request_errors)
        yield self._labelled("admission_rejections", "Requests refused.", "reason", metrics.admission_rejections)
        for name, text, histogram in (
            ("time_to_first_token_seconds", "Arrival to first token.", metrics.time_to_first_token),
            ("inter_token_latency_seconds", "Token to token of one output.", metrics.inter_token_latency),
            ("e2e_request_latency_seconds", "Arrival to the end of the answer.", metrics.e2e_request_latency),
            ("request_queue_time_seconds", "Arrival to first scheduled.", metrics.request_queue_time),
            ("request_prefill_time_seconds", "First scheduled to first token.", metrics.request_prefill_time),
            ("request_decode_time_seconds", "First token to last.", metrics.request_decode_time),
            ("request_prompt_tokens", "Prompt tokens of one request.", metrics.request_prompt_tokens),
            ("request_generation_tokens", "Output tokens of one request.", metrics.request_generation_tokens),
            ("spec_decode_verify_len", "Rows of one request in one step with speculation on.", metrics.verify_len),
            ("codec_encode_seconds", "Rendering and encoding one prompt.", metrics.codec_encode),
            ("codec_stream_push_seconds", "Turning one step's ids into text.", metrics.codec_stream_push),
            ("grammar_compile_seconds", "Making the form of an output ready.", metrics.grammar_compile),
        ):
            family = HistogramMetricFamily(PREFIX + name, text, labels=["model_name"])
            family.add_metric([self._model_name], histogram.buckets(), histogram.total)
            yield family
        steps = HistogramMetricFamily(
            PREFIX + "step_duration_seconds", "One engine step.", labels=["model_name", "phase"]
        )
        for phase, histogram in metrics.step_duration.items():
            steps.add_metric([self._model_name, phase], histogram.buckets(), histogram.total)
        yield steps
        yield self._counter("step_predicted_seconds", "Predicted time of steps.", metrics.num_predicted_seconds)
        errors = GaugeMetricFamily(
            PREFIX + "step_prediction_error_ratio",
            "Error of a step's predicted time / its measured time, over recent steps.",
            labels=["model_name", "quantile"],
        )
        ordered = sorted(metrics.prediction_errors.copy())
        for quantile in ("0.5", "0.95"):
            value = ordered[int(float(quantile) * (len(ordered) - 1))] if ordered else 0.0
            errors.add_metric([self._model_name, quantile], value)
        yield errors

    def _gauge(self, name: str, text: str, value: float) -> Metric:
        family = GaugeMetricFamily(PREFIX + name, text, labels=["model_name"])
        family.add_metric([self._model_name], value)
        return family

    def _counter(self, name: str, text: str, value: float) -> Metric:
        family = CounterMetricFamily(PREFIX + name, text, labels=["model_name"])
        family.add_metric([self._model_name], value)
        return family

    def _labelled(self, name: str, text: str, label: str, values: Counter[str]) -> Metric:
        family = CounterMetricFamily(PREFIX + name, text, labels=["model_name", label])
        for value, count in sorted(values.items()):
            family.add_metric([self._model_name, value], count)
        return family
