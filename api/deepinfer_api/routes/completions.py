"""POST completions."""

from __future__ import annotations

import time
import uuid

from fastapi import APIRouter, Request
from starlette.responses import Response

from deepinfer_api.codec import EncodedPrompt, encode_off_loop
from deepinfer_api.dependencies import ServicesDependency
from deepinfer_api.errors import unsupported
from deepinfer_api.formats.completions import CompletionFormat
from deepinfer_api.routes.generate import prepare_constraint, receive, start
from deepinfer_api.schemas.completions import WITHOUT_EFFECT, CompletionBody
from deepinfer_api.schemas.sampling import check_token_ids
from deepinfer_api.services import Model, Services

router = APIRouter(tags=["generation"])


@router.post(
    "/completions",
    summary="Continue a text",
    openapi_extra={"requestBody": {"content": {"application/json": {"schema": CompletionBody.model_json_schema()}}}},
)
async def create_completion(request: Request, services: ServicesDependency) -> Response:
    """Continue one prompt or several, given as text or as token ids, streamed or whole."""
    arrival, body = await receive(request, services, CompletionBody)
    model = services.ready_model()
    services.check_model_name(body.model)
    body.check()
    if body.prompt_logprobs is not None and body.stream:
        raise unsupported(
            "prompt_logprobs", "prompt_logprobs is served without stream only; echo with logprobs streams"
        )
    echo = bool(body.echo)
    prompt_logprobs = body.prompt_logprobs
    if echo and body.logprobs is not None:
        prompt_logprobs = max(body.logprobs, prompt_logprobs or 0)
    if body.max_output_tokens == 0 and prompt_logprobs is None:
        # The engine computes a prompt without output only for its log probabilities.
        prompt_logprobs = 0
    params = body.sampling_params(
        model.codec,
        max_tokens=body.max_output_tokens,
        logprobs=body.logprobs,
        prompt_logprobs=prompt_logprobs,
        defaults=services.settings.default_sampling,
    )
    constraint = await prepare_constraint(model, body.required_form(), services)
    prompts = await _encode(body, model, services)
    return start(
        services,
        model,
        arrival,
        body,
        prompts,
        params,
        lambda: CompletionFormat(
            response_id=f"cmpl-{uuid.uuid4().hex}",
            created=int(time.time()),
            model=model.name,
            codec=model.codec,
            echo=echo,
            num_logprobs=body.logprobs,
            wants_usage=body.wants_usage,
            wants_continuous_usage=body.wants_continuous_usage,
            wants_token_ids=bool(body.return_token_ids),
            wants_prompt_logprobs=body.prompt_logprobs is not None,
        ),
        constraint=constraint,
        route="completions",
        prompt_param="prompt",
        without_effect=WITHOUT_EFFECT,
    )


async def _encode(body: CompletionBody, model: Model, services: Services) -> list[EncodedPrompt]:
    given = body.prompts()
    is_single = not isinstance(body.prompt, list) or isinstance(body.prompt[0], int)
    begin = time.perf_counter()
    prompts = []
    for index, prompt in enumerate(given):
        if isinstance(prompt, str):
            prompts.append(
                await encode_off_loop(
                    model.codec,
                    prompt,
                    with_start_token=body.add_special_tokens is not False,
                    with_special_tokens=not body.split_special_tokens,
                )
            )
        else:
            check_token_ids(prompt, model.codec.vocab_size, "prompt" if is_single else f"prompt[{index}]")
            text = model.codec.decode(prompt, skip_special_tokens=False) if body.echo else ""
            prompts.append(EncodedPrompt(text, prompt))
    services.metrics.codec_encode.observe(time.perf_counter() - begin)
    return prompts
