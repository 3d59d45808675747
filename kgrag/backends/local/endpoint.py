"""An OpenAI-compatible endpoint over HTTP: connections, the key, shared limits, and what its errors mean."""

from __future__ import annotations

import asyncio
import os
import time
import urllib.request
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import msgspec

from kgrag.backends.limits import Limits, RetryPolicy, call_within, delay_before_repeat, shared_limits
from kgrag.engine.settings import EndpointSettings
from kgrag.errors import ConfigurationError, ModelError, PermanentModelError, RejectedError, TransientModelError
from kgrag.ids import digest

if TYPE_CHECKING:
    import aiohttp

T = TypeVar("T")

CONNECT_SECONDS = 10.0
"""Longest wait for a connection: an endpoint that is up answers far sooner."""

THROTTLE_SECONDS = 1.0
"""How long all callers rest after a 429 that names no time."""

_SETTING_CODES = frozenset(
    {
        "model_not_found",
        "invalid_api_key",
        "insufficient_quota",
        "billing_hard_limit_reached",
        "unsupported_parameter",
        "unsupported_value",
        "unknown_parameter",
        "unsupported_country_region_territory",
    }
)
"""Error codes of the OpenAI API that say the settings are wrong, whatever the HTTP status."""

_SETTING_FIELDS = frozenset(
    {"model", "temperature", "max_tokens", "max_completion_tokens", "stream_options", "encoding_format", "dimensions"}
)
"""Request fields that come from the settings: a 400 about one of them would come back for every input."""

_REMEDIES = {
    401: "Check the API key (api_key, or the variable that api_key_env names).",
    402: "The account has no credit left.",
    403: "The key may not use this model: check its permissions.",
    404: "Check base_url (it ends in /v1) and model.",
    413: "Make the text units smaller.",
}


class _Detail(msgspec.Struct):
    message: Any = ""
    code: Any = ""
    param: Any = ""


class _Failure(msgspec.Struct):
    error: _Detail | str | None = None
    message: Any = ""
    detail: Any = ""
    code: Any = ""
    param: Any = ""


_read_failure = msgspec.json.Decoder(_Failure).decode


