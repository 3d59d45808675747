"""The ``search`` section of the configuration: what holds for every strategy, then one sub-section per strategy."""

from __future__ import annotations

from pydantic import Field

from kgrag.query.access import StoreAccessSettings
from kgrag.query.bridge import BridgeSettings
from kgrag.query.budget import BudgetSettings
from kgrag.query.fuse import FusionSettings
from kgrag.query.question import SearchType
from kgrag.query.strategies.dual import DualLevelSettings
from kgrag.query.strategies.global_ import GlobalSettings
from kgrag.query.strategies.local import LocalSettings
from kgrag.query.strategies.ppr import PprSettings
from kgrag.records import HitKind
from kgrag.section import Section


class SearchSettings(Section):
    """How questions are searched for."""

    strategy: str = "bridge"
    """Strategy of a request that names none."""
    top_k: int = Field(default=10, ge=1, le=1000)
    """Text units returned, and put into an answer's context at most."""
    candidates: int = Field(default=50, ge=1, le=1000)
    """Text units each ranking offers to fusion (pool size, rows)."""
    search_type: SearchType = "hybrid"
    """Words and meaning (``hybrid``), or one of them."""
    vector_weight: float = Field(default=2.0, ge=0)
    """What a vector ranking counts against a lexical one's 1, where the embedding is a strong one (measured:
    benchmarks/retrieval.py)."""
    weak_vector_weight: float = Field(default=0.5, ge=0, le=0.5)
    """The same for a weak embedding: fused as an equal it loses to words alone (benchmarks/retrieval.py)."""
    quotas: dict[HitKind, int] = {"entity": 40, "relationship": 40, "report": 10, "claim": 10}
    """Most items of each other kind in an answer's context, before the token budget (LightRAG's top_k 40)."""
    language: str = ""
    """Language that questions are analysed and answered in; empty: the question's own."""
    timeout_seconds: float = Field(default=120.0, gt=0)
    """Longest time for one question, model calls included."""
    max_question_chars: int = Field(default=20_000, ge=1)
    """Longest question taken, in characters."""
    local: LocalSettings = LocalSettings()
    global_: GlobalSettings = Field(default=GlobalSettings(), alias="global")
    dual_level: DualLevelSettings = DualLevelSettings()
    ppr: PprSettings = PprSettings()
    bridge: BridgeSettings = BridgeSettings()
    fusion: FusionSettings = FusionSettings()
    budget: BudgetSettings = BudgetSettings()
    stores: StoreAccessSettings = StoreAccessSettings()
