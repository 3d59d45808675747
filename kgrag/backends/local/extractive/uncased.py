"""Names in scripts without capitals: Chinese, Japanese, Korean, Arabic, Hindi, Thai and their neighbours.

What stands in for the capital: brackets after a name, the topic place of a sentence, lists, endings such as 市 or 大学 and openings
such as جامعة or จังหวัด, runs of Katakana, and above all repetition: a phrase that a short text uses twice, and that no longer
phrase always surrounds, is what the text is about.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache

from kgrag.backends.local.extractive.names import Mention, Span
from kgrag.backends.local.extractive.uncased_lexicon import (
    ENDINGS,
    HAN_FUNCTION,
    HAN_PERSON_VERBS,
    HAN_PREFIXES,
    HAN_STRICT,
    HAN_SURNAMES,
    HAN_VERBS,
    JAPANESE_TAILS,
    KOREAN_PARTICLES,
    OPENINGS,
    OTHER_STOP_WORDS,
    THAI_STOPS,
)
from kgrag.scripts import mark_class

_HAN = r"\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_KATAKANA = r"\u30a1-\u30fa\u30fc-\u30ff"
_HIRAGANA = r"\u3041-\u309f"
_HANGUL = r"\uac00-\ud7a3\u1100-\u11ff"
_THAI = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
_UNCASED = re.compile(rf"[{_HAN}{_KATAKANA}{_HIRAGANA}{_HANGUL}{_THAI}\u0590-\u0dff\u0f00-\u0fff\u10d0-\u10ff\u1200-\u139f]")
_LONGEST_NAME = 60
_LEAST_KEPT = 10
_CHARS_PER_NAME = 20
_LONGEST_REPEAT = 8
_LONGEST_LAST_PART = 4
_COMMON_COMPOUND = 3
"""A Japanese run of at most so many characters is as likely a common noun as a name."""


def uncased_mentions(text: str, topic: str) -> list[Mention]:
    """Every place of the names found, in order, longest first where they overlap. ``topic`` is a known name (may be empty).
    Of too many names, those with the most evidence are kept: marks and endings seen, and occurrences."""
    if not _UNCASED.search(text):
        return []
    evidence = Counter(name for name in _candidates(text) if 2 <= len(name) <= _LONGEST_NAME)
    names = sorted(evidence, key=lambda name: (-evidence[name] - text.count(name), text.find(name), name))
    names = names[: _LEAST_KEPT + len(text) // _CHARS_PER_NAME]
    if topic and _UNCASED.search(topic):
        names.append(topic)
    return _places(text, names)


def _places(text: str, names: Iterable[str]) -> list[Mention]:
    taken = bytearray(len(text))
    found = []
    for name in sorted(names, key=lambda name: (-len(name), name)):
        start = text.find(name)
        while start >= 0:
            end = start + len(name)
            if not taken[start] and not taken[end - 1]:
                taken[start:end] = b"\x01" * len(name)
                found.append(Mention(name, start, end, "term"))
            start = text.find(name, end)
    return sorted(found, key=lambda mention: mention.start)


def _candidates(text: str) -> Iterator[str]:
    if re.search(f"[{_HIRAGANA}{_KATAKANA}]", text):
        yield from _japanese(text)
    elif re.search(f"[{_HAN}]", text):
        yield from _chinese(text)
    if re.search(f"[{_HANGUL}]", text):
        yield from _korean(text)
    if re.search(f"[{_THAI}]", text):
        yield from _thai(text)
    if _SPACED.search(text):
        yield from _spaced(text)


# ---------------------------------------------------------------- repetition


def _repeated(text: str, runs: Iterable[re.Match[str]]) -> dict[str, int]:
    """How often each repeated substring of the runs occurs, for those that are not always part of one longer such substring."""
    places: dict[str, list[Span]] = {}
    for run in runs:
        end = run.end()
        for at in range(run.start(), end - 1):
            places.setdefault(text[at : at + 2], []).append((at, end))
    counts: dict[str, int] = {}
    size = 2
    while places := {gram: spots for gram, spots in places.items() if len(spots) > 1}:
        for gram, spots in places.items():
            counts[gram] = len(spots)
            for part in (gram[:-1], gram[1:]):
                if counts.get(part) == len(spots):
                    del counts[part]
        size += 1
        longer: dict[str, list[Span]] = {}
        if size <= _LONGEST_REPEAT:
            for spots in places.values():
                for at, end in spots:
                    if at + size <= end:
                        longer.setdefault(text[at : at + size], []).append((at, end))
        places = longer
    return counts


def _repeated_phrases(phrases: Iterable[list[str]], least: int = 2) -> Iterator[str]:
    """Runs of one to four words that occur at least ``least`` times, and not always inside the same longer one."""
    counts: Counter[tuple[str, ...]] = Counter()
    for phrase in phrases:
        for size in range(1, min(4, len(phrase)) + 1):
            for at in range(len(phrase) - size + 1):
                counts[tuple(phrase[at : at + size])] += 1
    kept = {words: count for words, count in counts.items() if count >= least}
    for words, count in list(kept.items()):
        for part in (words[:-1], words[1:]):
            if kept.get(part) == count:
                del kept[part]
    for words in kept:
        if len(words) > 1 or len(words[0]) > 1:
            yield " ".join(words)


# ---------------------------------------------------------------- Chinese and Japanese


@cache
def _endings(*, longer_than: int = 0) -> list[str]:
    endings = {ending for kind in ENDINGS.values() for ending in kind.split() if len(ending) > longer_than}
    return sorted(endings, key=lambda ending: (-len(ending), ending))


@cache
def _ended() -> tuple[tuple[str, ...], re.Pattern[str]]:
    return tuple(_endings()), re.compile("|".join(_endings(longer_than=1)))


@cache
def _common() -> tuple[frozenset[str], re.Pattern[str]]:
    verbs = frozenset(HAN_VERBS.split())
    return verbs, re.compile(rf"(?:{'|'.join(sorted(verbs, key=lambda verb: (-len(verb), verb)))})+|(?!有限)[{HAN_PREFIXES}](?=..)")


_PARTED = str.maketrans(dict.fromkeys(HAN_FUNCTION, "\x1f"))
_HAN_RUN = re.compile(f"[{_HAN}]{{2,}}")
_DOT = re.compile(r"[·・‧]")
_DOTTED = re.compile(rf"([{_HAN}]{{1,8}}(?:[·・‧][{_HAN}]{{1,8}})*[·・‧])([{_HAN}]{{1,8}})")


def _chinese(text: str) -> Iterator[str]:
    parted = text.translate(_PARTED)
    runs = list(_HAN_RUN.finditer(parted))
    common, before = _common()
    repeated = _repeated(parted, runs)
    names = {name for name, count in repeated.items() if (len(name) > 2 or count > 2) and not before.match(name)}
    for run in runs:
        for name in _marked(text, run):
            while found := before.match(name):
                name = name[found.end() :]
            names.add(name)
    names.update(_organizations(text))
    names.update(_person().findall(parted))
    names -= common
    names -= _kinds()
    yield from _dotted(text)
    yield from (name for name in names if not (repeated.get(name, 1) == 1 and any(name[cut:] in names for cut in (1, 2, 3))))


_BRACKETS = frozenset("（(")
_ENDS = frozenset(["", *"。！？\n"])
_AFTER_TOPIC = frozenset("是为為，")
_AFTER_LAST = frozenset("和与與及等")


@cache
def _kinds() -> frozenset[str]:
    """Endings alone: they say what a thing is, not which."""
    return frozenset(ending for kind in ENDINGS.values() for ending in kind.split())


@cache
def _person() -> re.Pattern[str]:
    verbs = "|".join(HAN_PERSON_VERBS.split())
    return re.compile(rf"(?<![{_HAN}])[{HAN_SURNAMES}][{_HAN}]{{1,2}}(?=\x1f|{verbs})")


_COMPANY = re.compile(rf"[{_HAN}]{{2,14}}?(?:股份有限公司|有限责任公司|有限公司|股份公司)")


def _organizations(text: str) -> Iterator[str]:
    """Companies by their legal form: their names may hold characters that part other phrases ("华为")."""
    for match in _COMPANY.finditer(text) if "公司" in text else ():
        yield re.split(f"[{HAN_STRICT}]", match.group())[-1]


def _marked(text: str, run: re.Match[str]) -> Iterator[str]:
    """What of a run of content characters its surroundings or its ending mark as a name."""
    start, end = run.span()
    phrase = run.group()
    before, after = text[start - 1 : start], text[end : end + 1]
    is_topic = before in _ENDS and after in _AFTER_TOPIC and len(phrase) <= 8
    is_listed = len(phrase) <= 6 and (after == "、" or (before == "、" and after in _AFTER_LAST))
    if after in _BRACKETS:
        yield phrase[-8:]
    elif is_topic or is_listed:
        yield phrase
    whole, inside = _ended()
    if len(phrase) <= 9 and phrase.endswith(whole):
        yield phrase
    for ending in inside.finditer(phrase, 2):
        yield phrase[max(0, ending.end() - 10) : ending.end()]


def _common_start(words: list[str]) -> str:
    first, last = min(words), max(words)
    size = 0
    while size < len(first) and first[size] == last[size : size + 1]:
        size += 1
    return first[:size]


def _dotted(text: str) -> Iterator[str]:
    """Transliterated names ("莱昂德罗·内托"). Where the last part ends is seen from how the text goes on after it elsewhere."""
    lasts: dict[str, list[str]] = {}
    if _DOT.search(text) is None:
        return
    for match in _DOTTED.finditer(text):
        first, last = match.groups()
        first = first.translate(_PARTED).split("\x1f")[-1] if "\x1f" in first[:-2].translate(_PARTED) else first
        lasts.setdefault(first, []).append(last[0] + last[1:].translate(_PARTED).split("\x1f")[0])
    for first, endings in lasts.items():
        shared = _common_start(endings)
        if len(endings) > 1 and len(shared) > 1:
            yield first + shared
        else:
            yield first + endings[0][:_LONGEST_LAST_PART]


@cache
def _japanese_patterns() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    noun = f"[{_HAN}{_KATAKANA}ヶヵ]"
    return (
        re.compile(f"{noun}{{2,}}"),
        re.compile(rf"[{_KATAKANA}]{{2,}}(?:[・＝=][{_KATAKANA}]{{2,}})+|[{_KATAKANA}]{{4,}}"),
        re.compile(
            rf"(?<!{noun})({noun}{{2,12}})(?=[（(]|さん|氏|様|くん)|(?:^|[。！？\n])({noun}{{2,12}})(?=は|が|とは)"
            rf"|(?<=、)({noun}{{2,8}})(?=、|など)"
        ),
    )


@cache
def _japanese_tail() -> re.Pattern[str]:
    return re.compile(f"(?:{'|'.join(JAPANESE_TAILS.split())})+$")


def _japanese(text: str) -> Iterator[str]:
    nouns, katakana, marked = _japanese_patterns()
    whole, inside = _ended()
    for run, count in Counter(nouns.findall(text)).items():
        name = _japanese_tail().sub("", run) if len(run) <= _LONGEST_NAME else ""
        if len(name) > 1 and (count > 1 or len(name) > _COMMON_COMPOUND):
            yield name
        if len(run) <= _LONGEST_NAME:
            if run.endswith(whole) and len(run) > 2:
                yield run
            for ending in inside.finditer(run, 2):
                yield run[: ending.end()]
    yield from katakana.findall(text)
    for match in marked.finditer(text):
        yield match.group(match.lastindex or 0)


# ---------------------------------------------------------------- scripts with spaces


@cache
def _korean_patterns() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    return (
        re.compile(rf"[{_HANGUL}A-Za-z0-9]+|[^\s\w]+"),
        re.compile(rf"(?<=..)(?:{'|'.join(KOREAN_PARTICLES.split())})$"),
        re.compile(rf"[{_HANGUL}]+(?:{'|'.join(_endings())})"),
    )


def _korean(text: str) -> Iterator[str]:
    word, particle, ending = _korean_patterns()
    phrases: list[list[str]] = [[]]
    at_start = True
    for token in word.findall(text):
        if not token[0].isalnum():
            if token[0] in _BRACKETS and phrases[-1]:
                yield " ".join(phrases[-1][-3:])
            phrases.append([])
            at_start = at_start or token[0] in ".!?。"
            continue
        bare = particle.sub("", token)
        if bare in OTHER_STOP_WORDS or token in OTHER_STOP_WORDS or bare.endswith(("다", "하는", "하여", "했")):
            phrases.append([])
            at_start = False
            continue
        phrases[-1].append(bare)
        if ending.fullmatch(bare) and len(bare) > 2:
            yield bare
        if bare != token:
            if at_start and token[len(bare) :] in ("은", "는", "이", "가"):
                yield " ".join(phrases[-1])
            phrases.append([])
            at_start = False
    yield from (name for name in _repeated_phrases(phrases) if not name.isdigit() and not name.isascii())


@cache
def _spaced_word() -> re.Pattern[str]:
    marks = mark_class()
    return re.compile(rf"[^\W\d_]+(?:[{marks}\u200c\u200d]+[^\W\d_]*)*|\d+|[^\s\w]")


_SPACED = re.compile(r"[\u0590-\u0dff\u0f00-\u0fff\u10d0-\u10ff\u1200-\u139f]")
_NAME_PARTS = frozenset(["بن", "ابن", "عبد", "أبو", "آل"])


@cache
def _opening_words() -> dict[str, bool]:
    """Words that open a name, and whether they belong to it."""
    return {word: kind != "Person" for kind, words in OPENINGS.items() for word in words.split()}


@cache
def _ending_words() -> frozenset[str]:
    return frozenset(word for words in ENDINGS.values() for word in words.split() if _SPACED.match(word))


_HINDI_AGENT = re.compile(r"(?:^|[।\n])\s*((?:[\u0900-\u0963\u0966-\u097f]+ ){1,3})(?=ने |का |की |के |को )")
"""Who a Hindi sentence begins with."""
_SPACED_MARKS = frozenset("،؛؟।॥")


def _spaced(text: str) -> Iterator[str]:
    """Arabic, Hebrew, Hindi and others that part words by spaces."""
    phrases: list[list[str]] = [[]]
    for token in _spaced_word().findall(text):
        if token in _BRACKETS and phrases[-1]:
            yield " ".join(phrases[-1][-3:])
        if not _SPACED.match(token) or token in OTHER_STOP_WORDS or token in _SPACED_MARKS:
            phrases.append([])
        else:
            phrases[-1].append(token)
    phrases = [phrase for phrase in phrases if phrase]
    openings, endings = _opening_words(), _ending_words()
    for phrase in phrases:
        for at, word in enumerate(phrase):
            belongs = openings.get(word)
            if belongs is not None and at + 1 < len(phrase):
                yield " ".join(phrase[at if belongs else at + 1 : at + (2 if belongs else 3)])
            if word in _NAME_PARTS and 0 < at < len(phrase) - 1:
                yield " ".join(phrase[at - 1 : at + 2])
            if word in endings and at > 0:
                yield " ".join(phrase[max(0, at - 2) : at + 1])
    yield from (" ".join(agent.split()) for agent in _HINDI_AGENT.findall(text) if not OTHER_STOP_WORDS.intersection(agent.split()))
    yield from _repeated_phrases(phrases)


# ---------------------------------------------------------------- Thai, Lao, Khmer, Myanmar


@cache
def _thai_patterns() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    stops = "|".join(sorted(THAI_STOPS.split(), key=lambda s: -len(s)))
    letter = f"[{_THAI}]"
    openings = "|".join(sorted((w for w in _opening_words() if re.match(letter, w)), key=lambda w: -len(w)))
    return (
        re.compile(rf"{letter}+"),
        re.compile(stops),
        re.compile(rf"(?:{openings})(?:(?!{stops}){letter}){{2,30}}"),
    )


def _thai(text: str) -> Iterator[str]:
    runs, stops, opened = _thai_patterns()
    yield from opened.findall(text)
    pieces = [piece for run in runs.findall(text) for piece in stops.split(run)]
    counts = Counter(piece for piece in pieces if 4 <= len(piece) <= 30)
    yield from (piece for piece, count in counts.items() if count > 1)
    for match in re.finditer(rf"([{_THAI}]{{4,30}})\s?(?=[(（])", text):
        yield stops.split(match.group(1))[-1]