class Endpoint:
    """POSTs JSON to one model's server. Connections belong to an event loop, limits to the process.

    A body comes back whole (``post``) or piece by piece (``stream``). Both raise TransientModelError (retries spent),
    RejectedError (this input) and PermanentModelError (any input)."""

    def __init__(self, settings: EndpointSettings) -> None:
        if urlsplit(settings.base_url).scheme not in ("http", "https"):
            raise ConfigurationError(
                f"'{settings.base_url}' is no base_url of a model server.",
                subject=settings.base_url,
                remedy="It begins with http:// or https:// and ends in /v1.",
            )
        self.model = settings.model
        self._base = settings.base_url.rstrip("/")
        self._timeout = settings.timeout_seconds
        secret = settings.api_key.get_secret_value() if settings.api_key else os.environ.get(settings.api_key_env, "")
        self._key = secret.strip()
        self.policy = RetryPolicy(retries=settings.max_retries, seconds=settings.retry_seconds, backoff=settings.backoff_seconds)
        self.limits: Limits = shared_limits(
            digest(self._base, settings.model, self._key),
            settings.concurrency,
            requests_per_minute=settings.requests_per_minute,
            tokens_per_minute=settings.tokens_per_minute,
            breaker_seconds=settings.breaker_seconds,
        )
        self._sessions: dict[asyncio.AbstractEventLoop, aiohttp.ClientSession] = {}

    def __repr__(self) -> str:
        return f"Endpoint({self._base}, model={self.model})"

    async def post(self, path: str, body: bytes, read: Callable[[bytes], T], *, tokens: int = 0) -> T:
        """What ``read`` makes of the reply's body. ``tokens`` is what the call is expected to use."""

        async def once() -> T:
            async with self._request(path, body) as response:
                data = await response.read()
            return read(data)

        return await call_within(self.limits, self.policy, once, tokens=tokens)

    async def stream(self, path: str, body: bytes, *, tokens: int = 0) -> AsyncGenerator[bytes]:
        """The body in pieces as they arrive. The slot is held until the last one; a failure is retried only before
        the first, because what came after it was already shown to someone."""
        until = time.monotonic() + self.policy.seconds
        for attempt in range(self.policy.retries + 1):
            begun = False
            await self.limits.acquire(tokens)
            try:
                async with self._request(path, body, streamed=True) as response:
                    async for piece in response.content.iter_any():
                        begun = True
                        yield piece
            except PermanentModelError as error:
                self.limits.broke(error)
                raise
            except TransientModelError as error:
                if begun:
                    raise
                delay = delay_before_repeat(self.policy, attempt, error, until)
            else:
                self.limits.succeeded()
                return
            finally:
                self.limits.release()
            await asyncio.sleep(delay)

    def failure(self, status: int, body: bytes, retry_after: float | None = None) -> ModelError:
        """The error that an HTTP status and its body stand for."""
        message, code, param = _told(body)
        if self._key:
            message = message.replace(self._key, "***")
        said = f"{self.model} at {self._base} answered {status}" + (f": {message}" if message else ".")
        subject = self.model
        if code in _SETTING_CODES or (status in (400, 422) and param in _SETTING_FIELDS):
            return PermanentModelError(said, subject=subject, remedy="Check the settings of this model.")
        if status == 429:
            self.limits.throttled(THROTTLE_SECONDS if retry_after is None else retry_after)
            return TransientModelError(said, subject=subject, retry_after=retry_after)
        if status in (400, 413, 422):
            return RejectedError(said, subject=subject, remedy=_REMEDIES.get(status, ""))
        if status in (408, 409, 425) or status >= 500:
            return TransientModelError(said, subject=subject, retry_after=retry_after)
        return PermanentModelError(said, subject=subject, remedy=_REMEDIES.get(status, "Check base_url."))

    def reported(self, error: Any, body: bytes) -> ModelError:
        """The error that a body with status 200 reports, as some gateways do."""
        code = error.get("code") if isinstance(error, dict) else None
        return self.failure(code if isinstance(code, int) and 400 <= code < 600 else 502, body)

    def garbled(self, why: str) -> TransientModelError:
        """The error for a reply that is not what the API promises."""
        return TransientModelError(f"{self.model} at {self._base} sent {why}.", subject=self.model)

    async def aclose(self) -> None:
        """Close the connections. Never raises."""
        here = asyncio.get_running_loop()
        for loop, session in list(self._sessions.items()):
            if loop is here:
                await session.close()
            elif loop.is_running():
                asyncio.run_coroutine_threadsafe(session.close(), loop)
        self._sessions.clear()

    @asynccontextmanager
    async def _request(self, path: str, body: bytes, *, streamed: bool = False) -> AsyncIterator[aiohttp.ClientResponse]:
        import aiohttp

        session = self._sessions.get(asyncio.get_running_loop()) or self._connect()
        timeout = self._stream_timeout if streamed else self._whole_timeout
        try:
            async with session.post(self._base + path, data=body, timeout=timeout, allow_redirects=False) as response:
                if response.status != 200:
                    raise self.failure(response.status, await response.read(), _retry_after(response.headers))
                yield response
        except TimeoutError:
            seconds = f"{self._timeout:g} s"
            raise TransientModelError(
                f"{self.model} at {self._base} did not answer within {seconds}.",
                subject=self.model,
                remedy="Raise timeout_seconds if the model is slow.",
            ) from None
        except aiohttp.ClientConnectorCertificateError as error:
            raise PermanentModelError(
                f"The certificate of {self._base} is not valid ({error.certificate_error}).",
                subject=self.model,
                remedy="Check base_url, or make the system trust its certificate.",
            ) from None
        except (aiohttp.ClientError, OSError) as error:
            raise TransientModelError(
                f"The connection to {self._base} failed ({type(error).__name__}: {error}).",
                subject=self.model,
                remedy="Check that the server runs and base_url is right.",
            ) from None

    def _connect(self) -> aiohttp.ClientSession:
        """A session for the running loop. Proxies are looked up once here, not per request."""
        import aiohttp

        host = urlsplit(self._base)
        bypass = urllib.request.proxy_bypass(host.hostname or "")
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        self._whole_timeout = aiohttp.ClientTimeout(total=self._timeout, connect=None, sock_connect=CONNECT_SECONDS)
        self._stream_timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=self._timeout)
        session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            headers=headers,
            cookie_jar=aiohttp.DummyCookieJar(),
            proxy=None if bypass else urllib.request.getproxies().get(host.scheme),
        )
        self._sessions[asyncio.get_running_loop()] = session
        return session


def sendable(text: str) -> str:
    """The text with lone surrogates, which have no UTF-8, as question marks."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _told(body: bytes) -> tuple[str, str, str]:
    """(message, code, field) of an error body in any of the shapes that compatible servers use."""
    try:
        failure = _read_failure(body)
    except msgspec.MsgspecError:
        return body[:300].decode("utf-8", "replace").strip(), "", ""
    inner = failure.error
    if isinstance(inner, _Detail):
        message, code, param = inner.message, inner.code, inner.param
    else:
        message, code, param = inner or failure.message or failure.detail, failure.code, failure.param
    return str(message or "")[:300], str(code or ""), str(param or "")


def _retry_after(headers: Any) -> float | None:
    """Seconds, from ``retry-after-ms`` or ``Retry-After`` (a number or a date)."""
    try:
        if milliseconds := headers.get("retry-after-ms"):
            return max(float(milliseconds) / 1000.0, 0.0)
        if not (value := headers.get("Retry-After")):
            return None
        if value.strip().replace(".", "", 1).isdigit():
            return float(value)
        return max(parsedate_to_datetime(value).timestamp() - time.time(), 0.0)
    except ValueError:
        return None
