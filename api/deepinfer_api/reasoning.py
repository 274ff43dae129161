"""Where the thinking of an output ends and its answer begins, told by token ids. Knows no protocol."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypedDict

from deepinfer_api.codec import Codec, TextStream, ThinkingTokens

_TAIL_TOKENS: Final = 8


class ThinkingStage(enum.Enum):
    """OPEN: the prompt has begun the thinking. POSSIBLE: the model may begin to think, or answer. OFF: it answers."""

    OPEN = "open"
    POSSIBLE = "possible"
    OFF = "off"


class BudgetParams(TypedDict, total=False):
    """Fields of `SamplingParams`."""

    max_thinking_tokens: int
    thinking_end_token_id: int
    thinking_start_token_id: int | None


class FormFields(TypedDict):
    """Fields of `GrammarSpec`."""

    start_after_token_ids: tuple[int, ...]
    opening_token_id: int | None


@dataclass(frozen=True, slots=True)
class Thinking:
    """How the outputs of one prompt begin; `stage` is not OFF."""

    tokens: ThinkingTokens
    stage: ThinkingStage

    @property
    def _opening_id(self) -> int | None:
        return self.tokens.start_id if self.stage is ThinkingStage.POSSIBLE else None

    def budget_params(self, budget: int | None) -> BudgetParams:
        """What makes the engine end the thinking after `budget` tokens; nothing without a budget."""
        if budget is None:
            return {}
        return {
            "max_thinking_tokens": budget,
            "thinking_end_token_id": self.tokens.end_id,
            "thinking_start_token_id": self._opening_id,
        }

    def form_fields(self) -> FormFields:
        """What makes a form hold for the answer only."""
        return {"start_after_token_ids": (self.tokens.end_id,), "opening_token_id": self._opening_id}

    def new_split(self, codec: Codec) -> ReasoningSplit:
        """For one output."""
        stream = codec.new_text_stream(stop=(), skip_special_tokens=True, include_stop_str_in_output=False)
        return ReasoningSplit(self.tokens, self.stage, stream)


def find_thinking(
    tokens: ThinkingTokens | None, prompt_token_ids: Sequence[int], *, continues_answer: bool
) -> Thinking | None:
    """How outputs begin behind a rendered conversation, from its last few tokens: a template that opens or closes the
    thinking does so right at the end.

    Args:
        tokens: the model's markers, if it has any.
        continues_answer: the prompt ends inside an answer of the assistant, not at its start.

    Returns:
        None when the answer comes at once.
    """
    if tokens is None:
        return None
    for token_id in reversed(prompt_token_ids[-_TAIL_TOKENS:]):
        if token_id == tokens.end_id:
            return None
        if token_id == tokens.start_id:
            return Thinking(tokens, ThinkingStage.OPEN)
    return None if continues_answer else Thinking(tokens, ThinkingStage.POSSIBLE)


@dataclass(slots=True, eq=False)
class ReasoningSplit:
    """Takes the thinking out of one output.

    Attributes:
        tokens: the markers; they belong to neither part's text.
        stage: OFF once the answer has begun.
        text_stream: decoder of the thinking.
        num_tokens: tokens of the thinking so far, markers included.
    """

    tokens: ThinkingTokens
    stage: ThinkingStage
    text_stream: TextStream
    num_tokens: int = 0

    def take(self, token_ids: Sequence[int], *, is_last: bool) -> tuple[str, int]:
        """Take what belongs to the thinking from the front of new tokens.

        Returns:
            Its text, and how many tokens were taken.
        """
        begin = 0
        if self.stage is ThinkingStage.POSSIBLE and token_ids:
            if token_ids[0] != self.tokens.start_id:
                self.stage = ThinkingStage.OFF
            else:
                self.stage = ThinkingStage.OPEN
                begin = 1
        if self.stage is not ThinkingStage.OPEN:
            return "", 0
        num_taken = len(token_ids)
        end = num_taken
        if self.tokens.end_id in token_ids[begin:]:
            end = token_ids.index(self.tokens.end_id, begin)
            num_taken = end + 1
            self.stage = ThinkingStage.OFF
        text = self.text_stream.push(token_ids[begin:end]).text
        if self.stage is ThinkingStage.OFF or is_last:
            text += self.text_stream.finish().text
        self.num_tokens += num_taken
        return text, num_taken
