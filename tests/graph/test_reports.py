from __future__ import annotations

import pytest

from kgrag.graph.communities import CommunitySettings, detect
from kgrag.graph.derive import item_table
from kgrag.graph.network import network_of
from kgrag.graph.packing import Costs, ReportSettings, pack, roll_up
from kgrag.graph.reports import ReportPacker, ReportStage, full_content
from kgrag.records import Claim, Entity, Finding, Relationship, Report, decode
from kgrag.stage import RowError
from kgrag.tasks.reports import ReportInput, ReportText
from kgrag.text import count_tokens
from tests.graph.replies import Replies

ROOMY = ReportSettings()


def entity(id: str, rank: int = 0, words: int = 5, units: tuple[str, ...] = ("u1",)) -> Entity:
    return Entity(id=id, name=id.upper(), type="thing", description="word " * words, rank=rank, text_unit_ids=list(units))


def edge(source: str, target: str, weight: float = 1.0, words: int = 3) -> Relationship:
    description = f"{source} {target} " + "text " * words
    return Relationship(
        id=f"{source}-{target}",
        source_id=source,
        target_id=target,
        type="t",
        description=description,
        weight=weight,
        text_unit_ids=["u1"],
    )


def claim(subject: str, object_id: str = "", **fields: str) -> Claim:
    return Claim(id=f"claim-{subject}", subject_id=subject, object_id=object_id, text_unit_ids=["u1"], **fields)


def names(packed: ReportInput) -> list[str]:
    return [e.name for e in packed.entities]


def pairs(packed: ReportInput) -> list[tuple[str, str]]:
    return [(r.source, r.target) for r in packed.relationships]


def test_everything_is_packed_where_it_fits():
    entities = [entity("a", 3), entity("b", 2), entity("c", 1), entity("lonely", 0)]
    packed, cut = pack(
        "C", entities, [edge("a", "b"), edge("b", "c")], {"b": [claim("b", "a", type="ACT", status="TRUE")]}, ROOMY, Costs()
    )
    assert (names(packed), pairs(packed), cut) == (["A", "B", "C", "LONELY"], [("A", "B"), ("B", "C")], False)
    assert packed.claims == ["B, ACT, A, TRUE"]


def test_an_edge_that_does_not_fit_is_left_out_and_the_next_one_tried():
    entities = [entity("a", 3), entity("b", 2, words=500), entity("c", 1)]
    packed, cut = pack("C", entities, [edge("a", "b"), edge("a", "c")], {}, ReportSettings(max_report_context_tokens=150), Costs())
    assert (names(packed), pairs(packed), cut) == (["A", "C"], [("A", "C")], True)


def test_members_without_an_edge_come_last_and_an_edge_beats_them():
    entities = [entity("a", 5), entity("alone", 4, words=60), entity("b", 1, words=60)]
    packed, cut = pack("C", entities, [edge("a", "b")], {}, ReportSettings(max_report_context_tokens=150), Costs())
    assert (names(packed), cut) == (["A", "B"], True)


def test_the_best_connected_member_always_fits():
    settings = ReportSettings(max_report_context_tokens=100)
    packed, cut = pack("C", [entity("a", 9, words=5000), entity("b", 1)], [edge("a", "b")], {}, settings, Costs())
    assert (names(packed), cut) == (["A"], True)
    assert 50 < count_tokens(packed.entities[0].description) <= 100


def test_an_end_brings_its_claims_or_stays_out():
    entities = [entity("a", 2), entity("b", 1)]
    long = {"b": [claim("b", object="it", description="word " * 300)]}
    packed, cut = pack("C", entities, [edge("a", "b")], long, ReportSettings(max_report_context_tokens=200), Costs())
    assert (names(packed), packed.claims, cut) == (["A"], [], True)


def test_summaries_of_sub_communities_go_biggest_first_within_the_budget():
    def child(id: str, words: int) -> Report:
        return Report(id=id, title=id, summary="word " * words, rating=4)

    rolled = roll_up([(3, child("small", 5)), (9, child("huge", 900)), (5, child("mid", 5))], 100)
    assert [(sub.name, sub.rating) for sub in rolled] == [("mid", 4), ("small", 4)]


def graph() -> tuple[list[Entity], list[Relationship]]:
    """Twelve rings of five: enough for two levels."""
    relationships = []
    for ring in range(12):
        own = [f"{ring:02}{c}" for c in "abcde"]
        relationships += [edge(s, t) for i, s in enumerate(own) for t in own[i + 1 :]]
        relationships.append(edge(f"{ring:02}a", f"{(ring + 1) % 12:02}b"))
    degree: dict[str, int] = {}
    for r in relationships:
        for end in (r.source_id, r.target_id):
            degree[end] = degree.get(end, 0) + 1
    return [entity(id, degree[id], units=(f"u{id[:2]}",)) for id in sorted(degree)], relationships


