"""The body of a chat completion."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from deepinfer_api.errors import invalid_request, unsupported
from deepinfer_api.schemas.sampling import MAX_TOP_LOGPROBS, SamplingBody
from deepinfer_api.schemas.validation import RequestBody, show

WITHOUT_EFFECT = ("user", "metadata", "store", "service_tier", "reasoning_effort", "verbosity", "parallel_tool_calls",
                  "prediction", "prompt_cache_key", "safety_identifier")  # fmt: skip
"""Declared fields that are accepted and change nothing."""

ABOUT_THINKING = ("thinking", "thinking_token_budget")
"""Fields that change nothing with a model that does not think."""

THINKING_TYPES = ("enabled", "disabled", "adaptive", "auto")

RESERVED_TEMPLATE_ARGUMENTS = frozenset({"messages", "tools"})
"""Template arguments that come from fields of their own."""

NOT_SERVED_ROLES = {
    "tool": "tool results are not served yet",
    "function": "the role function is not served; it was replaced by tool",
    "latest_reminder": "this model does not know the role latest_reminder",
}


class ChatMessage(RequestBody):
    """One message; content is text or a list of parts. Keys not named here reach the template as they are."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function", "latest_reminder"]
    content: Any = None
    name: str | None = None
    tool_calls: Any = None
    function_call: Any = None
    audio: Any = None
    reasoning_content: str | None = None
    prefix: bool | None = None

    def to_template(self, index: int) -> dict[str, Any]:
        """The message as the template sees it, content as one string.

        Raises:
            ApiError: 400 that names the part that is missing, wrong, or not served.
        """
        path = f"messages[{index}]"
        if self.role in NOT_SERVED_ROLES:
            raise unsupported(f"{path}.role", f"{path}.role is {self.role}: {NOT_SERVED_ROLES[self.role]}")
        for field_name in ("tool_calls", "function_call", "audio"):
            if getattr(self, field_name):
                raise unsupported(f"{path}.{field_name}", f"{path}.{field_name} is not served yet")
        message: dict[str, Any] = {
            "role": "system" if self.role == "developer" else self.role,
            "content": content_text(self.content, f"{path}.content"),
        }
        if self.name is not None:
            message["name"] = self.name
        if self.reasoning_content is not None:
            message["reasoning_content"] = self.reasoning_content
        return message | {key: value for key, value in (self.model_extra or {}).items() if value is not None}


