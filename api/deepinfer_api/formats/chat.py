"""Chat completions: `chat.completion` and `chat.completion.chunk`."""

from __future__ import annotations

import json
from typing import Any

from deepinfer_api.codec import Codec
from deepinfer_api.errors import ApiError
from deepinfer_api.formats.base import DONE_FRAME, error_frame, json_string, one_line
from deepinfer_api.formats.logprobs import chat_logprobs, prompt_logprobs
from deepinfer_api.generation import Choice, Generation, Piece


class ChatFormat:
    """Frames and body of one chat answer.

    Args:
        response_id: id of the answer.
        created: seconds since 1970.
        model: served model id.
        codec: spells the tokens of log probabilities.
        wants_usage: whether the stream ends with a usage chunk.
        wants_continuous_usage: whether each chunk carries usage.
        wants_logprobs: whether log probabilities were asked for.
        wants_token_ids: whether choices show their ids.
        wants_prompt_logprobs: whether the answer shows them.
    """

    def __init__(
        self,
        *,
        response_id: str,
        created: int,
        model: str,
        codec: Codec,
        wants_usage: bool = False,
        wants_continuous_usage: bool = False,
        wants_logprobs: bool = False,
        wants_token_ids: bool = False,
        wants_prompt_logprobs: bool = False,
    ) -> None:
        self._codec = codec
        self._wants_usage = wants_usage
        self._wants_continuous_usage = wants_continuous_usage
        self._wants_logprobs = wants_logprobs
        self._wants_token_ids = wants_token_ids
        self._wants_prompt_logprobs = wants_prompt_logprobs
        self._identity = {"id": response_id, "object": "chat.completion", "created": created, "model": model}
        chunk = json.dumps(self._identity | {"object": "chat.completion.chunk"}, separators=(",", ":"))[:-1]
        self._chunk_head = f"data: {chunk},"
        self._choice_head = f'{self._chunk_head}"choices":[{{"index":'
        self._is_plain = not (wants_logprobs or wants_token_ids or wants_continuous_usage)
        self._plain_tail = '},"logprobs":null,"finish_reason":null}]' + (
            ',"usage":null}\n\n' if wants_usage else "}\n\n"
        )
        self._plain_head: dict[int, str] = {}
        self._texts: dict[int, list[str]] = {}
        self._reasoning: dict[int, list[str]] = {}
        self._logprobs: dict[int, list[dict[str, Any]]] = {}
        self._token_ids: dict[int, list[int]] = {}

    def piece_frames(self, generation: Generation, choice: Choice, piece: Piece) -> bytes:
        """See `AnswerFormat.piece_frames`."""
        frames = ""
        index = choice.index
        head = self._plain_head.get(index)
        if head is None and (piece.text or piece.token_ids or piece.reasoning or piece.is_last):
            frames = self._frame(generation, choice, {"role": "assistant", "content": ""}, None, None)
            head = self._plain_head[index] = f'{self._choice_head}{index},"delta":{{"content":'
        if piece.reasoning or (piece.reasoning_token_ids and self._wants_token_ids):
            frames += self._frame(generation, choice, {"reasoning_content": piece.reasoning}, None, None, piece)
        if piece.text or (piece.token_ids and not self._is_plain):
            if self._is_plain:
                frames += f"{head}{json_string(piece.text)}{self._plain_tail}"
            else:
                frames += self._frame(generation, choice, {"content": piece.text}, piece, None)
        if piece.is_last:
            frames += self._frame(generation, choice, {}, None, choice.finish_reason)
        return frames.encode()

    def _frame(
        self,
        generation: Generation,
        choice: Choice,
        delta: dict[str, str],
        piece: Piece | None,
        reason: str | None,
        thought: Piece | None = None,
    ) -> str:
        shown: dict[str, Any] = {"index": choice.index, "delta": delta, "logprobs": None, "finish_reason": reason}
        if piece is not None:
            if piece.logprobs is not None and self._wants_logprobs:
                shown["logprobs"] = {"content": chat_logprobs(self._codec, piece.logprobs), "refusal": None}
            if self._wants_token_ids:
                shown["token_ids"] = piece.token_ids
        if thought is not None and self._wants_token_ids:
            shown["token_ids"] = list(thought.reasoning_token_ids)
        chunk: dict[str, Any] = {"choices": [shown]}
        if reason is not None:
            if isinstance(choice.stop, int | str):
                shown["stop_reason"] = choice.stop
            is_end = all(other.finish_reason is not None for other in generation.choices)
            if is_end and not self._wants_usage:
                chunk["timings"] = generation.timings().to_json()
        if self._wants_usage:
            chunk["usage"] = generation.usage().to_json() if self._wants_continuous_usage else None
        if self._wants_token_ids and delta.get("role"):
            chunk["prompt_token_ids"] = list(choice.prompt.token_ids)
        return f"{self._chunk_head}{one_line(chunk)[1:]}\n\n"

    def final_frames(self, generation: Generation) -> bytes:
        """See `AnswerFormat.final_frames`."""
        if not self._wants_usage:
            return DONE_FRAME
        chunk = {"choices": [], "usage": generation.usage().to_json(), "timings": generation.timings().to_json()}
        return f"{self._chunk_head}{one_line(chunk)[1:]}\n\n".encode() + DONE_FRAME

    def error_frames(self, error: ApiError) -> bytes:
        """See `AnswerFormat.error_frames`."""
        return error_frame(error)

    def add(self, choice: Choice, piece: Piece) -> None:
        """See `AnswerFormat.add`."""
        self._texts.setdefault(choice.index, []).append(piece.text)
        if piece.reasoning:
            self._reasoning.setdefault(choice.index, []).append(piece.reasoning)
        self._token_ids.setdefault(choice.index, []).extend((*piece.reasoning_token_ids, *piece.token_ids))
        if piece.logprobs is not None and self._wants_logprobs:
            self._logprobs.setdefault(choice.index, []).extend(chat_logprobs(self._codec, piece.logprobs))

    def body(self, generation: Generation) -> dict[str, Any]:
        """See `AnswerFormat.body`."""
        choices = []
        for choice in generation.choices:
            index = choice.index
            shown: dict[str, Any] = {
                "index": index,
                "message": {"role": "assistant", "content": "".join(self._texts.get(index, ())), "refusal": None},
                "logprobs": {"content": self._logprobs.get(index, []), "refusal": None}
                if self._wants_logprobs
                else None,
                "finish_reason": choice.finish_reason,
                "stop_reason": choice.stop,
            }
            if index in self._reasoning:
                shown["message"]["reasoning_content"] = "".join(self._reasoning[index])
            if self._wants_token_ids:
                shown["token_ids"] = self._token_ids.get(index, [])
            choices.append(shown)
        answer = self._identity | {
            "choices": choices,
            "usage": generation.usage().to_json(),
            "timings": generation.timings().to_json(),
        }
        first = generation.choices[0]
        if self._wants_token_ids:
            answer["prompt_token_ids"] = list(first.prompt.token_ids)
        if self._wants_prompt_logprobs:
            answer["prompt_logprobs"] = prompt_logprobs(self._codec, first.prompt.token_ids, first.prompt_logprobs)
        return answer
