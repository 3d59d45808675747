from __future__ import annotations

from pathlib import Path

from kgrag.settings import Settings, load
from tests.cli.conftest import Kgrag


def test_show_prints_every_value_with_its_origin(kgrag: Kgrag) -> None:
    shown = kgrag("config", "show", "--json", "--set", "run.lease_seconds=90", "-n", "team").json
    assert shown["run.lease_seconds"] == {"value": 90.0, "origin": "--set run.lease_seconds"}
    assert shown["namespace"] == {"value": "team", "origin": "--set namespace"}
    assert shown["home"]["origin"] == "environment KGRAG_HOME"
    assert shown["backend"] == {"value": "local", "origin": "default"}


def test_show_takes_a_section_and_only_what_changed(kgrag: Kgrag) -> None:
    run = kgrag("config", "show", "run", "--changed", "--set", "run.lease_seconds=90")
    assert run.code == 0
    lines = run.out.strip().splitlines()
    assert lines[0].split() == ["setting", "value", "from"]
    assert [line.split()[:2] for line in lines[1:]] == [["run.lease_seconds", "90.0"]]


def test_show_of_an_unknown_section_names_the_nearest(kgrag: Kgrag) -> None:
    run = kgrag("config", "show", "runn")
    assert (run.code, run.out) == (2, "")
    assert "Did you mean run?" in run.err


def test_the_file_in_the_folder_is_read_without_being_named(kgrag: Kgrag) -> None:
    Path("kgrag.yaml").write_text("namespace: team\n")
    assert kgrag("config", "show", "--json").json["namespace"] == {"value": "team", "origin": "file kgrag.yaml"}


def test_init_writes_a_file_that_changes_nothing_until_it_is_edited(kgrag: Kgrag) -> None:
    assert kgrag("init").code == 0
    assert load("kgrag.yaml", environment={}).settings == Settings()
    text = Path("kgrag.yaml").read_text()
    edited = text.replace("# lease_seconds: 60.0", "lease_seconds: 90").replace("# namespace: default", "namespace: team")
    Path("kgrag.yaml").write_text(edited)
    settings = load("kgrag.yaml", environment={}).settings
    assert (settings.run.lease_seconds, settings.namespace) == (90, "team")


def test_init_keeps_a_file_that_exists(kgrag: Kgrag) -> None:
    Path("kgrag.yaml").write_text("namespace: team\n")
    run = kgrag("init")
    assert run.code == 2
    assert "--force" in run.err
    assert Path("kgrag.yaml").read_text() == "namespace: team\n"
    assert kgrag("init", "--force", "--json").json == {"wrote": "kgrag.yaml"}


def test_init_where_nothing_can_be_written(kgrag: Kgrag) -> None:
    run = kgrag("init", "no/such/folder.yaml")
    assert run.code == 2
    assert "cannot be written" in run.err
