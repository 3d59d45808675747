"""One tree, five layers, and errors that name what was probably meant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, SecretStr

from kgrag.errors import ConfigurationError
from kgrag.section import Section
from kgrag.settings import Settings, layers, load
from kgrag.settings.keys import check_keys, descriptions, fields_of, leaves, sections_in
from kgrag.settings.reference import render
from kgrag.settings.tree import PRESETS

ROOT = Path(__file__).parent.parent


def write(folder: Path, text: str, name: str = "kgrag.yaml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


class TestLayers:
    def test_each_layer_wins_over_the_one_before(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(PRESETS, "local", {"run": {"lease_seconds": 10}})  # type: ignore[misc]
        environment: dict[str, str] = {}
        assert load(environment={}).settings.run.lease_seconds == 10
        file = write(tmp_path, "run:\n  lease_seconds: 20\n  rows_in_flight: 21\n")
        assert load(file, environment=environment).settings.run.lease_seconds == 20
        environment["KGRAG__RUN__LEASE_SECONDS"] = "30"
        assert load(file, environment=environment).settings.run.lease_seconds == 30
        loaded = load(file, flags=["run.lease_seconds=40"], environment=environment)
        assert (loaded.settings.run.lease_seconds, loaded.settings.run.rows_in_flight) == (40, 21)
        overridden = load(file, flags=["run.lease_seconds=40"], overrides={"run": {"lease_seconds": 50}}, environment=environment)
        assert overridden.settings.run.lease_seconds == 50

    def test_every_value_says_where_it_came_from(self, tmp_path: Path) -> None:
        file = write(tmp_path, "run: {lease_seconds: 20}\n")
        environment = {"KGRAG_HOME": str(tmp_path), "KGRAG__INDEX__LANGUAGE": "de"}
        loaded = load(file, flags=["namespace=tea"], environment=environment)
        origins = {name: origin for name, _, origin in loaded.rows()}
        assert origins["run.lease_seconds"] == f"file {file}"
        assert origins["home"] == "environment KGRAG_HOME"
        assert origins["index.language"] == "environment KGRAG__INDEX__LANGUAGE"
        assert origins["namespace"] == "--set namespace"
        assert origins["run.rows_in_flight"] == "default"

    def test_toml_and_yaml_say_the_same(self, tmp_path: Path) -> None:
        toml = write(tmp_path, '[run]\nlease_seconds = 20\n[resolution.aliases]\nNYC = "New York City"\n', "a.toml")
        yaml = write(tmp_path, "run:\n  lease_seconds: 20\nresolution:\n  aliases: {NYC: New York City}\n")
        assert load(toml, environment={}).settings == load(yaml, environment={}).settings

    def test_the_variable_names_the_file(self, tmp_path: Path) -> None:
        file = write(tmp_path, "namespace: tea\n")
        assert load(environment={"KGRAG_CONFIG": str(file)}).settings.namespace == "tea"

    def test_lists_and_objects_are_json_in_flags_and_variables(self) -> None:
        loaded = load(
            flags=['index.methodologies=["hipporag"]', "resolution.aliases.NYC=New York"],
            environment={"KGRAG__RESOLUTION__ALIASES": '{"LA": "Los Angeles"}'},
        )
        assert loaded.settings.index.methodologies == ["hipporag"]
        assert loaded.settings.resolution.aliases == {"LA": "Los Angeles", "NYC": "New York"}

    def test_a_flag_keeps_text_that_looks_like_a_number(self) -> None:
        assert load(flags=["namespace=2024"], environment={}).settings.namespace == "2024"

    def test_home_is_expanded(self) -> None:
        assert load(environment={"KGRAG_HOME": "~/x"}).settings.home == Path.home() / "x"

    def test_dotted_overrides(self) -> None:
        assert load(overrides={"run.lease_seconds": 9}, environment={}).settings.run.lease_seconds == 9


class TestRefusals:
    @pytest.mark.parametrize(
        ("flag", "near"),
        [
            ("run.lease_secs=1", "run.lease_seconds"),
            ("runn.lease_seconds=1", "run"),
            ("lease_seconds=1", "run.lease_seconds"),
            ("index.languag=de", "index.language"),
            ("Namespace=x", "namespace"),
        ],
    )
    def test_an_unknown_key_names_the_nearest(self, flag: str, near: str) -> None:
        with pytest.raises(ConfigurationError) as caught:
            load(flags=[flag], environment={})
        assert f"Did you mean {near}" in str(caught.value)
        assert f"--set {flag.split('=')[0]}" in str(caught.value)

    def test_a_key_like_no_other_lists_the_valid_ones(self) -> None:
        with pytest.raises(ConfigurationError, match=r"Known here: .*lease_seconds"):
            load(flags=["run.zzz=1"], environment={})

    def test_a_wrong_value_says_where_it_stands(self) -> None:
        with pytest.raises(ConfigurationError, match=r"run\.lease_seconds: .*3 \(environment KGRAG__RUN__LEASE_SECONDS\)"):
            load(environment={"KGRAG__RUN__LEASE_SECONDS": "1"})

    def test_a_misspelt_variable_is_not_ignored(self) -> None:
        with pytest.raises(ConfigurationError, match=r"run\.lease_seconds"):
            load(environment={"KGRAG__RUN__LEASE_SECOND": "30"})

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("run: [", "does not parse"),
            ("run: {lease_seconds: 20}\nrun: {rows_in_flight: 2}\n", "stands twice"),
            ("- a\n", "holds no sections"),
            ("run: 3\n", r"run: .*\(file"),
        ],
    )
    def test_a_bad_file_is_refused_by_name(self, tmp_path: Path, text: str, message: str) -> None:
        with pytest.raises(ConfigurationError, match=message):
            load(write(tmp_path, text), environment={})

    def test_a_missing_file_says_how_to_make_one(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigurationError, match="kgrag init"):
            load(tmp_path / "none.yaml", environment={})

    def test_a_flag_without_a_value(self) -> None:
        with pytest.raises(ConfigurationError, match=r"--set section\.key=value"):
            load(flags=["namespace"], environment={})

    def test_an_unknown_backend(self) -> None:
        with pytest.raises(ConfigurationError, match="backend: "):
            load(flags=["backend=moon"], environment={})


class Inner(Section):
    size: int = 1
    key: SecretStr | None = None


class Outer(Section):
    inner: Inner | None = None
    many: dict[str, str | Inner] = {}
    listed: list[Inner] = []


class TestKeys:
    @pytest.mark.parametrize(
        "values",
        [{"inner": {"siz": 1}}, {"many": {"a": {"siz": 1}}}, {"listed": [{"siz": 1}]}],
    )
    def test_sections_in_options_dicts_and_lists_are_checked(self, values: dict[str, Any]) -> None:
        with pytest.raises(ConfigurationError, match="size"):
            check_keys(Outer, values, "test")

    def test_leaves_go_into_optional_sections(self) -> None:
        assert [name for name, _ in leaves(Outer)] == ["inner.size", "inner.key", "many", "listed"]

    def test_secrets_are_masked(self) -> None:
        shown = layers._values(Outer(inner=Inner(key=SecretStr("hunter2"))), "")
        assert dict(shown)["inner.key"] == "**********"


class TestTree:
    def test_a_default_section_equals_its_class(self) -> None:
        """Otherwise setting one key of a section would silently change its others."""

        def check(section: type[BaseModel]) -> None:
            for name, field in fields_of(section).items():
                inner = sections_in(field.annotation)
                if inner and field.default is not None:
                    assert field.get_default(call_default_factory=True) == inner[0](), f"{section.__name__}.{name}"
                for found in inner:
                    check(found)

        check(Settings)

    def test_every_value_is_documented(self) -> None:
        def undocumented(section: type[BaseModel]) -> list[str]:
            said = descriptions(section)
            missing = [
                f"{section.__name__}.{name}"
                for name, field in fields_of(section).items()
                if not said[name] and not sections_in(field.annotation)
            ]
            return missing + [
                name
                for field in fields_of(section).values()
                for inner in sections_in(field.annotation)
                for name in undocumented(inner)
            ]

        assert undocumented(Settings) == []

    def test_the_reference_page_is_current(self) -> None:
        assert (ROOT / "configs" / "REFERENCE.md").read_text(encoding="utf-8") == render(), "run `make reference`"

    @pytest.mark.parametrize("path", sorted((ROOT / "configs").glob("*.yaml")), ids=lambda path: path.name)
    def test_every_shipped_configuration_loads(self, path: Path) -> None:
        assert load(path, environment={}).settings
