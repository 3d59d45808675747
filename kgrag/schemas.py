"""Columns of the tables that stages exchange, in order.

Values that only travel (a record, a statement, an item) go as their canonical bytes in one column: encoding and decoding
them costs a tenth of a column per field. What a stage or a store must see without decoding stands beside them.
``metadata`` is a document's filter fields as JSON, ``usage`` an encoded ``Usage``, ``error`` an encoded ``RowError``;
each is empty where there is none.
"""

from __future__ import annotations

import pyarrow as pa

FILES = pa.schema(
    [
        pa.field("scope", pa.string(), nullable=False),
        pa.field("path", pa.string(), nullable=False),
        pa.field("uri", pa.string(), nullable=False),
        pa.field("digest", pa.string(), nullable=False),
        pa.field("size", pa.int64(), nullable=False),
        pa.field("error", pa.string(), nullable=False),
    ]
)
"""Source files to parse. ``path`` is relative to the source ``scope``, ``uri`` says where to read it, ``digest`` is its bytes'
(empty where they cannot be read). A row with an ``error`` stands for what cannot be listed: all that is below ``path``, which
then ends in ``/``. Nothing below it is known to be gone."""

DOCUMENTS = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("scope", pa.string(), nullable=False),
        pa.field("path", pa.string(), nullable=False),
        pa.field("title", pa.string(), nullable=False),
        pa.field("text", pa.string(), nullable=False),
        pa.field("digest", pa.string(), nullable=False),
        pa.field("metadata", pa.string(), nullable=False),
        pa.field("pages", pa.list_(pa.int64()), nullable=False),
        pa.field("row", pa.int64()),
        pa.field("warnings", pa.list_(pa.string()), nullable=False),
        pa.field("error", pa.string(), nullable=False),
    ]
)
"""Parsed documents, those of one file together and in its order. A row with an ``error`` stands for a file or a row of one
that cannot be read; its ``id`` may be empty."""

TEXT_UNITS = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("document_id", pa.string(), nullable=False),
        pa.field("title", pa.string(), nullable=False),
        pa.field("text", pa.string(), nullable=False),
        pa.field("tokens", pa.int32(), nullable=False),
        pa.field("start", pa.int64(), nullable=False),
        pa.field("end", pa.int64(), nullable=False),
        pa.field("metadata", pa.string(), nullable=False),
        pa.field("error", pa.string(), nullable=False),
    ]
)
"""Text units, those of one document together and in its order. ``[start, end)`` is where one stands in the document's text;
``metadata`` is the document's, with its ``path``."""

RECORDS = pa.schema(
    [
        pa.field("unit_id", pa.string(), nullable=False),
        pa.field("document_id", pa.string(), nullable=False),
        pa.field("metadata", pa.string(), nullable=False),
        pa.field("body", pa.binary(), nullable=False),
        pa.field("usage", pa.string(), nullable=False),
        pa.field("error", pa.string(), nullable=False),
    ]
)
"""``body`` is a ``UnitRecord``; empty where the row failed. An ``error`` beside a body: the record stands, without its
gleaning or claims."""

STATEMENTS = pa.schema(
    [
        pa.field("group", pa.string(), nullable=False),
        pa.field("unit_id", pa.string(), nullable=False),
        pa.field("document_id", pa.string(), nullable=False),
        pa.field("metadata", pa.string(), nullable=False),
        pa.field("body", pa.binary(), nullable=False),
    ]
)
"""``body`` is ``pack_statements`` of what one unit states about one group, ``metadata`` its document's."""

ITEMS = pa.schema(
    [
        pa.field("kind", pa.string(), nullable=False),
        pa.field("id", pa.string(), nullable=False),
        pa.field("body", pa.binary(), nullable=False),
        pa.field("source_id", pa.string(), nullable=False),
        pa.field("target_id", pa.string(), nullable=False),
        pa.field("weight", pa.float64(), nullable=False),
        pa.field("rank", pa.int64(), nullable=False),
        pa.field("document_ids", pa.list_(pa.string()), nullable=False),
        pa.field("usage", pa.string(), nullable=False),
        pa.field("error", pa.string(), nullable=False),
    ]
)
"""``kind`` is ``entity``, ``relationship`` or ``claim`` and ``body`` that record. ``source_id``, ``target_id`` and ``weight``
are a relationship's, ``rank`` an entity's; empty or 0 for the others. An ``error`` beside a body: the item stands, with its
description's lines instead of their summary."""

REPORT_INPUTS = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("level", pa.int32(), nullable=False),
        pa.field("input", pa.binary(), nullable=False),
        pa.field("frame", pa.binary(), nullable=False),
    ]
)
"""What a community's report is written from: ``input`` is a ``ReportInput``, ``frame`` the ``Report`` but for its text."""

REPORTS = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("body", pa.binary(), nullable=False),
        pa.field("usage", pa.string(), nullable=False),
        pa.field("error", pa.string(), nullable=False),
    ]
)
"""``body`` is a ``Report``; empty where the row failed."""

ROWS = pa.schema(
    [
        pa.field("collection", pa.string(), nullable=False),
        pa.field("id", pa.string(), nullable=False),
        pa.field("body", pa.binary(), nullable=False),
        pa.field("tokens", pa.string(), nullable=False),
        pa.field("metadata", pa.string(), nullable=False),
        pa.field("vector_digest", pa.string(), nullable=False),
    ]
)
"""A row of the search store but for its vector. ``vector_digest`` is empty where the row gets none."""

PASSAGES = pa.schema(
    [
        pa.field("collection", pa.string(), nullable=False),
        pa.field("id", pa.string(), nullable=False),
        pa.field("text", pa.string(), nullable=False),
    ]
)
"""Rows whose vector is not in the store yet, and the text it is made from."""

VECTORS = pa.schema(
    [
        pa.field("collection", pa.string(), nullable=False),
        pa.field("id", pa.string(), nullable=False),
        pa.field("vector", pa.binary(), nullable=False),
        pa.field("error", pa.string(), nullable=False),
    ]
)
"""``vector`` is little-endian float32 of length 1; empty where the row failed."""
