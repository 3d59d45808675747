"""Every way a chat call can go, over a real socket."""

from __future__ import annotations

import asyncio
import datetime
import ssl
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from kgrag.backends.local.openai import OpenAIChat
from kgrag.engine.settings import ModelSettings
from kgrag.errors import ConfigurationError, ModelError, PermanentModelError, RejectedError, TransientModelError
from kgrag.ports import ChatModel, Message, Reply
from kgrag.testing.openai_server import Fault, OpenAIServer
from tests.ports.chat_model import ChatModelContract

PROMPT = [Message("system", "Repeat."), Message("user", "Hello there, this is a question of some length.")]
SECRET = "sk-very-secret-0123456789"


@pytest.fixture
async def server() -> AsyncIterator[OpenAIServer]:
    async with OpenAIServer(reply=lambda messages: messages[-1].content) as running:
        yield running


@pytest.fixture
async def make(server: OpenAIServer) -> AsyncIterator[Callable[..., OpenAIChat]]:
    made: list[OpenAIChat] = []

    def chat(**changes: Any) -> OpenAIChat:
        defaults = {"base_url": server.url, "model": "stub", "provider": "openai", "backoff_seconds": 0.01, "timeout_seconds": 5.0}
        made.append(OpenAIChat(ModelSettings(**{**defaults, **changes})))
        return made[-1]

    yield chat
    for one in made:
        await one.aclose()


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(1000):
        if condition():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("the condition never held")


class TestOpenAIChatContract(ChatModelContract):
    @pytest.fixture
    def make_chat(self, server: OpenAIServer, make: Callable[..., OpenAIChat]) -> Callable[..., ChatModel]:
        def chat(reply: Callable[[list[Message]], str]) -> ChatModel:
            server.reply = reply
            return make()

        return chat


async def test_the_request_is_what_the_settings_say(server: OpenAIServer, make: Callable[..., OpenAIChat]) -> None:
    chat = make(
        api_key=SecretStr(SECRET),
        temperature=0.3,
        max_output_tokens=77,
        token_limit_field="max_completion_tokens",
        extra_body={"reasoning_effort": "low"},
    )
    await chat.complete(PROMPT)
    body, headers = server.requests[-1]
    assert body == {
        "model": "stub",
        "temperature": 0.3,
        "reasoning_effort": "low",
        "max_completion_tokens": 77,
        "messages": [{"role": "system", "content": "Repeat."}, {"role": "user", "content": PROMPT[1].content}],
    }
    assert headers["Authorization"] == f"Bearer {SECRET}"
    await chat.complete(PROMPT, max_tokens=5)
    assert server.requests[-1][0]["max_completion_tokens"] == 5


async def test_text_that_has_no_utf_8_is_sent_all_the_same(make: Callable[..., OpenAIChat]) -> None:
    assert (await make().complete([Message("user", "a \ud800 b")])).text == "a ? b"


