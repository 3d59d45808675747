from __future__ import annotations

import asyncio
import gc
import random
import threading
import time

import pytest

from kgrag.backends.limits import LONGEST_BACKOFF, Limits, RetryPolicy, call_within, delay_before_repeat, shared_limits
from kgrag.errors import PermanentModelError, RejectedError, TransientModelError

POLICY = RetryPolicy(retries=3, seconds=10.0, backoff=0.01)


async def test_waiters_are_served_in_order() -> None:
    limits = Limits(1)
    order: list[int] = []

    async def use(number: int) -> None:
        await limits.acquire()
        order.append(number)
        await asyncio.sleep(0.001)
        limits.release()

    await asyncio.gather(*(use(number) for number in range(6)))
    assert order == list(range(6))
    assert limits.active == 0


async def test_no_slot_is_lost_under_cancellation() -> None:
    limits = Limits(3)
    chance = random.Random(7)
    most = 0

    async def use() -> None:
        nonlocal most
        await limits.acquire()
        try:
            most = max(most, limits.active)
            await asyncio.sleep(chance.random() / 500)
        finally:
            limits.release()

    for _ in range(20):
        tasks = [asyncio.ensure_future(use()) for _ in range(20)]
        await asyncio.sleep(chance.random() / 300)
        for task in tasks[::2]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert limits.active == 0
    assert most == 3


def test_threads_with_loops_of_their_own_share_the_slots() -> None:
    limits = Limits(4)
    active = most = done = 0
    lock = threading.Lock()

    async def use() -> None:
        nonlocal active, most, done
        await limits.acquire()
        with lock:
            active += 1
            most = max(most, active)
        await asyncio.sleep(0.002)
        with lock:
            active -= 1
            done += 1
        limits.release()

    async def many() -> None:
        await asyncio.gather(*(use() for _ in range(40)))

    threads = [threading.Thread(target=lambda: asyncio.run(many())) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert (done, most, limits.active) == (120, 4, 0)


def test_a_waiter_whose_loop_is_gone_blocks_nobody() -> None:
    limits = Limits(1)
    gone = asyncio.new_event_loop()
    gone.run_until_complete(limits.acquire())
    waiting = gone.create_task(limits.acquire())
    gone.run_until_complete(asyncio.sleep(0))
    gone.close()
    limits.release()
    asyncio.run(asyncio.wait_for(limits.acquire(), 1))
    assert limits.active == 1
    waiting._log_destroy_pending = False  # type: ignore[attr-defined]
    waiting.get_coro().close()  # type: ignore[union-attr]


async def test_the_lowest_limits_of_all_callers_hold_while_anyone_holds_them() -> None:
    def limits(concurrency: int) -> Limits:
        return shared_limits("one", concurrency, requests_per_minute=None, tokens_per_minute=None, breaker_seconds=1.0)

    first, second = limits(8), limits(2)
    assert first is second
    for _ in range(2):
        await first.acquire()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(first.acquire(), 0.02)
    del first, second
    gc.collect()
    fresh = limits(3)
    for _ in range(3):
        await asyncio.wait_for(fresh.acquire(), 1)


async def test_throttling_halves_what_runs_at_once_and_successes_earn_it_back() -> None:
    limits = Limits(4)
    limits.throttled(0.05)
    limits.throttled(0.05)
    begun = time.monotonic()
    await limits.acquire()
    assert time.monotonic() - begun >= 0.045
    await limits.acquire()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(limits.acquire(), 0.02)
    for _ in range(12):
        limits.succeeded()
    limits.release()
    for _ in range(3):
        await asyncio.wait_for(limits.acquire(), 1)
    assert limits.active == 4


async def test_requests_are_paced_after_a_second_s_worth() -> None:
    limits = Limits(100, requests_per_minute=1200)
    begun = time.monotonic()
    await asyncio.gather(*(limits.acquire() for _ in range(26)))
    assert 0.25 <= time.monotonic() - begun < 2  # 20 at once, then one every 50 ms


async def test_slow_rates_let_one_request_through_at_a_time() -> None:
    limits = Limits(100, requests_per_minute=30)
    await asyncio.wait_for(limits.acquire(), 0.1)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(limits.acquire(), 0.1)


async def test_tokens_are_paced_by_what_was_expected_and_what_was_used() -> None:
    limits = Limits(100, tokens_per_minute=60_000)
    await limits.acquire(500)
    limits.spent(800)
    begun = time.monotonic()
    await limits.acquire(10)
    assert 0.2 <= time.monotonic() - begun < 2


async def test_only_transient_errors_are_repeated() -> None:
    for error, calls in ((TransientModelError("x"), 4), (RejectedError("x"), 1), (PermanentModelError("x"), 1)):
        made = 0

        async def fail(error: Exception = error) -> None:
            nonlocal made
            made += 1
            raise error

        with pytest.raises(type(error)):
            await call_within(Limits(2), POLICY, fail)
        assert made == calls


def test_the_wait_before_a_repeat_doubles_is_jittered_and_bounded() -> None:
    policy = RetryPolicy(retries=20, seconds=1e9, backoff=0.5)
    error = TransientModelError("x")
    for attempt in range(12):
        waits = [delay_before_repeat(policy, attempt, error, 1e12) for _ in range(50)]
        full = min(0.5 * 2**attempt, LONGEST_BACKOFF)
        assert full / 2 <= min(waits) < max(waits) <= full
    asked = TransientModelError("x", retry_after=100.0)
    assert 100 <= delay_before_repeat(policy, 0, asked, 1e12) <= 110
    with pytest.raises(TransientModelError):
        delay_before_repeat(policy, 20, error, 1e12)
    with pytest.raises(TransientModelError):
        delay_before_repeat(policy, 0, error, time.monotonic())
