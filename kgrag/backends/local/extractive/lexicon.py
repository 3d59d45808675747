"""Word lists the rules lean on: small, closed classes only."""

from __future__ import annotations

OPENERS = frozenset(
    """a an the this that these those there here it its he his him she her they their them we our us you your i my me who whom
    whose which what when where why how and but or nor for so yet if then than as at by in on of to from with without into onto
    upon over under above below between among after before during since until till while although though because unless whether
    however moreover furthermore therefore thus hence also additionally meanwhile nevertheless nonetheless instead otherwise
    despite besides beyond across along around about against through throughout toward towards within near not no yes all any
    some many most much more few several each every either neither both other another such same only just even still again once
    now later soon today often sometimes usually always never is are was were be been being has have had do does did can could
    may might must shall should will would one two three four five six seven eight nine ten first second third last next
    according following based founded born named known located situated like unlike due given per via let see note
    der die das den dem des ein eine einer eines einem einen und oder aber auch im am zum zur von vom mit bei seit nach vor
    auf aus zwischen als wie wenn dass er sie es sein seine ihr ihre wir man nicht kein keine
    les un une et ou mais dans sur avec pour par elle ils elles ce cette ces una unos unas pero sus um uma il gli uno""".split()  # noqa: SIM905
)
"""Words that open a sentence and start no name. Lower case; articles that names begin with (Los, La) are not among them."""

TRAILERS = frozenset(("the", "of", "and", "in", "for", "at", "by", "to", "a"))

CONNECTORS = (
    r"of the|of|de la|de los|de las|de|del|della|di|da|do|dos|das|du|des|la|le|el|van der|van den|van de|van|von der|von dem|von"
    r"|zu|zur|den|der|ter|ten|bin|ibn|al|y|for"
)
"""Lower-case words that stand inside names."""

MONTHS = (
    r"January|February|March|April|May|June|July|August|September|October|November|December|Januar|Februar|März|Mai|Juni|Juli|"
    r"Oktober|Dezember|janvier|février|mars|avril|juin|juillet|août|septembre|octobre|novembre|décembre|enero|febrero|marzo|abril|"
    r"mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre"
)

KINDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("organization", (
        "university", "college", "institute", "school", "academy", "company", "corporation", "inc", "ltd", "llc", "co", "group", "records",
        "association", "society", "council", "committee", "party", "club", "team", "league", "federation", "union", "bank", "agency",
        "ministry", "department", "board", "church", "army", "navy", "press", "studios", "pictures", "airlines", "foundation", "museum",
        "orchestra", "band", "network", "senate", "congress", "parliament", "court", "commission", "stiftung", "gmbh", "verein",
    )),
    ("place", (
        "city", "town", "village", "county", "district", "province", "state", "states", "kingdom", "republic", "island", "islands", "river",
        "lake", "sea", "ocean", "mountain", "mountains", "mount", "bay", "strait", "valley", "street", "road", "avenue", "airport", "station",
        "park", "bridge", "castle", "harbor", "harbour", "peninsula", "region", "township", "lighthouse", "cape", "stadium", "hospital",
    )),
    ("event", (
        "war", "battle", "olympics", "games", "championship", "championships", "cup", "festival", "election", "revolution", "treaty", "act",
        "conference", "tournament", "season", "storm", "series", "prize", "award", "awards", "medal",
    )),
)  # fmt: skip
"""Last (or first) words that tell what kind of thing a name is."""

CJK_SUFFIXES: tuple[tuple[str, str], ...] = (
    ("株式会社 有限公司 公司 会社 集团 集團 银行 銀行 大学 大學 学院 學院 研究所 研究院 学校 學校 协会 協會 協会 委员会 委員会 委員會 中学 "
     "박물관 대학교 대학 회사 연구소 은행 협회 위원회 공사 재단", "organization"),
    ("共和国 共和國 王国 王國 省 市 县 縣 郡 区 區 州 府 都 道 町 村 岛 島 山 河 川 江 湖 海 湾 灣 港 路 街 站 駅 空港 机场 機場 寺 城 "
     "특별시 광역시 시 도 군 구 읍 면 리 산 강 섬 항 역", "place"),
    ("战争 戰爭 戦争 会议 會議 奥运会 锦标赛 大赛 节 祭 賞 奖 獎 조약 전쟁 대회 축제 상", "event"),
)  # fmt: skip
"""Endings of names in Han, Kana and Hangul, by kind."""

HAN_STOPS = (
    "的是在了和与與及或也而但并且於于为為以由被把从從到对對将將等之其这這那此他她它们們我你您有无無不没沒很都又就才只还還再更最则則"
)
"""Characters that no Chinese name is expected to hold: a run of Han is cut at them."""

PARTICLES = (
    "에서는", "으로는", "에게서", "이라는", "이라고", "에서", "에게", "으로", "까지", "부터", "에는", "와의", "과의", "이다", "처럼", "보다", "라는",
    "은", "는", "이", "가", "을", "를", "의", "에", "로", "와", "과", "도", "만",
)  # fmt: skip
"""Korean particles, longest first."""
