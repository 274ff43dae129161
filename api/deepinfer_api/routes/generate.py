"""The steps that every generating route shares: read, admit, start, answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from starlette.requests import Request
from starlette.responses import Response

from deepinfer.errors import EngineError
from deepinfer.outputs import TokenConstraint
from deepinfer.sampling_params import SamplingParams
from deepinfer_api.admission import read_body
from deepinfer_api.codec import EncodedPrompt
from deepinfer_api.errors import invalid_request, to_api_error, too_long
from deepinfer_api.exchange import Exchange
from deepinfer_api.formats.base import AnswerFormat
from deepinfer_api.generation import Choice, Generation
from deepinfer_api.reasoning import Thinking
from deepinfer_api.schemas.sampling import SamplingBody, seed_of_choice
from deepinfer_api.schemas.structured import RequiredForm
from deepinfer_api.schemas.validation import Body, ignored_fields, parse_body
from deepinfer_api.services import Model, Services
from deepinfer_api.streaming import GenerationResponse


@dataclass(frozen=True, slots=True)
class Arrival:
    """A request at the door: when it came, what it is called, and whose it is."""

    time: float
    request_id: str
    client_key: str


async def receive(request: Request, services: Services, kind: type[Body]) -> tuple[Arrival, Body]:
    """Read and check the body.

    Raises:
        ApiError: 400, 408, 413, or 503 while no model is ready.
    """
    services.ready_model()
    data = await read_body(request, services.settings, services.uploads)
    # Time starts when the request is complete: a slow upload is no time in the queue.
    arrival = Arrival(time.monotonic(), request.state.request_id, request.state.client_key)
    return arrival, parse_body(kind, data)


async def prepare_constraint(model: Model, form: RequiredForm | None, services: Services) -> TokenConstraint | None:
    """Compile the form that an answer must have.

    Raises:
        ApiError: 400 that names the place in the field, 429 when too many wait for it.
    """
    if form is None:
        return None
    begin = time.perf_counter()
    try:
        return await model.backend.prepare_grammar(form.spec)
    except EngineError as error:
        raise form.refusal(error) from error
    finally:
        services.metrics.grammar_compile.observe(time.perf_counter() - begin)


def start(
    services: Services,
    model: Model,
    arrival: Arrival,
    body: SamplingBody,
    prompts: Sequence[EncodedPrompt],
    params: SamplingParams,
    make_answer: Callable[[], AnswerFormat],
    *,
    constraint: TokenConstraint | None,
    route: str,
    prompt_param: str,
    without_effect: Sequence[str],
    thinking: Thinking | None = None,
) -> Response:
    """Admit the request, start its outputs in the engine, and return the running answer.

    Raises:
        ApiError: 400 for a prompt that is empty or too long, 429 when too much is in flight.
    """
    backend, codec = model.backend, model.codec
    num_choices = body.num_choices
    if len(prompts) * num_choices > services.settings.max_outputs:
        raise invalid_request(
            f"{len(prompts)} prompt(s) with {num_choices} output(s) each are more than the "
            f"{services.settings.max_outputs} outputs this server gives one request",
            "n" if len(prompts) == 1 else prompt_param,
        )
    for index, prompt in enumerate(prompts):
        param = prompt_param if len(prompts) == 1 else f"{prompt_param}[{index}]"
        if not len(prompt.token_ids):
            raise invalid_request(f"{param} is empty: the model needs at least one token to start from", param)
        if len(prompt.token_ids) >= backend.max_model_len:
            raise too_long(len(prompt.token_ids), backend.max_model_len, param)
    ignored = ignored_fields(body, without_effect)
    stop = body.stop_strings()
    ticket = services.admission.enter(arrival.request_id, sum(len(prompt.token_ids) for prompt in prompts))
    choices: list[Choice] = []
    generation = Generation(choices, num_choices, arrival.time, backend, services.metrics)
    try:
        for prompt in prompts:
            for number in range(num_choices):
                choice_params = params
                if params.seed is not None and number:
                    choice_params = replace(params, seed=seed_of_choice(params.seed, number))
                request_id = (
                    ticket.request_id if len(prompts) * num_choices == 1 else f"{ticket.request_id}-{len(choices)}"
                )
                choices.append(
                    Choice(
                        index=len(choices),
                        request_id=request_id,
                        prompt=prompt,
                        outputs=backend.generate(
                            request_id,
                            prompt.token_ids,
                            choice_params,
                            arrival_time=arrival.time,
                            client_key=arrival.client_key,
                            constraint=constraint,
                        ),
                        text_stream=codec.new_text_stream(
                            stop=stop,
                            skip_special_tokens=body.skip_special_tokens is not False,
                            include_stop_str_in_output=bool(body.include_stop_str_in_output),
                        ),
                        reasoning=None if thinking is None else thinking.new_split(codec),
                        shows_stop_token=bool(body.include_stop_str_in_output),
                    )
                )
    except BaseException as failure:
        generation.abort()
        ticket.close(0.0)
        if not isinstance(failure, Exception):
            raise
        error = to_api_error(failure, prompt_param=prompt_param)
        if error.status == 429:
            services.metrics.admission_rejections["engine_queue"] += 1
            error.headers |= services.admission.headers()
        raise error from failure
    headers = services.admission.headers()
    if ignored:
        headers["x-ignored-fields"] = ",".join(_header_safe(name) for name in ignored)
    exchange = Exchange(
        route=route,
        request_id=arrival.request_id,
        settings=services.settings,
        metrics=services.metrics,
        ticket=ticket,
        prompt_param=prompt_param,
        headers=headers,
        ignored_fields=ignored,
    )
    return GenerationResponse(generation, make_answer(), exchange, services.running, is_stream=bool(body.stream))


def _header_safe(name: str) -> str:
    return "".join(c if "!" <= c <= "~" and c != "," else "?" for c in name[:64])
