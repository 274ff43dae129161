"""Log probabilities in the three shapes clients know: chat, completions, and per prompt position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deepinfer.outputs import TokenLogprob
from deepinfer_api.codec import Codec
from deepinfer_api.formats.base import finite_logprob


def token_text(data: bytes) -> str:
    """A token as text; bytes that are no whole characters are spelled like `bytes:\\xe2\\x80`."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return "bytes:" + "".join(f"\\x{byte:02x}" for byte in data)


def chat_logprobs(codec: Codec, entries: Sequence[TokenLogprob]) -> list[dict[str, Any]]:
    """The `logprobs.content` list of a chat choice: one object for each token."""
    return [
        _chat_entry(codec, entry.token_id, entry.logprob)
        | {"top_logprobs": [_chat_entry(codec, token_id, logprob) for token_id, logprob in entry.top]}
        for entry in entries
    ]


def _chat_entry(codec: Codec, token_id: int, logprob: float) -> dict[str, Any]:
    data = codec.token_bytes(token_id)
    return {"token": token_text(data), "logprob": finite_logprob(logprob), "bytes": list(data)}


class CompletionLogprobs:
    """The `logprobs` object of a completion choice, grown token by token.

    `text_offset` counts characters of the text so far, where a character belongs to the token that completes it.
    """

    def __init__(self, codec: Codec, num_top: int) -> None:
        self._codec = codec
        self._num_top = num_top
        self._data = bytearray()
        self._num_characters = 0

    def extend(self, entries: Sequence[TokenLogprob | int]) -> dict[str, list[Any]]:
        """The object for these tokens alone; a bare id has no log probability (the first prompt token)."""
        tokens: list[str] = []
        token_logprobs: list[float | None] = []
        top_logprobs: list[dict[str, float] | None] = []
        offsets: list[int] = []
        for entry in entries:
            token_id = entry if isinstance(entry, int) else entry.token_id
            data = self._codec.token_bytes(token_id)
            tokens.append(token_text(data))
            offsets.append(self._num_characters)
            self._advance(data)
            if isinstance(entry, int):
                token_logprobs.append(None)
                top_logprobs.append(None)
            else:
                token_logprobs.append(finite_logprob(entry.logprob))
                top_logprobs.append({token_text(self._codec.token_bytes(i)): finite_logprob(p) for i, p in entry.top})
        return {
            "tokens": tokens,
            "token_logprobs": token_logprobs,
            "top_logprobs": top_logprobs if self._num_top else [],
            "text_offset": offsets,
        }

    def _advance(self, data: bytes) -> None:
        self._data += data
        try:
            text = self._data.decode()
        except UnicodeDecodeError as error:
            if error.reason == "unexpected end of data" and len(self._data) - error.start < 4:
                self._num_characters += len(self._data[: error.start].decode(errors="replace"))
                del self._data[: error.start]
                return
            text = self._data.decode(errors="replace")
        self._num_characters += len(text)
        self._data.clear()


def prompt_logprobs(
    codec: Codec, prompt_token_ids: Sequence[int], entries: Sequence[TokenLogprob] | None
) -> list[dict[str, Any] | None]:
    """One entry for each prompt position, None for the first: id -> logprob, rank, decoded token.

    Alternatives keep their rank among the alternatives; the prompt's own token is always there.
    """
    positions: list[dict[str, Any] | None] = [None]
    for token_id, entry in zip(list(prompt_token_ids)[1:], entries or (), strict=False):
        shown = {
            str(other): {
                "logprob": finite_logprob(logprob),
                "rank": rank,
                "decoded_token": token_text(codec.token_bytes(other)),
            }
            for rank, (other, logprob) in enumerate(entry.top, start=1)
        }
        shown[str(token_id)] = {
            "logprob": finite_logprob(entry.logprob),
            "rank": entry.rank,
            "decoded_token": token_text(codec.token_bytes(token_id)),
        }
        positions.append(shown)
    return positions
