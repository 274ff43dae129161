"""POST tokenize and detokenize."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Request
from pydantic import Field

from deepinfer_api.admission import read_body
from deepinfer_api.codec import OFF_LOOP_CHARACTERS, encode_chat_off_loop, encode_off_loop
from deepinfer_api.dependencies import ServicesDependency
from deepinfer_api.errors import invalid_request
from deepinfer_api.schemas.chat import ChatMessage
from deepinfer_api.schemas.sampling import check_token_ids
from deepinfer_api.schemas.validation import RequestBody, parse_body

router = APIRouter(tags=["tokens"])


class TokenizeBody(RequestBody):
    """Either a prompt or messages."""

    model: str | None = None
    prompt: str | None = None
    messages: Annotated[list[ChatMessage], Field(min_length=1)] | None = None
    add_special_tokens: bool | None = None
    split_special_tokens: bool | None = None
    add_generation_prompt: bool | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    return_token_strs: bool | None = None


class DetokenizeBody(RequestBody):
    """Ids to spell out."""

    model: str | None = None
    tokens: list[int]


@router.post("/tokenize", summary="Text or a conversation to ids")
async def tokenize(request: Request, services: ServicesDependency) -> dict[str, Any]:
    """The ids a completion or chat request with the same content would use."""
    body = parse_body(TokenizeBody, await read_body(request, services.settings, services.uploads))
    services.check_model_name(body.model)
    model = services.loaded_model()
    codec = model.codec
    if (body.prompt is None) == (body.messages is None):
        raise invalid_request("exactly one of prompt and messages is needed", "prompt")
    if body.messages is not None:
        encoded = await encode_chat_off_loop(
            codec,
            [message.to_template(index) for index, message in enumerate(body.messages)],
            template_kwargs=body.chat_template_kwargs or {},
            add_generation_prompt=body.add_generation_prompt is not False,
            continue_final_message=False,
        )
    else:
        encoded = await encode_off_loop(
            codec,
            body.prompt or "",
            with_start_token=body.add_special_tokens is not False,
            with_special_tokens=not body.split_special_tokens,
        )
    token_ids = list(encoded.token_ids)
    answer: dict[str, Any] = {
        "count": len(token_ids),
        "max_model_len": model.backend.max_model_len,
        "tokens": token_ids,
    }
    if body.return_token_strs:
        answer["token_strs"] = [codec.token_bytes(i).decode(errors="replace") for i in token_ids]
    return answer


@router.post("/detokenize", summary="Ids to text")
async def detokenize(request: Request, services: ServicesDependency) -> dict[str, Any]:
    """The text of the ids, special tokens spelled out."""
    body = parse_body(DetokenizeBody, await read_body(request, services.settings, services.uploads))
    services.check_model_name(body.model)
    codec = services.loaded_model().codec
    check_token_ids(body.tokens, codec.vocab_size, "tokens")

    def decode() -> str:
        return codec.decode(body.tokens, skip_special_tokens=False)

    is_short = len(body.tokens) < OFF_LOOP_CHARACTERS
    return {"prompt": decode() if is_short else await asyncio.to_thread(decode)}