async def test_a_key_comes_from_the_named_variable(
    server: OpenAIServer, make: Callable[..., OpenAIChat], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_GATEWAY_KEY", f" {SECRET}\n")
    await make(api_key_env="MY_GATEWAY_KEY").complete(PROMPT)
    assert server.requests[-1][1]["Authorization"] == f"Bearer {SECRET}"
    monkeypatch.delenv("MY_GATEWAY_KEY")
    await make(api_key_env="MY_GATEWAY_KEY").complete(PROMPT)
    assert "Authorization" not in server.requests[-1][1]


async def test_the_identity_follows_what_changes_answers_and_nothing_else(make: Callable[..., OpenAIChat]) -> None:
    plain = make().identity
    same = [make(concurrency=2), make(timeout_seconds=1), make(api_key=SecretStr(SECRET)), make(base_url="http://other/v1")]
    assert {chat.identity for chat in same} == {plain}
    changed = [make(revision="2"), make(temperature=0.5), make(max_output_tokens=10), make(extra_body={"seed": 1}), make(model="m")]
    assert len({plain, *(chat.identity for chat in changed)}) == 6


async def test_prices_become_cost(make: Callable[..., OpenAIChat]) -> None:
    reply = await make(input_price=2.0, output_price=8.0).complete(PROMPT)
    assert reply.usage.cost == pytest.approx((reply.usage.input_tokens * 2 + reply.usage.output_tokens * 8) / 1e6)


async def test_tokens_are_estimated_where_the_server_counts_none(server: OpenAIServer, make: Callable[..., OpenAIChat]) -> None:
    server.usage = False
    counted = await make().complete(PROMPT)
    *_, streamed = [piece async for piece in make().stream(PROMPT)]
    assert isinstance(streamed, Reply)
    assert counted.usage.output_tokens == streamed.usage.output_tokens == 12
    assert counted.usage.input_tokens > counted.usage.output_tokens


@pytest.mark.parametrize(
    "fault",
    [
        Fault.status(429, retry_after=0.01),
        Fault.status(429),
        Fault.status(500),
        Fault.status(502),
        Fault.status(503, retry_after="Thu, 01 Jan 1970 00:00:00 GMT"),
        Fault.status(504),
        Fault.status(408),
        Fault(cut_after=0),
        Fault(cut_after=40),
        Fault(body=b'{"choices": [{"mess'),
        Fault(body=b"<html>gateway</html>"),
        Fault(body=b'{"choices": []}'),
        Fault(body=b'{"error": {"message": "upstream", "code": 503}}'),
    ],
    ids=str,
)
async def test_a_transient_failure_is_repeated(server: OpenAIServer, make: Callable[..., OpenAIChat], fault: Fault) -> None:
    server.faults.append(fault)
    reply = await make().complete(PROMPT)
    assert reply.text == PROMPT[1].content
    assert server.counters.chat == 2


async def test_repeats_end_with_the_last_error(server: OpenAIServer, make: Callable[..., OpenAIChat]) -> None:
    server.fault = lambda prompt: Fault.status(500, "no luck")
    with pytest.raises(TransientModelError, match=r"stub at http.* answered 500: no luck") as caught:
        await make(max_retries=2).complete(PROMPT)
    assert caught.value.subject == "stub"
    assert server.counters.chat == 3


async def test_repeats_are_bounded_by_time(server: OpenAIServer, make: Callable[..., OpenAIChat]) -> None:
    server.fault = lambda prompt: Fault.status(503, retry_after=60)
    begun = time.monotonic()
    with pytest.raises(TransientModelError) as caught:
        await make(retry_seconds=5).complete(PROMPT)
    assert time.monotonic() - begun < 2
    assert caught.value.retry_after == 60
    assert server.counters.chat == 1


async def test_retry_after_is_honoured(server: OpenAIServer, make: Callable[..., OpenAIChat]) -> None:
    server.faults.append(Fault.status(429, retry_after=0.3))
    begun = time.monotonic()
    await make().complete(PROMPT)
    assert 0.3 <= time.monotonic() - begun < 2


async def test_a_throttled_call_slows_down_every_caller_of_the_model(server: OpenAIServer, make: Callable[..., OpenAIChat]) -> None:
    first, second = make(), make()
    server.faults.append(Fault.status(429, retry_after=0.4))
    waiting = asyncio.ensure_future(first.complete(PROMPT))
    await until(lambda: server.counters.chat == 1)
    await asyncio.sleep(0.05)
    begun = time.monotonic()
    await second.complete(PROMPT)
    assert time.monotonic() - begun > 0.2
    await waiting


async def test_a_late_reply_is_never_used(server: OpenAIServer, make: Callable[..., OpenAIChat]) -> None:
    server.faults.append(Fault(delay=2.0, body=b'{"choices": [{"message": {"content": "late"}}]}'))
    reply = await make(timeout_seconds=0.2).complete(PROMPT)
    assert reply.text == PROMPT[1].content
    server.fault = lambda prompt: Fault(delay=2.0)
    with pytest.raises(TransientModelError, match=r"within 0\.2 s"):
        await make(timeout_seconds=0.2, max_retries=0).complete(PROMPT)


@pytest.mark.parametrize(
    "fault",
    [
        Fault.status(400, "This model's maximum context length is 8192 tokens", error_code="context_length_exceeded"),
        Fault.status(400, "content management policy", error_code="content_filter"),
        Fault.status(413),
        Fault.status(422, param="messages"),
        Fault(code=400, body=b'{"object": "error", "message": "prompt too long", "code": 400}'),
        Fault(code=422, body=b'{"detail": [{"loc": ["body"], "msg": "bad"}]}'),
        Fault(code=400, body=b"plain text"),
    ],
    ids=str,
)
async def test_an_input_can_be_refused_without_a_repeat(
    server: OpenAIServer, make: Callable[..., OpenAIChat], fault: Fault
) -> None:
    server.faults.append(fault)
    chat = make()
    with pytest.raises(RejectedError):
        await chat.complete(PROMPT)
    assert (await chat.complete(PROMPT)).text
    assert server.counters.chat == 2


@pytest.mark.parametrize(
    ("fault", "remedy"),
    [
        (Fault.status(401, "Incorrect API key", error_code="invalid_api_key"), "settings"),
        (Fault(code=401, body=b""), "API key"),
        (Fault.status(403), "permissions"),
        (Fault.status(404, error_code="model_not_found"), "settings"),
        (Fault(code=404, body=b"not here"), "base_url"),
        (Fault.status(402), "credit"),
        (Fault.status(429, "You exceeded your current quota", error_code="insufficient_quota"), "settings"),
        (Fault.status(400, "Unsupported value", error_code="unsupported_value", param="temperature"), "settings"),
        (Fault(code=307, headers={"Location": "http://127.0.0.1:1/"}, body=b""), "base_url"),
    ],
    ids=str,
)
async def test_a_permanent_error_opens_the_breaker_of_every_caller(
    server: OpenAIServer, make: Callable[..., OpenAIChat], fault: Fault, remedy: str
) -> None:
    first, second = make(), make()
    server.faults.append(fault)
    with pytest.raises(PermanentModelError, match=remedy):
        await first.complete(PROMPT)
    with pytest.raises(PermanentModelError, match=remedy):
        await second.complete(PROMPT)
    with pytest.raises(PermanentModelError, match=remedy):
        [_ async for _ in second.stream(PROMPT)]
    assert server.counters.chat == 1


async def test_callers_that_wait_for_a_slot_are_refused_once_the_breaker_opens(
    server: OpenAIServer, make: Callable[..., OpenAIChat]
) -> None:
    chat = make(concurrency=1)
    server.latency = 0.05
    server.fault = lambda prompt: Fault.status(401)
    results = await asyncio.gather(*(chat.complete(PROMPT) for _ in range(10)), return_exceptions=True)
    assert all(isinstance(result, PermanentModelError) for result in results)
    assert server.counters.chat == 1


async def test_after_a_while_one_call_tries_again_and_closes_the_breaker(
    server: OpenAIServer, make: Callable[..., OpenAIChat]
) -> None:
    chat = make(breaker_seconds=0.2)
    server.faults.append(Fault.status(401))
    with pytest.raises(PermanentModelError):
        await chat.complete(PROMPT)
    await asyncio.sleep(0.25)
    server.latency = 0.05
    results = await asyncio.gather(*(chat.complete(PROMPT) for _ in range(4)), return_exceptions=True)
    assert sum(isinstance(result, Reply) for result in results) == 1
    assert server.counters.chat == 2
    assert (await chat.complete(PROMPT)).text


async def test_another_key_has_another_breaker(server: OpenAIServer, make: Callable[..., OpenAIChat]) -> None:
    server.faults.append(Fault.status(401))
    wrong = make(api_key=SecretStr("wrong"))
    with pytest.raises(PermanentModelError):
        await wrong.complete(PROMPT)
    assert (await make(api_key=SecretStr(SECRET)).complete(PROMPT)).text


async def test_nobody_listening_is_transient_and_says_what_to_check(make: Callable[..., OpenAIChat]) -> None:
    with pytest.raises(TransientModelError, match="Check that the server runs"):
        await make(base_url="http://127.0.0.1:9/v1", max_retries=1).complete(PROMPT)


async def test_a_certificate_nobody_signed_is_permanent(make: Callable[..., OpenAIChat], tmp_path: Path) -> None:
    context = self_signed(tmp_path)
    served = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0, ssl=context)
    async with served:
        port = served.sockets[0].getsockname()[1]
        with pytest.raises(PermanentModelError, match="certificate"):
            await make(base_url=f"https://127.0.0.1:{port}/v1").complete(PROMPT)


