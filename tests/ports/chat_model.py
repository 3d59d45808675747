from __future__ import annotations

from collections.abc import Callable, Sequence

from kgrag.ports import ChatModel, Message, Reply

PROMPT = [Message("system", "Repeat."), Message("user", "Ada & <Charles>, 日本語, 🙂 " * 20)]


class ChatModelContract:
    """Needs ``make_chat``: from a function that makes the reply's text to a ChatModel."""

    async def test_a_reply_comes_whole_with_its_usage(self, make_chat: Callable[..., ChatModel]) -> None:
        chat = make_chat(lambda messages: messages[-1].content)
        reply = await chat.complete(PROMPT)
        assert reply.text == PROMPT[-1].content
        assert reply.finish == "stop"
        assert (reply.usage.calls, reply.usage.stored) == (1, 0)
        assert reply.usage.input_tokens > 0
        assert reply.usage.output_tokens > 0
        await chat.aclose()

    async def test_a_stream_gives_the_same_text_in_pieces_and_then_the_reply(self, make_chat: Callable[..., ChatModel]) -> None:
        chat = make_chat(lambda messages: messages[-1].content)
        *pieces, reply = [piece async for piece in chat.stream(PROMPT)]
        assert isinstance(reply, Reply)
        assert len(pieces) > 1
        assert "".join(map(str, pieces)) == reply.text == PROMPT[-1].content
        assert reply.usage.calls == 1
        await chat.aclose()

    async def test_the_identity_stays_and_closing_twice_is_fine(self, make_chat: Callable[..., ChatModel]) -> None:
        def reply(messages: Sequence[Message]) -> str:
            return "yes"

        chat, other = make_chat(reply), make_chat(reply)
        assert chat.identity
        assert chat.identity == other.identity
        await chat.aclose()
        await chat.aclose()
        await other.aclose()
