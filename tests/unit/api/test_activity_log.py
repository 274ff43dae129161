"""One log line for each busy window, none while idle."""

import logging

import pytest

from deepinfer_api.backends.base import BackendLoad
from deepinfer_api.logs import ActivityLog
from deepinfer_api.telemetry import ServerMetrics


@pytest.fixture
def metrics():
    return ServerMetrics()


def lines(caplog):
    return [record.fields for record in caplog.records if record.name == "deepinfer_api.activity"]


def test_a_busy_window_is_one_line(metrics, caplog, monkeypatch):
    monkeypatch.setattr("time.monotonic", lambda: 100.0)
    log = ActivityLog(metrics, lambda: BackendLoad(3, 2))
    metrics.num_prefill_rows, metrics.num_decode_rows = 500, 100
    metrics.num_prefix_cache_queries, metrics.num_prefix_cache_hits = 400, 100
    with caplog.at_level(logging.INFO):
        log.tick(105.0)
        log.tick(110.0)
        log.tick(111.0)
    (fields,) = lines(caplog)
    assert fields == {"running": 3, "waiting": 2, "prompt_tok_per_s": 50.0, "generation_tok_per_s": 10.0, "kv_use": 0.0,
                      "hit_ratio": 0.25}  # fmt: skip


def test_idle_windows_and_pauses_are_silent(metrics, caplog, monkeypatch):
    monkeypatch.setattr("time.monotonic", lambda: 0.0)
    log = ActivityLog(metrics, lambda: BackendLoad(0, 0))
    with caplog.at_level(logging.INFO):
        log.tick(10.0)
        metrics.num_decode_rows = 5
        log.tick(1000.0)
        metrics.num_decode_rows = 6
        log.tick(1010.0)
    assert [fields["generation_tok_per_s"] for fields in lines(caplog)] == [0.1]
