"""``kgrag config`` and ``kgrag init``: see the configuration, and write one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from kgrag.cli.options import LOCAL_FILE, ConfigOption, DebugOption, JsonOption, NamespaceOption, SetOption, settings_of
from kgrag.cli.outcome import command
from kgrag.cli.output import print_json, print_table

config_app = typer.Typer(no_args_is_help=True, help="See the configuration.")

SHOW = """Show every setting in effect and where it came from; secrets are masked.

\b
Examples:
  kgrag config show
  kgrag config show run --set run.lease_seconds=90
  kgrag config show --changed --json
"""


@config_app.command("show", help=SHOW)
@command
def show(
    only: Annotated[str | None, typer.Argument(help="Show this section or setting only.", metavar="SECTION")] = None,
    changed: Annotated[bool, typer.Option("--changed", help="Leave out what is at its default.")] = False,
    config: ConfigOption = None,
    assignments: SetOption = None,
    namespace: NamespaceOption = None,
    json_: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    loaded = settings_of(config, assignments, namespace)
    rows = loaded.rows()
    if only:
        rows = [row for row in rows if row[0] == only or row[0].startswith(f"{only}.")] or _nothing(only, [row[0] for row in rows])
    rows = [row for row in rows if not changed or row[2] != "default"]
    if json_:
        print_json({name: {"value": json.loads(value), "origin": origin} for name, value, origin in rows})
    else:
        print_table("", ("setting", "value", "from"), rows)


def _nothing(only: str, known: list[str]) -> list[tuple[str, str, str]]:
    import difflib

    from kgrag.errors import ConfigurationError

    sections = list(dict.fromkeys(name.partition(".")[0] for name in known))
    near = difflib.get_close_matches(only, [*sections, *known], n=1)
    raise ConfigurationError(
        f'There is no section or setting "{only}".',
        subject=only,
        remedy=f"Did you mean {near[0]}?" if near else f"Sections: {', '.join(sections)}.",
    )


INIT = f"""Write a commented configuration file to start from.

\b
Examples:
  kgrag init
  kgrag init team.yaml

Commands read {LOCAL_FILE} from the folder they run in; another file is named with --config or KGRAG_CONFIG.
"""


@command
def init(
    path: Annotated[Path, typer.Argument(help="The file to write.", metavar="FILE")] = Path(LOCAL_FILE),
    force: Annotated[bool, typer.Option("--force", help="Write over a file that exists.")] = False,
    json_: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    from kgrag.errors import ConfigurationError
    from kgrag.settings.template import template

    if path.exists() and not force:
        raise ConfigurationError(f'"{path}" exists.', subject=str(path), remedy="Name another file, or add --force.")
    try:
        path.write_text(template(), encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(
            f'"{path}" cannot be written: {error.strerror or error}.', subject=str(path), remedy="Name a file in another folder."
        ) from error
    if json_:
        print_json({"wrote": str(path)})
    else:
        print(f"Wrote {path}. Every line in it is a comment that shows a default; uncomment what you change.")
        print("Next: kgrag ingest FOLDER")
