"""The offline engine over a codec that spells token n as one character."""

import pytest

from deepinfer import LLM, ConfigError, FinishReason, GrammarSpec, RequestError, RequestOutput, SamplingParams
from deepinfer.structured import Vocabulary

GREEDY = SamplingParams(temperature=0.0, max_tokens=8, ignore_eos=True)


class Delta:
    def __init__(self, text, stop, num_tokens):
        self.text, self.stop, self.num_tokens = text, stop, num_tokens


class LetterStream:
    """Holds nothing back: stops are single letters."""

    def __init__(self, stop):
        self.stop = stop
        self.num_tokens = 0

    def push(self, token_ids):
        text = ""
        for token_id in token_ids:
            self.num_tokens += 1
            if chr(token_id + 33) in self.stop:
                return Delta(text, chr(token_id + 33), self.num_tokens)
            text += chr(token_id + 33)
        return Delta(text, None, self.num_tokens)

    def finish(self):
        return Delta("", None, self.num_tokens)


class LetterCodec:
    tokenizer = "the tokenizer"

    def encode(self, text):
        return [ord(letter) - 33 for letter in text]

    def encode_chat(self, messages, *, tools=None, template_kwargs=None):
        if not messages:
            raise RequestError("the conversation is empty", param="messages")
        return self.encode("".join(message["content"] for message in messages))

    def make_vocabulary(self, config):
        tokens = [chr(token_id + 33).encode() for token_id in range(1, config.vocab_size)]
        return Vocabulary(
            tokens=[b"<eos>", *tokens],
            special_token_ids=[0],
            eos_token_ids=[0],
            encode=self.encode,
            size=config.vocab_size,
        )

    def make_stream(self, *, stop, skip_special_tokens):
        return LetterStream(stop)


@pytest.fixture
def make_llm(make_core):
    def make(**options):
        core_options = {name: options.pop(name) for name in ("num_blocks", "max_model_len") if name in options}
        return LLM.from_core(make_core(vocab_size=90, **core_options), LetterCodec(), **options)

    return make


def text_of(llm, prompt, params=GREEDY):
    core = llm._core
    return "".join(chr(token + 33) for token in core.executor.predict(LetterCodec().encode(prompt), params))


def test_texts_stand_in_the_order_of_the_prompts(make_llm):
    llm = make_llm()
    prompts = ["abc", "b" * 50, "c", "abc"]
    assert llm.generate(prompts, GREEDY) == [text_of(llm, prompt) for prompt in prompts]
    assert llm.generate("abc", GREEDY) == [text_of(llm, "abc")]
    assert llm.generate([], GREEDY) == []


def test_ids_and_one_set_of_parameters_for_each(make_llm):
    llm = make_llm()
    params = [GREEDY, SamplingParams(temperature=0.0, max_tokens=3, ignore_eos=True)]
    texts = llm.generate(prompt_token_ids=[[1, 2], [1, 2]], sampling_params=params)
    assert texts[0][:3] == texts[1]
    assert [len(text) for text in texts] == [8, 3]


def test_outputs_carry_everything(make_llm):
    llm = make_llm(decode_sequence=False)
    params = SamplingParams(temperature=0.0, max_tokens=4, logprobs=2, prompt_logprobs=1, ignore_eos=True)
    (output,) = llm.generate(["abcd"], params)
    assert isinstance(output, RequestOutput)
    assert output.prompt == "abcd"
    assert list(output.prompt_token_ids) == LetterCodec().encode("abcd")
    assert output.text == text_of(llm, "abcd", params)
    assert [entry.token_id for entry in output.logprobs] == output.token_ids
    assert len(output.prompt_logprobs) == 3
    assert output.finish_reason == "length"
    assert output.stats.num_output_tokens == 4


def test_errors_belong_to_their_prompt(make_llm):
    llm = make_llm(decode_sequence=False, max_model_len=20)
    outputs = llm.generate(prompt_token_ids=[[1], [], [1] * 20, [95], [2]], sampling_params=GREEDY)
    assert [output.finish_reason for output in outputs] == [
        "length",
        "error",
        "prompt_length_exceeded",
        "error",
        "length",
    ]
    assert "prompt is empty" in str(outputs[1].error)
    assert outputs[4].text == text_of(llm, "#")


def test_an_invalid_prompt_is_named_before_anything_runs(make_llm):
    llm = make_llm()
    with pytest.raises(RequestError, match="prompt 1: prompt is empty"):
        llm.generate(["a", "", "b"], GREEDY)
    assert not llm._core.has_work
    assert llm.generate(["a"], GREEDY) == [text_of(llm, "a")]


