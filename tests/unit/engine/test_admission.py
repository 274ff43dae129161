from array import array

import numpy as np
import pytest

from deepinfer import InvalidSamplingParamsError, PromptTooLongError, RequestError, SamplingParams
from deepinfer.engine.admission import AdmissionRules

RULES = AdmissionRules(vocab_size=100, max_model_len=32, eos_token_ids=frozenset({2}))


def make(prompt=(1, 2), request_id="a", **params):
    return RULES.make_request(request_id, prompt, SamplingParams(**params), arrival_time=0.0)


@pytest.mark.parametrize(
    "kind",
    [
        list,
        tuple,
        np.array,
        lambda ids: array("I", ids),
        lambda ids: array("q", ids),
        lambda ids: memoryview(array("I", ids)),
        lambda ids: memoryview(array("i", ids)),
        lambda ids: memoryview(array("I", [ids[0], 0, ids[1], 0, ids[2]]))[::2],
    ],
)
def test_every_form_of_ids(kind):
    assert make(kind([5, 6, 99])).prompt_token_ids == array("I", [5, 6, 99])


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        ([], "prompt is empty"),
        ([100], "token id 100, but the model's vocabulary ends at 99"),
        ([-1], r"token ids in \[0, 100\)"),
        ([2**32], r"token ids in \[0, 100\)"),
        ([1.5], r"token ids in \[0, 100\)"),
        (["a"], r"token ids in \[0, 100\)"),
        ("text", r"token ids in \[0, 100\)"),
        (None, r"token ids in \[0, 100\)"),
        (7, r"token ids in \[0, 100\)"),
    ],
)
def test_bad_prompts(prompt, message):
    with pytest.raises(RequestError, match=message) as caught:
        make(prompt)
    assert caught.value.param == "prompt"


@pytest.mark.parametrize("request_id", ["", "x" * 513, None, 7])
def test_bad_ids(request_id):
    with pytest.raises(RequestError, match="request_id must be a string"):
        make(request_id=request_id)


def test_context_bounds_the_output():
    assert make([1] * 20, max_tokens=None).max_output_tokens == 12
    assert make([1] * 20, max_tokens=100).max_output_tokens == 12
    assert make([1] * 20, max_tokens=5).max_output_tokens == 5
    assert make([1] * 31, max_tokens=5).max_output_tokens == 1


def test_a_prompt_that_leaves_no_room():
    with pytest.raises(PromptTooLongError) as caught:
        make([1] * 32)
    assert (caught.value.num_tokens, caught.value.max_model_len) == (32, 32)
    assert make([1] * 32, max_tokens=0, prompt_logprobs=0).max_output_tokens == 0
    with pytest.raises(PromptTooLongError):
        make([1] * 33, max_tokens=0, prompt_logprobs=0)


@pytest.mark.parametrize(
    ("params", "name"),
    [({"logit_bias": {100: 1.0}}, "logit_bias"), ({"bad_words_token_ids": ((1, 100),)}, "bad_words_token_ids")],
)
def test_ids_outside_the_vocabulary_in_parameters(params, name):
    with pytest.raises(InvalidSamplingParamsError, match=f"{name} names token id 100") as caught:
        make(**params)
    assert caught.value.param == name


def test_seeds_are_chosen_anew_and_kept_if_given():
    assert make(seed=7).sampling_params.seed == 7
    assert make().sampling_params.seed != make().sampling_params.seed
