"""From engine outputs to pieces: counts, stop strings, held-back tokens, endings. The text stream is a scripted one."""

import asyncio
from dataclasses import dataclass

import pytest

from deepinfer.errors import RequestAbortedError, RequestError
from deepinfer.outputs import EngineOutput, RequestStats, TokenLogprob
from deepinfer.request import FinishReason
from deepinfer_api.backends.base import BackendLoad
from deepinfer_api.codec import EncodedPrompt
from deepinfer_api.generation import Choice, Generation, GenerationError
from deepinfer_api.telemetry import ServerMetrics


@dataclass
class Delta:
    text: str
    stop: str | None
    num_tokens: int
    num_released_tokens: int


class HoldingStream:
    """Spells token i as the letter i, holds back the last `num_held` tokens, and stops at `stop_id`."""

    def __init__(self, num_held=0, stop_id=None):
        self.ids, self.num_held, self.stop_id, self.num_out = [], num_held, stop_id, 0

    def _delta(self, until, stop):
        text = "".join(chr(97 + i) for i in self.ids[self.num_out : until])
        self.num_out = max(self.num_out, until)
        return Delta(text, stop, len(self.ids), self.num_out)

    def push(self, token_ids):
        for token_id in token_ids:
            self.ids.append(token_id)
            if token_id == self.stop_id:
                return self._delta(len(self.ids) - 1, "STOP")
        return self._delta(max(self.num_out, len(self.ids) - self.num_held), None)

    def finish(self):
        return self._delta(len(self.ids), None)


class Replay:
    """A backend that has nothing to say beyond its outputs."""

    def __init__(self):
        self.aborted = []

    def abort(self, request_id):
        self.aborted.append(request_id)

    def load(self):
        return BackendLoad(0, 0)


def output(ids, reason=None, **fields):
    return EngineOutput("r", list(ids), reason, **fields)


def choice(outputs=(), stream=None, index=0, **fields):
    async def replay():
        for item in outputs:
            if isinstance(item, Exception):
                raise item
            yield item
            await asyncio.sleep(0)

    return Choice(index, f"r{index}", EncodedPrompt("p", [1, 2, 3]), replay(), stream or HoldingStream(), **fields)


def collect(generation):
    async def run():
        return [(c.index, piece) async for c, piece in generation.pieces()]

    return asyncio.run(run())


def make(choices, per_prompt=1):
    return Generation(choices, per_prompt, 0.0, Replay(), ServerMetrics())


def entries(ids):
    return [TokenLogprob(i, -0.1 * i, 1) for i in ids]


def test_pieces_of_a_plain_output():
    generation = make([choice([output([0, 1]), output([2], FinishReason.LENGTH)])])
    pieces = [piece for _, piece in collect(generation)]
    assert [(p.text, p.token_ids, p.is_last) for p in pieces] == [("ab", [0, 1], False), ("c", [2], True)]
    assert generation.backend.aborted == []
    assert generation.usage().num_output_tokens == 3
    assert generation.choices[0].finish_reason is FinishReason.LENGTH


def test_the_end_token_counts_and_stays_out_of_the_text():
    generation = make(
        [choice([output([0]), output([1, 9], FinishReason.STOP, stop_token_id=9, logprobs=entries([1, 9]))])]
    )
    pieces = [piece for _, piece in collect(generation)]
    assert "".join(p.text for p in pieces) == "ab"
    assert [e.token_id for e in pieces[-1].logprobs] == [1]
    assert generation.usage().num_output_tokens == 3
    assert generation.choices[0].stop == 9


def test_the_end_token_shows_where_asked():
    generation = make([choice([output([0, 9], FinishReason.STOP, stop_token_id=9)], shows_stop_token=True)])
    assert "".join(p.text for _, p in collect(generation)) == "aj"
    assert generation.usage().num_output_tokens == 2


def test_a_stop_string_aborts_and_cuts_the_count():
    generation = make(
        [choice([output([0]), output([1, 5, 2]), output([3], FinishReason.LENGTH)], HoldingStream(stop_id=5))]
    )
    pieces = [piece for _, piece in collect(generation)]
    assert "".join(p.text for p in pieces) == "ab"
    assert pieces[-1].is_last
    assert generation.choices[0].stop == "STOP"
    assert generation.choices[0].finish_reason is FinishReason.STOP
    assert generation.usage().num_output_tokens == 3
    assert generation.backend.aborted == ["r0"]