def test_a_stop_text_cuts_text_and_tokens(make_llm):
    llm = make_llm(decode_sequence=False)
    full = text_of(llm, "abc")
    stop = full[3]
    (output,) = llm.generate(["abc"], GREEDY, stop=[stop])
    assert output.text == full[: full.index(stop)]
    assert len(output.token_ids) == full.index(stop) + 1
    assert (output.finish_reason, output.stop_reason) == (FinishReason.STOP, stop)
    llm.generate(["x"], GREEDY)
    assert llm._core.scheduler.cache.num_available_blocks == 64


def test_stream_yields_the_same_text_piece_by_piece(make_llm):
    llm = make_llm()
    pieces = list(llm.stream("abc", GREEDY))
    assert len(pieces) == 8
    assert "".join(pieces) == text_of(llm, "abc")
    assert "".join(llm.stream([{"role": "user", "content": "abc"}], GREEDY)) == text_of(llm, "abc")
    with pytest.raises(RequestError, match="prompt is empty"):
        list(llm.stream("", GREEDY))


def test_an_abandoned_stream_gives_back_its_blocks(make_llm):
    llm = make_llm()
    stream = llm.stream("abc", GREEDY)
    next(stream)
    stream.close()
    assert llm._core.scheduler.cache.num_available_blocks == 64
    assert llm.generate(["abc"], GREEDY) == [text_of(llm, "abc")]


def test_chat_takes_one_conversation_or_several(make_llm):
    llm = make_llm()
    one = [{"role": "user", "content": "abc"}]
    two = [{"role": "user", "content": "xyz"}]
    assert llm.chat(one, GREEDY) == [text_of(llm, "abc")]
    assert llm.chat([one, two], GREEDY) == [text_of(llm, "abc"), text_of(llm, "xyz")]
    with pytest.raises(RequestError, match="conversation is empty"):
        llm.chat([[]], GREEDY)


def test_a_grammar_travels_with_its_request(make_llm):
    llm = make_llm()
    seen = []
    execute = llm._core.executor.execute

    def spy(plan):
        seen.extend(new.constraint.make_matcher().compute_mask([]) for new in plan.scheduled_new_requests)
        return execute(plan)

    llm._core.executor.execute = spy
    llm.generate(["a", "b"], GREEDY, grammar=GrammarSpec("choice", choices=("yes", "no")))
    allowed = sum(1 << ord(letter) - 33 for letter in "yn")
    assert [int.from_bytes(mask, "little") for mask in seen] == [allowed, allowed]
    with pytest.raises(RequestError, match="unclosed"):
        llm.generate(["a"], GREEDY, grammar=GrammarSpec("regex", "("))


def test_a_program_gives_the_same_texts_each_time_it_runs(make_llm):
    params = SamplingParams(max_tokens=20, ignore_eos=True)
    first = make_llm(seed=1).generate(["abc", "abc"], params)
    assert first == make_llm(seed=1).generate(["abc", "abc"], params)
    assert first != make_llm(seed=2).generate(["abc", "abc"], params)
    assert first[0] != first[1]


def test_two_engines_live_side_by_side(make_llm):
    first, second = make_llm(), make_llm()
    streams = [first.stream("abc", GREEDY), second.stream("abc", GREEDY)]
    pieces = list(zip(*streams, strict=True))
    assert len(pieces) == 8
    assert all(left == right for left, right in pieces)


def test_calls_that_make_no_sense(make_llm):
    llm = make_llm()
    for prompts, token_ids in ((None, None), (["a"], [[1]])):
        with pytest.raises(RequestError, match="either prompts or prompt_token_ids"):
            llm.generate(prompts, GREEDY, token_ids)
    with pytest.raises(RequestError, match="there are 2 prompts, but 1 sampling_params"):
        llm.generate(["a", "b"], [GREEDY])
    with pytest.raises(RequestError, match="multi_modal_data"):
        llm.generate(["a"], GREEDY, multi_modal_data={"image_bytes": []})


@pytest.mark.parametrize(
    ("name", "value"),
    [("trust_remote_code", True), ("expert_parallel_size", 2), ("revision", "main"), ("gpu_memory_utilization", 0.5)],
)
def test_options_that_are_not_covered_are_refused_by_name(name, value):
    with pytest.raises(ConfigError, match=name):
        LLM("no model", **{name: value})
