from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from pathlib import Path

from kgrag.backends.local.openai import OpenAIChat
from kgrag.engine import ModelEngine
from kgrag.engine.settings import ModelSettings
from kgrag.tasks.extraction import EXTRACT, ExtractionInput
from kgrag.testing.openai_server import OpenAIServer

TEXT = "Ada Lovelace met Charles Babbage in London in 1833."


async def test_every_nth_call_is_slow_and_counters_tell() -> None:
    async with OpenAIServer(latency=0.001, slow_every=3, slow_latency=0.02) as server:
        engine = ModelEngine({"default": OpenAIChat(ModelSettings(provider="openai", base_url=server.url, model="stub"))})
        for number in (1, 2, 3, 3):
            await engine.ask(EXTRACT, ExtractionInput(text=f"{TEXT} {number}"))
        await engine.aclose()
        assert server.counters.chat == 4
        assert server.counters.latency == 0.001 * 3 + 0.02
        assert server.repeated == 1


def test_it_serves_as_a_process_of_its_own() -> None:
    command = [sys.executable, "-m", "kgrag.testing.openai_server", "--latency", "0.01"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        try:
            body = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
            request = urllib.request.Request(
                f"{url}/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
            )
            with urllib.request.urlopen(request) as response:
                assert json.load(response)["choices"][0]["message"]["content"] == "hello"
            root = url.removesuffix("/v1")
            with urllib.request.urlopen(f"{root}/stats") as response:
                assert json.load(response)["chat"] == 1
            with urllib.request.urlopen(urllib.request.Request(f"{root}/reset", b'{"latency": 0}')):
                pass
            with urllib.request.urlopen(f"{root}/stats") as response:
                assert json.load(response)["chat"] == 0
        finally:
            process.terminate()
