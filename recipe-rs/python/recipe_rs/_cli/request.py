"""Request bodies of the three protocols, and the prompts made of them."""

from __future__ import annotations

import argparse
from typing import Literal, TypeAlias

from recipe_rs import (
    ChatCompletionRequest,
    ConversationRequest,
    ConversionOptions,
    DeepseekV4Encoding,
    DeepseekV41Encoding,
    MessagesRequest,
    ModelVersion,
    RenderedPrompt,
    ResponsesRequest,
)

Api: TypeAlias = Literal["chat", "responses", "messages"]

APIS: dict[Api, type[ChatCompletionRequest] | type[ResponsesRequest] | type[MessagesRequest]] = {
    "chat": ChatCompletionRequest,
    "responses": ResponsesRequest,
    "messages": MessagesRequest,
}


def add_conversion_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say how a request is converted."""
    parser.add_argument(
        "--no-compat",
        dest="compat",
        action="store_false",
        help="convert and render as deepinfer serves, not as the official codec does",
    )


def converted(body: str, api: Api, options: argparse.Namespace) -> ConversationRequest:
    """The conversation of a request body; raises ConversionError."""
    return APIS[api](body).convert(ConversionOptions().with_compat(options.compat))


def rendered(request: ConversationRequest, *, compat: bool) -> RenderedPrompt:
    """The prompt of a converted request."""
    encoding = DeepseekV41Encoding() if is_v41(request) else DeepseekV4Encoding()
    return encoding.with_compat(compat).render_conversation(request.conversation)


def is_v41(request: ConversationRequest) -> bool:
    """Whether a request is for DeepSeek V4.1."""
    return request.model_version == ModelVersion.DeepseekV41Flash
