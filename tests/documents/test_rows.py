"""Rows of tables and JSON files are documents of their own."""

from __future__ import annotations

import json

import pytest

from kgrag.documents.rows import cell
from kgrag.errors import DocumentError, EmptyDocumentError
from tests.documents.conftest import Read


def test_columns_are_found_by_name_and_the_others_become_metadata(read: Read) -> None:
    found = read("a.csv", 'id,Title,Content,year,code\n1,A,"one, two",1999,007\n').only
    assert (found.title, found.text, found.row) == ("A", "one, two", 1)
    assert found.metadata == {"id": 1, "title": "A", "year": 1999, "code": "007"}


def test_configured_columns_are_taken(read: Read) -> None:
    found = read("a.csv", "k,h,t,text\nx,head,yes,no\n", id_column="k", title_column="h", text_column="t").only
    assert (found.title, found.text) == ("head", "yes")


def test_a_configured_column_that_is_missing_names_file_column_and_setting(read: Read) -> None:
    error = read("a.jsonl", '{"body": "x"}\n', text_column="passage").error
    assert isinstance(error, DocumentError)
    assert error.subject == "a.jsonl"
    assert '"passage"' in error.message
    assert "documents.text_column" in error.remedy


def test_without_a_text_column_the_columns_are_joined(read: Read) -> None:
    assert read("a.csv", "id,port,built\n1,Busan,2004\n").only.text == "port: Busan\nbuilt: 2004"
    assert read("a.csv", "id,text\n1,Busan\n", text_column="-").only.text == "text: Busan"


def test_a_row_keeps_its_identity_when_its_text_or_place_changes(read: Read) -> None:
    before = read("a.csv", "id,text\n1,one\n2,two\n").documents
    after = read("a.csv", "id,text\n2,two\n1,ONE\n").documents
    assert [d.id for d in after] == [before[1].id, before[0].id]


def test_rows_without_an_id_are_told_apart_by_content_and_occurrence(read: Read) -> None:
    one = read("a.jsonl", '{"text": "x", "n": 1}\n{"text": "x", "n": 1}\n{"text": "y", "n": 1}\n').documents
    two = read("a.jsonl", '{"text": "y", "n": 1}\n{"n": 1, "text": "x"}\n{"n": 1, "text": "x"}\n').documents
    assert len({d.id for d in one}) == 3
    assert {d.id for d in one} == {d.id for d in two}


def test_a_second_row_of_one_id_is_refused_and_says_which(read: Read) -> None:
    found = read("a.csv", "id,text\n7,a\n7,b\n8,c\n")
    assert [d.text for d in found.documents] == ["a", "c"]
    assert found.rows[0].row == 2
    assert "row 1" in found.rows[0].error.message


def test_ids_of_another_type_or_beyond_a_float_are_others(read: Read) -> None:
    rows = [{"id": 1}, {"id": "1"}, {"id": 9007199254740992}, {"id": 9007199254740993}, {"id": [1]}]
    found = read("a.json", json.dumps([{**r, "text": "x"} for r in rows]))
    assert len({d.id for d in found.documents}) == 5


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found(read: Read, delimiter: str) -> None:
    found = read("a.csv", delimiter.join(["id", "title", "text"]) + "\n" + delimiter.join(["1", "A", "x. y"]) + "\n").only
    assert (found.title, found.text) == ("A", "x. y")


def test_excel_may_state_the_delimiter(read: Read) -> None:
    assert read("a.csv", "sep=;\nid;text\n1;a,b\n").only.text == "a,b"


def test_an_unclosed_quotation_mark_is_reported_with_its_line(read: Read) -> None:
    found = read("a.csv", 'id,text\n1,fine\n2,"never closed\n3,lost\n')
    assert [d.text for d in found.documents] == ["fine"]
    assert "line 3" in found.rows[0].error.message


def test_ragged_rows_are_reported_with_their_line(read: Read) -> None:
    found = read("a.csv", "id,title,text,x\n1,a,b,c,d\n2,a,b\n3,a,b,c,\n")
    assert [d.row for d in found.documents] == [2, 3]
    assert "Line 2 has 5 cells" in found.rows[0].error.message
    assert "Line 3 has 3 cells" in found.documents[0].warnings[0]


def test_bad_lines_cost_themselves(read: Read) -> None:
    found = read("a.jsonl", '{"text": "a"}\nnot json\n\n{"text": "b"}\n[1]\n{"text": NaN}\n' + "[" * 5000 + "\n")
    assert [(d.text, d.row) for d in found.documents] == [("a", 1), ("b", 4)]
    assert [r.row for r in found.rows] == [2, 5, 6, 7]


def test_an_empty_row_is_told_from_a_broken_one(read: Read) -> None:
    found = read("a.jsonl", '{"text": "a"}\n{"text": " "}\n{"title": "t"}\n')
    assert isinstance(found.rows[0].error, EmptyDocumentError)
    assert not isinstance(found.rows[1].error, EmptyDocumentError)


def test_a_failed_row_has_the_id_of_the_document_it_would_be(read: Read) -> None:
    good = read("a.jsonl", '{"id": 1, "text": "a"}\n').only
    assert read("a.jsonl", '{"id": 1, "text": ""}\n').rows[0].id == good.id


def test_a_list_of_strings_is_a_list_of_texts(read: Read) -> None:
    assert [d.text for d in read("a.json", '["a b", "c d"]').documents] == ["a b", "c d"]


def test_one_object_is_the_document_of_its_file(read: Read) -> None:
    found = read("a.json", '{"title": "T", "body": "text", "tags": ["x", "y"], "deep": {"k": [1]}}').only
    assert found.row is None
    assert found.metadata == {"title": "T", "tags": ["x", "y"], "deep": '{"k":[1]}'}


def test_reserved_and_long_fields_give_way(read: Read) -> None:
    found = read("a.json", json.dumps({"text": "t", "path": "p", "document_id": "d", "long": "x" * 2000})).only
    assert found.metadata == {"path_": "p", "document_id_": "d"}
    assert "long" in found.warnings[0]


def test_huge_integers_stay_as_text(read: Read) -> None:
    assert read("a.json", json.dumps({"text": "t", "n": 2**80})).only.metadata == {"n": str(2**80)}


def test_a_row_over_the_limit_is_refused_alone(read: Read) -> None:
    found = read("a.jsonl", json.dumps({"text": "x" * 300}) + '\n{"text": "ok"}\n', max_characters=200)
    assert [d.text for d in found.documents] == ["ok"]
    assert "documents.max_characters" in found.rows[0].error.remedy


def test_rows_over_the_limit_end_the_file(read: Read) -> None:
    found = read("a.csv", "id,text\n" + "".join(f"{i},x\n" for i in range(10)), max_rows=4)
    assert len(found.documents) == 4
    assert "documents.max_rows" in found.rows[0].error.remedy


@pytest.mark.parametrize(
    ("text", "value"), [("12", 12), ("-3", -3), ("3.50", 3.5), ("007", "007"), ("1e5", "1e5"), ("", ""), ("1,5", "1,5")]
)
def test_cells_are_numbers_only_where_they_are_written_as_ones(text: str, value: object) -> None:
    assert cell(text) == value
