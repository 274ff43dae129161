"""Plain completions: `text_completion`, streamed or whole."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from deepinfer.outputs import TokenLogprob
from deepinfer_api.codec import Codec
from deepinfer_api.errors import ApiError
from deepinfer_api.formats.base import DONE_FRAME, error_frame, json_string, one_line
from deepinfer_api.formats.logprobs import CompletionLogprobs, prompt_logprobs
from deepinfer_api.generation import Choice, Generation, Piece


class CompletionFormat:
    """Frames and body of one completion answer.

    Args:
        response_id: id of the answer.
        created: seconds since 1970.
        model: served model id.
        codec: spells the tokens of log probabilities.
        echo: whether each text starts with its prompt.
        num_logprobs: alternatives shown for each token, or None.
        wants_usage, wants_continuous_usage, wants_token_ids, wants_prompt_logprobs: what the request asked for.
    """

    def __init__(
        self,
        *,
        response_id: str,
        created: int,
        model: str,
        codec: Codec,
        echo: bool = False,
        num_logprobs: int | None = None,
        wants_usage: bool = False,
        wants_continuous_usage: bool = False,
        wants_token_ids: bool = False,
        wants_prompt_logprobs: bool = False,
    ) -> None:
        self._codec = codec
        self._echo = echo
        self._num_logprobs = num_logprobs
        self._wants_usage = wants_usage
        self._wants_continuous_usage = wants_continuous_usage
        self._wants_token_ids = wants_token_ids
        self._wants_prompt_logprobs = wants_prompt_logprobs
        self._identity = {"id": response_id, "object": "text_completion", "created": created, "model": model}
        self._chunk_head = f"data: {json.dumps(self._identity, separators=(',', ':'))[:-1]},"
        self._is_plain = num_logprobs is None and not (wants_token_ids or wants_continuous_usage)
        self._plain_tail = ',"logprobs":null,"finish_reason":null}]' + (
            ',"usage":null}\n\n' if wants_usage else "}\n\n"
        )
        self._plain_head: dict[int, str] = {}
        self._logprobs: dict[int, CompletionLogprobs] = {}
        self._texts: dict[int, list[str]] = {}
        self._token_ids: dict[int, list[int]] = {}
        self._shown_logprobs: dict[int, dict[str, list[Any]]] = {}

    def piece_frames(self, generation: Generation, choice: Choice, piece: Piece) -> bytes:
        """See `AnswerFormat.piece_frames`."""
        frames = ""
        index = choice.index
        head = self._plain_head.get(index)
        if head is None:
            head = self._plain_head[index] = f'{self._chunk_head}"choices":[{{"index":{index},"text":'
            if self._echo:
                entries = self._prompt_entries(choice)
                frames = self._frame(generation, choice, choice.prompt.text, entries, [], None)
        if piece.text or (piece.token_ids and not self._is_plain):
            if self._is_plain:
                frames += f"{head}{json_string(piece.text)}{self._plain_tail}"
            else:
                frames += self._frame(generation, choice, piece.text, piece.logprobs, piece.token_ids, None)
        if piece.is_last:
            frames += self._frame(generation, choice, "", None, [], choice.finish_reason)
        return frames.encode()

    def _prompt_entries(self, choice: Choice) -> list[TokenLogprob | int] | None:
        if self._num_logprobs is None:
            return None
        return [*list(choice.prompt.token_ids)[:1], *(choice.prompt_logprobs or ())]

    def _logprobs_of(self, choice: Choice, entries: Sequence[TokenLogprob | int]) -> dict[str, list[Any]]:
        grown = self._logprobs.get(choice.index)
        if grown is None:
            grown = self._logprobs[choice.index] = CompletionLogprobs(self._codec, self._num_logprobs or 0)
        return grown.extend(entries)

    def _frame(
        self,
        generation: Generation,
        choice: Choice,
        text: str,
        entries: Sequence[TokenLogprob | int] | None,
        token_ids: list[int],
        reason: str | None,
    ) -> str:
        shown: dict[str, Any] = {"index": choice.index, "text": text, "logprobs": None, "finish_reason": reason}
        if entries is not None and self._num_logprobs is not None:
            shown["logprobs"] = self._logprobs_of(choice, entries)
        if self._wants_token_ids:
            shown["token_ids"] = token_ids
        chunk: dict[str, Any] = {"choices": [shown]}
        if reason is not None:
            shown["stop_reason"] = choice.stop
            is_end = all(other.finish_reason is not None for other in generation.choices)
            if is_end and not self._wants_usage:
                chunk["timings"] = generation.timings().to_json()
        if self._wants_usage:
            chunk["usage"] = generation.usage().to_json() if self._wants_continuous_usage else None
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
        index = choice.index
        texts = self._texts.get(index)
        if texts is None:
            texts = self._texts[index] = [choice.prompt.text] if self._echo else []
            self._token_ids[index] = []
            if self._num_logprobs is not None:
                self._shown_logprobs[index] = self._logprobs_of(
                    choice, (self._prompt_entries(choice) or []) if self._echo else []
                )
        texts.append(piece.text)
        self._token_ids[index].extend(piece.token_ids)
        if piece.logprobs is not None and self._num_logprobs is not None:
            for key, values in self._logprobs_of(choice, piece.logprobs).items():
                self._shown_logprobs[index][key].extend(values)

    def body(self, generation: Generation) -> dict[str, Any]:
        """See `AnswerFormat.body`."""
        choices = []
        for choice in generation.choices:
            shown: dict[str, Any] = {
                "index": choice.index,
                "text": "".join(self._texts.get(choice.index, ())),
                "logprobs": self._shown_logprobs.get(choice.index),
                "finish_reason": choice.finish_reason,
                "stop_reason": choice.stop,
            }
            if self._wants_token_ids:
                shown["token_ids"] = self._token_ids.get(choice.index, [])
                shown["prompt_token_ids"] = list(choice.prompt.token_ids)
            if self._wants_prompt_logprobs:
                shown["prompt_logprobs"] = prompt_logprobs(self._codec, choice.prompt.token_ids, choice.prompt_logprobs)
            choices.append(shown)
        return self._identity | {
            "choices": choices,
            "usage": generation.usage().to_json(),
            "timings": generation.timings().to_json(),
        }
