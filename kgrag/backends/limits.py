"""What all callers of one model share: concurrency, rate, slow-down after throttling, and a breaker.

One ``Limits`` per (endpoint, model, key) and process, found through ``shared_limits``. It serves any number of event
loops and threads. Processes do not see each other: on a cluster the number of actors times ``concurrency`` is what
reaches the model, and the rate limits are per actor.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
import weakref
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from kgrag.errors import PermanentModelError, TransientModelError

T = TypeVar("T")

LONGEST_BACKOFF = 30.0
"""Seconds; more only where a server asks for it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RetryPolicy:
    """``retries`` repeats within ``seconds`` of the first attempt, the first after about ``backoff`` seconds."""

    retries: int
    seconds: float
    backoff: float


class Limits:
    """Slots for calls to one model. ``acquire`` before a call, ``release`` after it."""

    def __init__(
        self,
        concurrency: int,
        *,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        breaker_seconds: float = 60.0,
    ) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._active = 0
        self._most = float(concurrency)
        self._allowed = float(concurrency)
        self._requests = _Pace(requests_per_minute)
        self._tokens = _Pace(tokens_per_minute)
        self._paused_until = 0.0
        self._breaker_seconds = breaker_seconds
        self._broken: PermanentModelError | None = None
        self._try_again_at = 0.0

    @property
    def active(self) -> int:
        """Calls in flight."""
        return self._active

    @property
    def paced_by_tokens(self) -> bool:
        return self._tokens.seconds_each > 0

    def tighten(self, concurrency: int, requests_per_minute: float | None, tokens_per_minute: float | None) -> None:
        """Where callers configure one model differently, the lowest limits hold for all."""
        with self._lock:
            self._most = min(self._most, float(concurrency))
            self._allowed = min(self._allowed, self._most)
            self._requests.tighten(requests_per_minute)
            self._tokens.tighten(tokens_per_minute)

    async def acquire(self, tokens: int = 0) -> None:
        """Wait for a slot and for the rate. Raises PermanentModelError at once while the breaker is open."""
        self._refuse_if_broken()
        with self._lock:
            free = not self._waiting and self._active < int(self._allowed)
            if free:
                self._active += 1
            else:
                turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                self._waiting.append(turn)
        if not free:
            await self._turn(turn)
        try:
            while (delay := self._delay(tokens)) > 0:
                await asyncio.sleep(delay)
                tokens = -1
            self._refuse_if_broken(trial=True)
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Give the slot back; the longest waiting caller takes it."""
        granted: list[asyncio.Future[None]] = []
        with self._lock:
            self._active -= 1
            while self._waiting and self._active < int(self._allowed):
                turn = self._waiting.popleft()
                if not turn.done() and not turn.get_loop().is_closed():
                    self._active += 1
                    granted.append(turn)
        for turn in granted:
            self._grant(turn)

    def throttled(self, seconds: float) -> None:
        """The server asked for less: nobody calls for ``seconds``, and half as many calls run at once from then on,
        until successes earn the others back."""
        now = time.monotonic()
        with self._lock:
            if now >= self._paused_until:
                self._allowed = max(1.0, self._allowed / 2)
            self._paused_until = max(self._paused_until, now + seconds)

    def succeeded(self) -> None:
        """A call went well."""
        if self._broken is None and self._allowed >= self._most:
            return
        with self._lock:
            self._broken = None
            self._allowed = min(self._most, self._allowed + 1.0 / self._allowed)

    def spent(self, tokens: int) -> None:
        """A call used so many tokens beyond what ``acquire`` was told."""
        if self.paced_by_tokens:
            with self._lock:
                self._tokens.spend(tokens)

    def broke(self, error: PermanentModelError) -> None:
        """No call can succeed: everyone else is refused until ``breaker_seconds`` have passed."""
        with self._lock:
            self._broken = error
            self._try_again_at = time.monotonic() + self._breaker_seconds

    async def _turn(self, turn: asyncio.Future[None]) -> None:
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.release()
            raise

    def _grant(self, turn: asyncio.Future[None]) -> None:
        def give() -> None:
            if turn.done():
                self.release()
            else:
                turn.set_result(None)

        loop = turn.get_loop()
        try:
            here = asyncio.get_running_loop() is loop
        except RuntimeError:
            here = False
        if here:
            give()
            return
        try:
            loop.call_soon_threadsafe(give)
        except RuntimeError:  # its loop was closed meanwhile
            self.release()

    def _delay(self, tokens: int) -> float:
        """Seconds to wait before the next call may start; the call is booked the first time (``tokens`` >= 0)."""
        now = time.monotonic()
        if self._paused_until <= now and not self._requests.seconds_each and not self.paced_by_tokens:
            return 0.0
        with self._lock:
            booked = 0.0
            if tokens >= 0:
                booked = max(self._requests.book(1, now), self._tokens.book(tokens, now))
            return max(booked, self._paused_until - now)

    def _refuse_if_broken(self, *, trial: bool = False) -> None:
        if self._broken is None:
            return
        with self._lock:
            error = self._broken
            if error is None:
                return
            if time.monotonic() >= self._try_again_at:
                if trial:
                    self._try_again_at = time.monotonic() + self._breaker_seconds
                return
        raise PermanentModelError(error.message, subject=error.subject, remedy=error.remedy)


class _Pace:
    """A rate as the time at which the next unit is due (the generic cell rate algorithm), with one second's worth of
    units let through at once."""

    BURST_SECONDS = 1.0

    def __init__(self, per_minute: float | None) -> None:
        self.seconds_each = 60.0 / per_minute if per_minute else 0.0
        self._due = 0.0

    def tighten(self, per_minute: float | None) -> None:
        if per_minute:
            self.seconds_each = max(self.seconds_each, 60.0 / per_minute)

    def book(self, units: int, now: float) -> float:
        """Seconds until these units may go."""
        if not self.seconds_each:
            return 0.0
        wait = max(self._due, now) - max(self.BURST_SECONDS - self.seconds_each, 0.0) - now
        self.spend(units)
        return max(wait, 0.0)

    def spend(self, units: int) -> None:
        self._due = max(self._due, time.monotonic()) + units * self.seconds_each


_all: weakref.WeakValueDictionary[str, Limits] = weakref.WeakValueDictionary()
_all_lock = threading.Lock()


def shared_limits(
    key: str, concurrency: int, *, requests_per_minute: float | None, tokens_per_minute: float | None, breaker_seconds: float
) -> Limits:
    """The process's limits of the model that ``key`` names, made by the first caller and kept while anyone holds them."""
    with _all_lock:
        limits = _all.get(key)
        if limits is None:
            limits = _all[key] = Limits(
                concurrency,
                requests_per_minute=requests_per_minute,
                tokens_per_minute=tokens_per_minute,
                breaker_seconds=breaker_seconds,
            )
        else:
            limits.tighten(concurrency, requests_per_minute, tokens_per_minute)
        return limits


