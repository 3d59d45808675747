"""The sample corpus: twenty-five linked documents about an invented tidal-power town, and questions with gold passages.

Written for this project. It holds facts that need two or three hops, a correction that replaces an older figure (the rating of
the Kell Array), spellings of one name (Veyra Tidal, Inc.; A. Bruckner and Anselm Brückner), and four languages.
"""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent
DOCUMENTS = FOLDER / "documents"
QUESTIONS = FOLDER / "questions.jsonl"
"""One JSON object per line: id, question, answer ("" where the documents do not say), aliases, hops, language, and
``gold``: the passages that answer it, each a document's path and a verbatim quote."""