class ChatBody(SamplingBody):
    """POST /v1/chat/completions."""

    messages: Annotated[list[ChatMessage], Field(min_length=1)]
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=MAX_TOP_LOGPROBS)] | None = None
    tools: Any = None
    tool_choice: Any = None
    functions: Any = None
    function_call: Any = None
    modalities: list[str] | None = None
    audio: Any = None
    web_search_options: Any = None
    chat_template_kwargs: dict[str, Any] | None = None
    add_generation_prompt: bool | None = None
    continue_final_message: bool | None = None
    store: bool | None = None
    service_tier: str | None = None
    reasoning_effort: Any = None
    verbosity: str | None = None
    parallel_tool_calls: bool | None = None
    thinking: Any = None
    thinking_token_budget: int | None = None
    prediction: Any = None
    prompt_cache_key: str | None = None
    safety_identifier: str | None = None

    def check(self) -> None:
        """Raise ApiError (400) for what is not served, by the field's name."""
        self.check_common()
        for field_name in ("tools", "functions"):
            if getattr(self, field_name):
                raise unsupported(field_name, f"{field_name} is not served yet; leave it out to get a text answer")
        if self.tool_choice not in (None, "none", "auto"):
            raise unsupported("tool_choice", f"tool_choice is {show(self.tool_choice)}, but tool calls are not served "
                              "yet; leave it out")  # fmt: skip
        if self.function_call not in (None, "none", "auto"):
            raise unsupported("function_call", "function_call is not served yet; leave it out")
        if self.modalities not in (None, ["text"]):
            raise unsupported("modalities", f"modalities must be ['text'], but is {show(self.modalities)}")
        for field_name in ("audio", "web_search_options"):
            if getattr(self, field_name) is not None:
                raise unsupported(field_name, f"{field_name} is not served; leave it out")
        self._check_thinking()
        for name in RESERVED_TEMPLATE_ARGUMENTS & (self.chat_template_kwargs or {}).keys():
            path = f"chat_template_kwargs.{name}"
            raise invalid_request(f"{path} is reserved; send {name} as its own field", path)
        if self.top_logprobs is not None and not self.logprobs:
            raise invalid_request("top_logprobs needs logprobs to be true", "top_logprobs")
        if self.continue_final_message and self.add_generation_prompt:
            raise invalid_request(
                "continue_final_message and add_generation_prompt exclude each other", "continue_final_message"
            )

    def _check_thinking(self) -> None:
        thinking = self.thinking
        if thinking is not None:
            if not isinstance(thinking, dict):
                raise invalid_request(f"thinking must be an object with a type, but is {show(thinking)}", "thinking")
            if thinking.get("type") not in THINKING_TYPES:
                raise invalid_request(
                    f"thinking.type must be one of {', '.join(THINKING_TYPES)}, but is {show(thinking.get('type'))}",
                    "thinking.type",
                )
        budget, name = self._thinking_budget_and_name()
        if budget is not None and (not isinstance(budget, int) or isinstance(budget, bool) or budget < 0):
            raise invalid_request(f"{name} must be an integer >= 0, but is {show(budget)}", name)

    def _thinking_budget_and_name(self) -> tuple[Any, str]:
        if self.thinking_token_budget is not None:
            return self.thinking_token_budget, "thinking_token_budget"
        return (self.thinking or {}).get("budget_tokens"), "thinking.budget_tokens"

    @property
    def thinking_budget(self) -> int | None:
        """Most tokens of thinking, or None."""
        budget: int | None = self._thinking_budget_and_name()[0]
        return budget

    def template_arguments(self, *, can_think: bool) -> dict[str, Any]:
        """`chat_template_kwargs`, and for a model that thinks whether it should, unless they say so themselves."""
        arguments = dict(self.chat_template_kwargs or {})
        kind = (self.thinking or {}).get("type")
        if can_think and kind in ("enabled", "disabled"):
            for name in ("enable_thinking", "thinking"):
                arguments.setdefault(name, kind == "enabled")
        return arguments

    @property
    def continues_final_message(self) -> bool:
        """Whether the answer goes on where the last message, an assistant's, ends."""
        return bool(self.continue_final_message or self.messages[-1].prefix)

    def template_messages(self) -> list[dict[str, Any]]:
        """The conversation as the template sees it.

        Raises:
            ApiError: 400 that names the message at fault.
        """
        messages = self.messages
        last = len(messages) - 1
        path = f"messages[{last}]"
        for index, message in enumerate(messages):
            if message.prefix and (index != last or message.role != "assistant"):
                where = f"messages[{index}].prefix"
                raise invalid_request(f"{where} may be true only on a last message of the assistant", where)
        if self.continue_final_message and messages[last].role != "assistant":
            raise invalid_request(
                f"continue_final_message needs a last message of the assistant, but messages[{last}].role is "
                f"{messages[last].role}",
                f"messages[{last}].role",
            )
        if self.continues_final_message and not content_text(messages[last].content, f"{path}.content").strip():
            raise invalid_request(
                f"{path}.content has no text to continue; leave the message out to start a new answer",
                f"{path}.content",
            )
        return [message.to_template(index) for index, message in enumerate(messages)]

    @property
    def max_output_tokens(self) -> int | None:
        """The newer name wins; None is what the context leaves."""
        return self.given_max_tokens

    @property
    def num_logprobs(self) -> int | None:
        """Alternatives for each output token, or None."""
        return (self.top_logprobs or 0) if self.logprobs else None


def content_text(content: Any, path: str) -> str:
    """The text of a message: a string, or text parts joined by blank lines.

    Raises:
        ApiError: 400 that names the part.
    """
    if isinstance(content, str):
        return content
    if content is None:
        raise invalid_request(f"{path} is required", path, code="missing_required_parameter")
    if not isinstance(content, list):
        raise invalid_request(f"{path} must be a string or a list of parts, but is {show(content)}", path)
    texts = []
    for index, part in enumerate(content):
        where = f"{path}[{index}]"
        if not isinstance(part, dict):
            raise invalid_request(f"{where} must be an object with a type, but is {show(part)}", where)
        kind = part.get("type")
        if kind in ("text", "input_text", "output_text", "refusal"):
            key = "refusal" if kind == "refusal" else "text"
            if not isinstance(part.get(key), str):
                raise invalid_request(f"{where}.{key} must be a string, but is {show(part.get(key))}", f"{where}.{key}")
            texts.append(part[key])
        elif isinstance(kind, str):
            raise unsupported(where, f"{where} is a part of type {show(kind)}, but this model reads text only")
        else:
            raise invalid_request(f"{where}.type must be a string, but is {show(kind)}", f"{where}.type")
    return "\n\n".join(texts)
