"""Identity: keys that say when two names are one, and content ids.

``entity_key`` and ``compact_key`` follow the reference system's rules (unified-kg-rag §3, §4.2);
folding the accents of Latin letters is this project's own (``resolution.fold_accents``).
"""

from __future__ import annotations

import hashlib
import re
import unicodedata

from kgrag.scripts import DENSE, fold_latin

_DROPPED = "\"'`´‘’‚‛“”„‟«»‹›「」『』《》〈〉,，、،" + "\u00ad\u200b\u200e\u200f\u2060\ufeff"
"""Quote marks and commas; and what is not seen: soft hyphens, zero-width spaces and direction marks, which copied text is full of."""
_HYPHENS = "_-‐‑–"
"""Underscore and the hyphens, the en dash that typesetters put in their place among them."""
_SPELLING = str.maketrans(dict.fromkeys(_HYPHENS, " ") | dict.fromkeys(_DROPPED, ""))
_TRAILING_PUNCTUATION = " .!?;:。．！？；：…"
_SPACE_BY_DENSE = re.compile(rf"(?<=[{DENSE}]) | (?=[{DENSE}])")
_DESIGNATORS = frozenset(
    ["incorporated", "inc", "limited", "ltd", "llc", "llp", "corporation", "corp", "company", "co", "gmbh", "ag", "plc", "s.a", "sa",
     "bv", "nv", "oy", "ab", "kk", "pte", "pty"]
)  # fmt: skip
_LATIN_DESIGNATOR = re.compile(rf"(?: (?:{'|'.join(map(re.escape, sorted(_DESIGNATORS)))})\.?)+$")
_CJK_DESIGNATOR = re.compile(r"\(주\)|㈜|주식회사|유한회사|株式会社|有限会社|合同会社|有限公司|股份有限公司|有限责任公司|股份公司")
_BRACKETED_TAIL = re.compile(r"\s*[(（\[][^()（）\[\]]*[)）\]]\s*$")
_ARTICLES = frozenset(["the", "a", "an"])


def digest(*parts: str | bytes) -> str:
    """A 128-bit content id (32 hex characters). Parts are length-prefixed, so ``("ab", "c") != ("a", "bc")``."""
    h = hashlib.blake2b(digest_size=16)
    for part in parts:
        raw = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        h.update(len(raw).to_bytes(8, "little"))
        h.update(raw)
    return h.hexdigest()


def entity_key(name: str) -> str:
    """When two spellings are the same name: NFKC, casefold, ``_`` and hyphens as spaces, no quote marks or commas,
    one space between words, no trailing sentence punctuation; every other symbol stays ("C++" is not "C#").
    Never empty for a name that holds a visible character."""
    folded = name.lower() if name.isascii() else unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    key = " ".join(folded.translate(_SPELLING).split()).rstrip(_TRAILING_PUNCTUATION)
    return key or " ".join(folded.split())


def compact_key(name: str, *, fold_accents: bool = True) -> str:
    """The key that groups name variants: ``entity_key`` without legal-form designators ("Acme Inc" is "Acme"),
    without spaces next to Han, Hangul or Kana, and, unless told otherwise, without the accents of Latin letters.
    Falls back to the entity key where nothing would be left."""
    key = entity_key(name)
    if key.isascii():
        return _without_designator(key) or key
    bare = _without_designator(" ".join(_CJK_DESIGNATOR.sub(" ", key).split()))
    bare = _SPACE_BY_DENSE.sub("", bare).rstrip(_TRAILING_PUNCTUATION)
    if fold_accents:
        bare = fold_latin(bare)
    return bare or key


def _without_designator(name: str) -> str:
    if name[name.rfind(" ") + 1 :].rstrip(".") not in _DESIGNATORS:
        return name
    bare = _LATIN_DESIGNATOR.sub("", name).rstrip(_TRAILING_PUNCTUATION)
    return name if bare in _ARTICLES else bare


def title_key(title: str) -> str:
    """``compact_key`` of what a title names: without what stands in brackets behind it ("Mercury (planet)")."""
    return compact_key(_BRACKETED_TAIL.sub("", title) or title)


def schema_key(label: str) -> str:
    """The key of a type or predicate: NFKC, runs of whitespace and ``_`` to one ``_``, casefold. Idempotent."""
    folded = unicodedata.normalize("NFKC", label).casefold()
    return re.sub(r"[\s_]+", "_", unicodedata.normalize("NFKC", folded).strip())


def entity_id(key: str, entity_type: str = "") -> str:
    """Id of the entity with this group key (and schema-keyed type, where ``resolution.identity`` is ``name_and_type``)."""
    return digest("entity", key, entity_type) if entity_type else digest("entity", key)


def relationship_id(source_id: str, target_id: str, relationship_type: str) -> str:
    """Id of a directed, typed edge between two entity ids."""
    return digest("relationship", source_id, target_id, schema_key(relationship_type))


def claim_id(subject_id: str, object_key: str, claim_type: str, start_date: str, end_date: str) -> str:
    """Id of a claim: who, what kind, about whom (an entity id, or the entity key of a literal) and when.
    Its status is voted, so it is no part of it."""
    return digest("claim", subject_id, object_key, schema_key(claim_type), start_date, end_date)


def document_id(scope: str, path: str, row_key: str = "") -> str:
    """Id of a document: the source it was read from, its path within it and, for a row of a file, the row's key."""
    return digest("document", scope, path, row_key)


def text_unit_id(document: str, text: str, occurrence: int) -> str:
    """Id of a text unit: an edit elsewhere in the document leaves it as it is."""
    return digest("unit", document, text, str(occurrence))


def community_id(level: int, members: list[str]) -> str:
    """Content id of a community: its level and sorted members (unified-kg-rag §5.5)."""
    return digest("community", str(level), *sorted(members))


SEED_PREFIX = "sg-"


def is_seed(unit_id: str) -> bool:
    """Whether a text unit is a virtual one of an imported graph, which never outvotes documents."""
    return unit_id.startswith(SEED_PREFIX)


def shard_of(item_id: str, shards: int) -> int:
    """Which of ``shards`` partitions an id (hex) belongs to."""
    return int(item_id[:8], 16) % shards