def packer(settings: ReportSettings = ROOMY, **fields: object) -> ReportPacker:
    entities, relationships = graph()
    claims = [claim("00a", "00b", type="ACT")]
    items = [*entities, *relationships, *claims]
    documents = [[f"d{item.text_unit_ids[0][1:]}"] for item in items]
    ids, network = network_of([], [(r.source_id, r.target_id, r.weight) for r in relationships])
    communities = detect(ids, network, CommunitySettings(max_cluster_size=6))
    return ReportPacker(item_table(items, documents), communities, settings, **fields)


def write(task: str, input: ReportInput) -> ReportText:
    return ReportText(
        title=f"About {input.name}",
        summary="All of it.",
        rating=6,
        rating_explanation="Central.",
        findings=[Finding(summary="F", explanation="why")],
    )


async def reports_of(source: ReportPacker, engine: Replies) -> dict[str, Report]:
    written: dict[str, Report] = {}
    stage = ReportStage()
    for level in source.levels:
        for row in source.inputs(level, written).to_pylist():
            out = await stage.row(row, engine)
            written[row["id"]] = decode(out["body"], Report)
    return written


async def test_reports_are_written_bottom_up_with_rank_and_lineage():
    source = packer()
    written = await reports_of(source, Replies(write))
    assert set(written) == set(source.communities)
    fine = next(r for r in written.values() if r.entity_ids[0] == "00a" and not r.child_ids)
    assert fine.rank == 5 * 4 + 2
    assert (fine.text_unit_ids, fine.document_ids) == (["u00"], ["d00"])
    assert fine.full_content == f"# About {fine_name(source, fine)}\n\nAll of it.\n\n## F\n\nwhy\n\nRating: 6/10. Central."
    parent = written[fine.parent_id]
    assert set(parent.text_unit_ids) == {u for id in parent.child_ids for u in written[id].text_unit_ids}
    assert (fine.level, parent.depth) == (0, fine.depth - 1)


def fine_name(source: ReportPacker, report: Report) -> str:
    return source.communities[report.id].name


async def test_edges_are_offered_by_combined_degree_then_weight_then_id():
    source = packer()
    row = next(r for r in source.inputs(0, {}).to_pylist() if decode(r["frame"], Report).entity_ids[0] == "00a")
    packed = decode(row["input"], ReportInput)
    assert [e.name for e in packed.entities] == ["00A", "00B", "00C", "00D", "00E"]
    assert pairs(packed)[0] == ("00A", "00B")
    assert [sorted(pair) for pair in pairs(packed)[-3:]] == [["00C", "00D"], ["00C", "00E"], ["00D", "00E"]]
    assert packed.claims == ["00A, ACT, 00B"]


async def test_a_parent_that_was_cut_takes_in_its_childrens_summaries():
    engine = Replies(write)
    source = packer(ReportSettings(max_entities_per_report=4))
    await reports_of(source, engine)
    parents = [i for i in engine.asked if i.name.startswith("Level 1")]
    assert parents
    for packed in parents:
        assert len(packed.entities) <= 4
        assert packed.children[0].name.startswith("About Level 0")
    whole = Replies(write)
    await reports_of(packer(ReportSettings(max_entities_per_report=60)), whole)
    assert all(not i.children for i in whole.asked)
    off = Replies(write)
    await reports_of(packer(ReportSettings(max_entities_per_report=4, enable_sub_community_rollup=False)), off)
    assert all(not i.children for i in off.asked)


async def test_the_input_digest_names_what_a_report_was_written_from():
    first = await reports_of(packer(), Replies(write))
    again = await reports_of(packer(), Replies(write))
    other = await reports_of(packer(language="German"), Replies(write))
    assert first == again
    assert all(first[id].input_digest != other[id].input_digest for id in first)


def test_a_community_only_an_imported_graph_knows_gets_no_report():
    entities = [entity(id, 0, units=("sg-1",)) for id in "abc"]
    relationships = [edge("a", "b"), edge("b", "c"), edge("a", "c")]
    found = detect(*network_of([], [(r.source_id, r.target_id, 1.0) for r in relationships]), CommunitySettings())
    source = ReportPacker(item_table([*entities, *relationships], [[]] * 6), found)
    assert len(source.inputs(0, {})) == 0


def test_a_failed_report_is_a_row_without_a_body():
    out = ReportStage().failed({"id": "x"}, RowError("reports", "OutputError", "no"))
    assert (out["id"], out["body"]) == ("x", b"")
    assert decode(out["error"], RowError).message == "no"


@pytest.mark.parametrize(
    ("text", "content"),
    [(ReportText(title="T", summary="S"), "# T\n\nS"), (ReportText(title="T", summary="", rating=2.5), "# T\n\nRating: 2.5/10.")],
)
def test_full_content_leaves_out_what_is_not_there(text, content):
    assert full_content(text) == content
