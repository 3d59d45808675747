from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Kgrag


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