def test_a_stop_string_in_the_last_output_needs_no_abort():
    generation = make([choice([output([0, 5, 2], FinishReason.LENGTH)], HoldingStream(stop_id=5))])
    collect(generation)
    assert generation.choices[0].finish_reason is FinishReason.STOP
    assert generation.usage().num_output_tokens == 2
    assert generation.backend.aborted == []


@pytest.mark.parametrize("num_held", [0, 1, 2, 5])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_logprobs_and_ids_come_with_their_text(num_held, size):
    ids = list(range(7))
    steps = [ids[i : i + size] for i in range(0, 7, size)]
    outputs = [output(step, logprobs=entries(step)) for step in steps]
    outputs[-1].finish_reason = FinishReason.LENGTH
    pieces = [piece for _, piece in collect(make([choice(outputs, HoldingStream(num_held))]))]
    for piece in pieces:
        assert len(piece.text) == len(piece.token_ids) == len(piece.logprobs)
        assert [e.token_id for e in piece.logprobs] == piece.token_ids
    assert [i for piece in pieces for i in piece.token_ids] == ids


def test_several_outputs_share_one_prompt():
    choices = [choice([output([0], num_cached_tokens=2), output([1], FinishReason.STOP)], index=i) for i in range(3)]
    choices[1].outputs = choice([output([4, 4, 4], FinishReason.LENGTH)]).outputs
    generation = make(choices, per_prompt=3)
    pieces = collect(generation)
    assert "".join(p.text for i, p in pieces if i == 1) == "eee"
    usage = generation.usage()
    assert (usage.num_prompt_tokens, usage.num_output_tokens) == (3, 7)
    assert usage.num_cached_tokens <= 3
    assert generation.metrics.time_to_first_token.counts != [0] * 19


def test_an_engine_error_of_one_output_ends_all():
    good = choice([output([0])] * 50 + [output([1], FinishReason.STOP)], index=0)
    bad = choice([output([], FinishReason.ERROR, error_message="logits are not finite")], index=1)
    generation = make([good, bad], per_prompt=2)
    with pytest.raises(GenerationError, match="not finite"):
        collect(generation)
    assert generation.backend.aborted == ["r0"]


def test_what_the_engine_refuses_is_the_request_s_fault():
    refused = choice([output([], FinishReason.ERROR, error_message="it can never fit", is_refused=True)])
    with pytest.raises(RequestError, match="never fit"):
        collect(make([refused]))


@pytest.mark.parametrize(
    ("outputs", "error"),
    [
        ([output([0]), output([], FinishReason.ABORT)], RequestAbortedError),
        ([output([0])], GenerationError),
        ([output([0]), RuntimeError("broken")], RuntimeError),
    ],
)
@pytest.mark.parametrize("num_choices", [1, 2])
def test_abnormal_ends_are_errors(outputs, error, num_choices):
    with pytest.raises(error):
        collect(make([choice(outputs, index=i) for i in range(num_choices)], per_prompt=num_choices))


def test_leaving_early_aborts():
    generation = make([choice([output([0])] * 5)])

    async def run():
        pieces = generation.pieces()
        await anext(pieces)
        await pieces.aclose()

    asyncio.run(run())
    assert generation.backend.aborted == ["r0"]


def test_timings_add_up():
    generation = make(
        [choice([output([0], num_cached_tokens=1), output([1], FinishReason.LENGTH, num_cached_tokens=1)])]
    )
    collect(generation)
    shown = generation.timings().to_json()
    assert (shown["cache_n"], shown["prompt_n"], shown["predicted_n"]) == (1, 2, 2)
    assert shown["predicted_ms"] >= 0
    assert shown["prompt_ms"] > 0


def test_timings_show_drafts_if_there_were_any():
    times = dict.fromkeys(("arrival_time", "queue_seconds", "prefill_seconds", "decode_seconds"), 0.0)
    counts = {"num_prompt_tokens": 3, "num_cached_tokens": 0, "num_output_tokens": 1, "num_preemptions": 0}
    stats = RequestStats(**times, **counts, num_draft_tokens=7, num_accepted_tokens=4)
    for last, expected in ((stats, (7, 4)), (None, (None, None))):
        generation = make([choice([output([0], FinishReason.LENGTH, stats=last)])])
        collect(generation)
        shown = generation.timings().to_json()
        assert (shown.get("draft_n"), shown.get("draft_n_accepted")) == expected
