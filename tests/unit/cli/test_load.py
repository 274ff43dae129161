"""The load generator: prompts, figures, and that failures are counted."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepinfer.cli.http_client import ServerError, StreamEvent
from deepinfer.cli.load import LoadPlan, make_prompts, quantile, run_load, summarize


def plan(**fields):
    values = {"model": "m", "num_clients": 2, "num_requests": 5, "num_prompt_tokens": 10, "num_shared_tokens": 6,
              "max_tokens": 3}  # fmt: skip
    return LoadPlan(**(values | fields))


class FakeClient:
    """Answers three pieces; fails every request whose prompt is among `bad`."""

    def __init__(self, fail_every=None):
        self.bodies, self.fail_every = [], fail_every

    async def stream(self, path, body):
        self.bodies.append((path, body))
        if self.fail_every and len(self.bodies) % self.fail_every == 0:
            raise ServerError("the server answered 500: boom")
        for number in range(3):
            await asyncio.sleep(0)
            yield StreamEvent({"choices": [{"text": "x"}]}, 100.0 + number)
        yield StreamEvent(
            {"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 3,
                                      "prompt_tokens_details": {"cached_tokens": 6}}}, 103.0
        )  # fmt: skip


def test_prompts_share_their_beginning_and_are_repeatable():
    prompts = make_prompts(plan(), 3)
    words = [prompt.split() for prompt in prompts]
    assert all(len(each) == 10 for each in words)
    assert len({tuple(each[:6]) for each in words}) == 1
    assert len({tuple(each) for each in words}) == 3
    assert make_prompts(plan(), 3) == prompts
    assert make_prompts(plan(seed=1), 3) != prompts


def test_every_request_is_sent_once_and_counted():
    client = FakeClient()
    result = asyncio.run(run_load(client, plan(num_warmup=1)))
    assert len(client.bodies) == 6
    shown = result.to_json()
    assert (shown["num_failed"], shown["num_output_tokens"], shown["cached_ratio"]) == (0, 15, 0.6)
    assert shown["itl_ms"]["p50"] == 1000.0
    assert client.bodies[0][0] == "/v1/completions"
    assert client.bodies[0][1]["ignore_eos"] is True


def test_chat_sends_messages():
    client = FakeClient()
    asyncio.run(run_load(client, plan(use_chat=True, ignore_eos=False)))
    path, body = client.bodies[0]
    assert path == "/v1/chat/completions"
    assert body["messages"][0]["role"] == "user"
    assert "ignore_eos" not in body


def test_failures_are_data():
    result = asyncio.run(run_load(FakeClient(fail_every=2), plan(num_requests=6)))
    assert result.num_failed == 3
    assert result.to_json()["errors"] == {"the server answered 500: boom": 3}


@given(st.lists(st.floats(0, 1e3), min_size=1, max_size=30), st.floats(0, 1))
def test_quantiles_lie_between_neighbours(values, share):
    ordered = sorted(values)
    found = quantile(ordered, share)
    assert ordered[0] * 1e3 - 1e-3 <= found <= ordered[-1] * 1e3 + 1e-3


def test_quantiles_of_known_values():
    assert quantile([1.0, 2.0, 3.0], 0.5) == 2000.0
    assert quantile([1.0, 2.0], 0.25) == 1250.0
    assert quantile([], 0.5) is None
    assert summarize([])["p99"] is None
    assert summarize([0.5])["max"] == pytest.approx(500.0)