async def call_within(limits: Limits, policy: RetryPolicy, call: Callable[[], Awaitable[T]], *, tokens: int = 0) -> T:
    """Make a call in a slot of ``limits``; repeat it after transient errors; open the breaker on permanent ones."""
    until = time.monotonic() + policy.seconds
    for attempt in range(policy.retries + 1):
        await limits.acquire(tokens)
        try:
            result = await call()
        except PermanentModelError as error:
            limits.broke(error)
            raise
        except TransientModelError as error:
            delay = delay_before_repeat(policy, attempt, error, until)
        else:
            limits.succeeded()
            return result
        finally:
            limits.release()
        await asyncio.sleep(delay)
    raise AssertionError("the last attempt returns or raises")


def delay_before_repeat(policy: RetryPolicy, attempt: int, error: TransientModelError, until: float) -> float:
    """Seconds before the next attempt: what the server asked for, else exponential; jittered, so that callers that
    failed together do not return together. Raises ``error`` where the policy allows no further attempt."""
    jitter = random.random()  # noqa: S311
    if error.retry_after is not None:
        delay = error.retry_after * (1.0 + 0.1 * jitter)
    else:
        delay = min(policy.backoff * 2.0**attempt, LONGEST_BACKOFF) * (0.5 + 0.5 * jitter)
    if attempt >= policy.retries or time.monotonic() + delay > until:
        raise error
    return delay
