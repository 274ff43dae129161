"""POST chat/completions."""

from __future__ import annotations

import time
import uuid
from dataclasses import replace

from fastapi import APIRouter, Request
from starlette.responses import Response

from deepinfer_api.codec import EncodedPrompt, encode_chat_off_loop
from deepinfer_api.dependencies import ServicesDependency
from deepinfer_api.errors import unsupported
from deepinfer_api.formats.chat import ChatFormat
from deepinfer_api.reasoning import find_thinking
from deepinfer_api.routes.generate import prepare_constraint, receive, start
from deepinfer_api.schemas.chat import ABOUT_THINKING, WITHOUT_EFFECT, ChatBody
from deepinfer_api.services import Model, Services

router = APIRouter(tags=["generation"])


@router.post(
    "/chat/completions",
    summary="Answer a conversation",
    openapi_extra={"requestBody": {"content": {"application/json": {"schema": ChatBody.model_json_schema()}}}},
)
async def create_chat_completion(request: Request, services: ServicesDependency) -> Response:
    """Generate the next message of a conversation, streamed or whole."""
    arrival, body = await receive(request, services, ChatBody)
    model = services.ready_model()
    services.check_model_name(body.model)
    body.check()
    if body.prompt_logprobs is not None and body.stream:
        raise unsupported("prompt_logprobs", "prompt_logprobs is served without stream only")
    params = body.sampling_params(
        model.codec,
        max_tokens=body.max_output_tokens,
        logprobs=body.num_logprobs,
        prompt_logprobs=body.prompt_logprobs,
        defaults=services.settings.default_sampling,
    )
    form = body.required_form()
    prompt = await _encode(body, model, services)
    thinking = find_thinking(model.codec.thinking, prompt.token_ids, continues_answer=body.continues_final_message)
    if thinking is not None:
        params = replace(params, **thinking.budget_params(body.thinking_budget))
        if form is not None:
            form = replace(form, spec=replace(form.spec, **thinking.form_fields()))
    constraint = await prepare_constraint(model, form, services)
    return start(
        services,
        model,
        arrival,
        body,
        [prompt],
        params,
        lambda: ChatFormat(
            response_id=f"chatcmpl-{uuid.uuid4().hex}",
            created=int(time.time()),
            model=model.name,
            codec=model.codec,
            wants_usage=body.wants_usage,
            wants_continuous_usage=body.wants_continuous_usage,
            wants_logprobs=bool(body.logprobs),
            wants_token_ids=bool(body.return_token_ids),
            wants_prompt_logprobs=body.prompt_logprobs is not None,
        ),
        constraint=constraint,
        route="chat",
        prompt_param="messages",
        without_effect=WITHOUT_EFFECT if thinking is not None else (*WITHOUT_EFFECT, *ABOUT_THINKING),
        thinking=thinking,
    )


async def _encode(body: ChatBody, model: Model, services: Services) -> EncodedPrompt:
    messages = body.template_messages()
    continues = body.continues_final_message
    begin = time.perf_counter()
    prompt = await encode_chat_off_loop(
        model.codec,
        messages,
        template_kwargs=body.template_arguments(can_think=model.codec.thinking is not None),
        add_generation_prompt=not continues and body.add_generation_prompt is not False,
        continue_final_message=continues,
    )
    services.metrics.codec_encode.observe(time.perf_counter() - begin)
    return prompt
