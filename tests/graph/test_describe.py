from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgrag.errors import OutputError
from kgrag.graph.derive import item_table
from kgrag.graph.describe import DescribeStage, DescriptionSettings, chunks, overlong, summarise
from kgrag.records import Entity, Relationship, Usage, decode
from kgrag.stage import RowError
from kgrag.text import count_tokens
from tests.graph.replies import Replies

LINES = [f"line {i} says something about the thing {i * i}" for i in range(400)]
SMALL = DescriptionSettings(max_tokens=40, chunk_tokens=200)


def first_words(task: str, input: object) -> str:
    return "Sum of " + " ".join(line.split()[1] for line in input.lines)[:60]


def cut(lines: list[str]) -> list[list[str]]:
    return chunks(lines, [count_tokens(line) for line in lines], 200)


@given(st.lists(st.integers(0, 10_000), max_size=300))
def test_chunks_hold_every_line_in_order_and_fit(numbers):
    lines = [f"line {n}" for n in numbers]
    made = cut(lines)
    assert [line for chunk in made for line in chunk] == lines
    assert all(sum(map(count_tokens, chunk)) <= 200 for chunk in made)


def test_one_added_line_changes_few_chunks():
    before = {tuple(c) for c in cut(LINES)}
    assert len(before) > 10
    changed = [
        len({tuple(c) for c in cut([*LINES[:at], "an added line of text", *LINES[at:]])} - before) for at in range(0, 400, 7)
    ]
    assert max(changed) <= 4
    assert sum(changed) / len(changed) < 1.6


async def test_a_long_description_is_summarised_as_a_tree_and_one_more_line_asks_one_path():
    first = Replies(first_words)
    text, usage = await summarise("Thing", LINES, first, SMALL)
    assert text.startswith("Sum of")
    assert usage == Usage(calls=len(first.asked), input_tokens=10 * len(first.asked))
    second = Replies(first_words)
    await summarise("Thing", [*LINES[:200], "an added line of text", *LINES[200:]], second, SMALL)
    known = {msgspec.json.encode(input) for input in first.asked}
    assert len([i for i in second.asked if msgspec.json.encode(i) not in known]) <= 6
    assert all(len(input.lines) > 1 for input in first.asked)


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(1, 600), min_size=1, max_size=40))
async def test_lines_of_any_length_come_to_an_end(lengths):
    engine = Replies(lambda task, input: "x " * 300)  # summaries longer than a chunk
    text, _ = await summarise("Thing", ["w " * n for n in lengths], engine, SMALL)
    assert text == "x " * 300


def items() -> tuple[list[Entity | Relationship], list[int]]:
    long = "\n".join(LINES[:50])
    made = [
        Entity(id="a", name="A", description="short"),
        Entity(id="b", name="B", description=long, rank=3),
        Relationship(id="c", source_id="a", target_id="b", source_name="A", target_name="B", description=long),
    ]
    return made, [1, 2]


def test_only_descriptions_over_the_budget_are_picked():
    made, long = items()
    assert overlong(item_table(made, [[]] * 3), SMALL) == long


async def test_the_stage_replaces_the_description_and_nothing_else():
    made, _ = items()
    rows = item_table(made, [["d"]] * 3).to_pylist()
    engine = Replies(first_words)
    stage = DescribeStage(SMALL)
    assert await stage.row(rows[0], engine) == rows[0]
    out = await stage.row(rows[2], engine)
    assert decode(out["body"], Relationship) == msgspec.structs.replace(made[2], description=out_description(out))
    assert out_description(out).startswith("Sum of")
    assert {k: v for k, v in out.items() if k not in ("body", "usage")} == {
        k: v for k, v in rows[2].items() if k not in ("body", "usage")
    }
    assert {input.name for input in engine.asked} == {"A - B"}


async def test_a_failed_summary_keeps_whole_lines_up_to_the_cap():
    def fail(task: str, input: object) -> str:
        raise OutputError("no")

    made, _ = items()
    row = item_table(made[1:2], [["d"]]).to_pylist()[0]
    stage = DescribeStage(DescriptionSettings(max_tokens=40, kept_tokens=100))
    with pytest.raises(OutputError) as failure:
        await stage.row(row, Replies(fail))
    out = stage.failed(row, RowError.of("describe", failure.value))
    kept = out_description(out).split("\n")
    assert kept == LINES[: len(kept)]
    assert 80 < sum(map(count_tokens, kept)) <= 100
    assert decode(out["error"], RowError).type == "OutputError"


def out_description(row: dict[str, object]) -> str:
    return decode(row["body"], Relationship if row["kind"] == "relationship" else Entity).description
