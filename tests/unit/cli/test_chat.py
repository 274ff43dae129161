"""What the terminal chat shows of an answer, and what it keeps of it."""

import asyncio
from io import StringIO
from types import SimpleNamespace

from rich.console import Console

from deepinfer.cli.chat import Conversation
from deepinfer.cli.http_client import ServerError


class Target:
    """Streams the given deltas; an error ends them."""

    def __init__(self, *deltas):
        self.deltas = deltas
        self.messages = None

    async def stream_chat(self, messages, options):
        self.messages = list(messages)
        for delta in self.deltas:
            if isinstance(delta, Exception):
                raise delta
            yield SimpleNamespace(data={"choices": [{"delta": delta}], "timings": {"prompt_n": 1}})


def answer(*deltas):
    conversation = Conversation(Target(*deltas), {}, system="Be brief.")
    conversation.ask("hi")
    out = StringIO()
    timings = asyncio.run(conversation.answer(Console(file=out, width=80)))
    return conversation, out.getvalue(), timings


def test_thinking_is_shown_before_the_answer_and_not_kept():
    conversation, shown, timings = answer(
        {"role": "assistant", "content": ""}, {"reasoning_content": "Let me "}, {"reasoning_content": "see."},
        {"content": "[Yes]"}, {"content": "."}, {},
    )  # fmt: skip
    assert shown == "Let me see.\n\n[Yes].\n"
    assert conversation.messages[-1] == {"role": "assistant", "content": "[Yes]."}
    assert timings == {"prompt_n": 1}


def test_an_answer_without_thinking():
    conversation, shown, _ = answer({"content": "Yes."})
    assert shown == "Yes.\n"
    assert [message["role"] for message in conversation.messages] == ["system", "user", "assistant"]


def test_what_came_before_a_failure_is_kept():
    conversation, shown, _ = answer({"content": "Ye"}, ServerError("gone"))
    assert "error: gone" in shown
    assert conversation.messages[-1]["content"] == "Ye"
    assert answer(ServerError("gone"))[0].messages[-1]["role"] == "user"