def self_signed(folder: Path) -> ssl.SSLContext:
    """A server's context with a certificate of its own making."""
    pytest.importorskip("cryptography")
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(now).not_valid_after(now + datetime.timedelta(days=1))
    pem = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    pem += key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "both.pem").write_bytes(pem)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "both.pem")
    return context


def test_a_url_without_scheme_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="http://"):
        OpenAIChat(ModelSettings(provider="openai", model="m", base_url="localhost:8000/v1"))


async def test_a_key_is_in_no_error_and_no_representation(server: OpenAIServer, make: Callable[..., OpenAIChat]) -> None:
    chat = make(api_key=SecretStr(SECRET))
    server.faults.append(Fault.status(401, f"Incorrect API key provided: {SECRET}."))
    with pytest.raises(ModelError) as caught:
        await chat.complete(PROMPT)
    shown = [str(caught.value), repr(caught.value), repr(caught.value.__dict__), repr(chat), repr(chat._settings), repr(vars(chat))]
    assert all(SECRET not in text for text in shown)


@pytest.mark.parametrize(
    ("body", "text", "finish"),
    [
        (b'{"choices": [{"message": {"content": "cut o"}, "finish_reason": "length"}]}', "cut o", "length"),
        (b'{"choices": [{"message": {"content": null}, "finish_reason": "length"}]}', "", "length"),
        (b'{"choices": [{"message": {"content": ""}, "finish_reason": "content_filter"}]}', "", "filter"),
        (b'{"choices": [{"message": {"content": null, "refusal": "No."}, "finish_reason": "stop"}]}', "", "filter"),
        (b'{"choices": [{"message": {"content": "x"}, "finish_reason": null}], "usage": {"prompt_tokens": null}}', "x", "stop"),
        (
            b'{"choices": [{"message": {"content": [{"type": "thinking", "thinking": []}, {"type": "text", "text": "x"}]}}]}',
            "x",
            "stop",
        ),
    ],
)
async def test_replies_of_many_servers_are_understood(
    server: OpenAIServer, make: Callable[..., OpenAIChat], body: bytes, text: str, finish: str
) -> None:
    server.faults.append(Fault(body=body))
    reply = await make().complete(PROMPT)
    assert (reply.text, reply.finish) == (text, finish)


