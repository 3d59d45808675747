"""Made-up passages of an encyclopedia, for benchmarks that need many and no particular ones."""

from __future__ import annotations

import json
import random
from pathlib import Path

_SYLLABLES = (
    "ba",
    "cor",
    "den",
    "fal",
    "gri",
    "hol",
    "jas",
    "kel",
    "lin",
    "mor",
    "nar",
    "pel",
    "ros",
    "sun",
    "tav",
    "vel",
    "wyn",
    "zan",
)
_SENTENCES = (
    "{} worked with {} for several years and left after a quarrel over money in the spring of {year}.",
    "The studio of {} was built near that of {}, and both were sold when the market fell in {year}.",
    "In {year}, {} wrote a long letter about {} and the dispute over the archive to {}.",
    "{} is remembered for a book on the early work of {}, which was printed in {year}.",
    "Critics of the time compared {} to {}, although neither had heard of the other before {year}.",
)


def write_passages(path: Path, count: int, *, sentences: int = 4) -> Path:
    """JSON Lines of ``count`` passages of about 90 characters a sentence. Names recur: there are as many as passages, the
    first of them far more often than the last."""
    chance = random.Random(7)  # the same corpus every time
    names = list(dict.fromkeys(f"{_word(chance)} {_word(chance)}" for _ in range(count)))
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            title = names[number % len(names)]
            text = " ".join(_sentence(chance, names, title if not i else "") for i in range(sentences))
            file.write(json.dumps({"id": str(number), "title": title, "text": text}) + "\n")
    return path


def _word(chance: random.Random) -> str:
    return "".join(chance.choices(_SYLLABLES, k=3)).capitalize()


def _sentence(chance: random.Random, names: list[str], first: str) -> str:
    form = chance.choice(_SENTENCES)
    picked = [names[int(len(names) * chance.random() ** 2)] for _ in range(form.count("{}"))]
    return form.format(*([first, *picked[1:]] if first else picked), year=chance.randint(1800, 1999))