async def test_concurrency_is_shared_by_all_callers_of_a_model(server: OpenAIServer, make: Callable[..., OpenAIChat]) -> None:
    server.latency = 0.03
    chats = [make(concurrency=3), make(concurrency=3), make(concurrency=8)]
    await asyncio.gather(*(chat.complete([Message("user", str(i))]) for i in range(8) for chat in chats))
    assert server.counters.most_active == 3


async def test_a_cancelled_call_gives_its_slot_back(server: OpenAIServer, make: Callable[..., OpenAIChat]) -> None:
    server.latency = 5.0
    chat = make(concurrency=1)
    calls = [asyncio.ensure_future(chat.complete(PROMPT)) for _ in range(3)]
    await until(lambda: server.counters.active == 1)
    for call in calls:
        call.cancel()
    await asyncio.gather(*calls, return_exceptions=True)
    server.latency = 0.0
    assert (await asyncio.wait_for(chat.complete(PROMPT), 2)).text


async def test_requests_per_minute_hold_for_all_callers(server: OpenAIServer, make: Callable[..., OpenAIChat]) -> None:
    chats = [make(requests_per_minute=600), make(requests_per_minute=600)]
    begun = time.monotonic()
    await asyncio.gather(*(chat.complete(PROMPT) for _ in range(7) for chat in chats))
    assert 0.4 <= time.monotonic() - begun < 3  # ten at once, then one every 0.1 s


# ---------------------------------------------------------------- streams


async def test_the_first_piece_arrives_before_the_last_is_made(server: OpenAIServer, make: Callable[..., OpenAIChat]) -> None:
    server.piece_latency = 0.1
    begun = time.monotonic()
    stream = make().stream(PROMPT)
    assert await anext(stream)
    first = time.monotonic() - begun
    assert [piece async for piece in stream]
    assert first < (time.monotonic() - begun) / 2


@pytest.mark.parametrize("fault", [Fault.status(429, retry_after=0.01), Fault.status(500), Fault(cut_after=0)], ids=str)
async def test_a_stream_that_has_not_begun_is_repeated(server: OpenAIServer, make: Callable[..., OpenAIChat], fault: Fault) -> None:
    server.faults.append(fault)
    *_, reply = [piece async for piece in make().stream(PROMPT)]
    assert isinstance(reply, Reply)
    assert reply.text == PROMPT[1].content
    assert server.counters.chat == 2


async def test_a_stream_that_breaks_off_is_an_error_and_is_not_repeated(
    server: OpenAIServer, make: Callable[..., OpenAIChat]
) -> None:
    server.piece_latency = 0.05
    server.faults.append(Fault(cut_after=300))
    chat = make(concurrency=1)
    pieces: list[str | Reply] = []

    async def consume() -> None:
        async for piece in chat.stream(PROMPT):
            pieces.append(piece)

    with pytest.raises(TransientModelError):
        await consume()
    assert pieces
    assert all(isinstance(piece, str) for piece in pieces)
    assert server.counters.chat == 1
    assert (await chat.complete(PROMPT)).text


async def test_a_stream_that_ends_without_a_reason_broke_off(server: OpenAIServer, make: Callable[..., OpenAIChat]) -> None:
    server.faults.append(Fault(body=b'data: {"choices": [{"delta": {"content": "half"}}]}\n\n'))
    with pytest.raises(TransientModelError, match="broke off"):
        [_ async for _ in make().stream(PROMPT)]


async def test_a_stalled_stream_times_out(server: OpenAIServer, make: Callable[..., OpenAIChat]) -> None:
    server.piece_latency = 3.0
    with pytest.raises(TransientModelError, match="did not answer"):
        [_ async for _ in make(timeout_seconds=0.3).stream(PROMPT)]


async def test_an_error_inside_a_stream_is_raised(server: OpenAIServer, make: Callable[..., OpenAIChat]) -> None:
    server.faults.append(Fault(body=b': hello\r\n\r\ndata: {"error": {"message": "overloaded", "code": 529}}\r\n\r\n'))
    with pytest.raises(TransientModelError, match="overloaded"):
        [_ async for _ in make().stream(PROMPT)]


async def test_a_consumer_that_leaves_ends_the_call_and_frees_its_slot(
    server: OpenAIServer, make: Callable[..., OpenAIChat]
) -> None:
    server.piece_latency = 0.2
    chat = make(concurrency=1)
    stream = chat.stream(PROMPT)
    await anext(stream)
    await stream.aclose()
    server.piece_latency = 0.0
    assert (await asyncio.wait_for(chat.complete(PROMPT), 2)).text
    await until(lambda: server.counters.active == 0)


async def test_a_cut_off_and_a_filtered_stream_say_so(server: OpenAIServer, make: Callable[..., OpenAIChat]) -> None:
    server.faults.extend([Fault(finish="length", keep=8), Fault(finish="content_filter", keep=0)])
    *_, cut = [piece async for piece in make().stream(PROMPT)]
    *_, filtered = [piece async for piece in make().stream(PROMPT)]
    assert isinstance(cut, Reply)
    assert isinstance(filtered, Reply)
    assert (cut.finish, cut.text) == ("length", "Hello th")
    assert filtered.finish == "filter"


def test_one_chat_model_serves_several_event_loops_and_threads() -> None:
    with OpenAIServer(reply=lambda messages: messages[-1].content, latency=0.02).in_thread() as server:
        settings = ModelSettings(provider="openai", base_url=server.url, model="stub", concurrency=2)

        async def ask(name: str) -> list[str]:
            chat = OpenAIChat(settings)
            try:
                replies = await asyncio.gather(*(chat.complete([Message("user", f"{name} {i}")]) for i in range(10)))
            finally:
                await chat.aclose()
            return [reply.text for reply in replies]

        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(3) as pool:
            results = list(pool.map(lambda name: asyncio.run(ask(name)), ["a", "b", "c"]))
        assert results == [[f"{name} {i}" for i in range(10)] for name in "abc"]
        assert server.counters.most_active <= 2
