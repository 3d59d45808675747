"""Closed classes of words that text is read by: function words per language, months, words that end or open names.
Every list is short and general; nothing here is a name, and a language without a list still works, a little less well."""

from __future__ import annotations

from functools import cache

from kgrag.function_words import FUNCTION_WORDS, word_set

OPENERS = word_set(
    """the it its he she his her they their this that these those in on at during after before since as when while although however
    but and there we a an for from by with some many most all both each other such under according"""
)

MONTHS: tuple[str, ...] = (
    "January Jan Januar Jänner janvier enero janeiro gennaio januari januar stycznia января январь січня Ιανουαρίου Ocak يناير जनवरी มกราคม",
    "February Feb Februar février febrero fevereiro febbraio februari februar lutego февраля февраль лютого Φεβρουαρίου Şubat فبراير फ़रवरी"
    " फरवरी กุมภาพันธ์",
    "March Mar März mars marzo março maart marca марта март березня Μαρτίου Mart مارس मार्च มีนาคม",
    "April Apr avril abril aprile kwietnia апреля апрель квітня Απριλίου Nisan أبريل إبريل अप्रैल เมษายน",
    "May Mai mai mayo maio maggio mei maj maja мая май травня Μαΐου Mayıs مايو मई พฤษภาคม",
    "June Jun Juni juin junio junho giugno czerwca июня июнь червня Ιουνίου Haziran يونيو जून มิถุนายน",
    "July Jul Juli juillet julio julho luglio lipca июля июль липня Ιουλίου Temmuz يوليو जुलाई กรกฎาคม",
    "August Aug août agosto augustus augusti sierpnia августа август серпня Αυγούστου Ağustos أغسطس अगस्त สิงหาคม",
    "September Sept Sep septembre septiembre setiembre setembro settembre września сентября сентябрь вересня Σεπτεμβρίου Eylül سبتمبر"
    " सितंबर सितम्बर กันยายน",
    "October Oct Oktober octobre octubre outubro ottobre oktober października октября октябрь жовтня Οκτωβρίου Ekim أكتوبر अक्टूबर अक्तूबर"
    " ตุลาคม",
    "November Nov novembre noviembre novembro listopada ноября ноябрь листопада Νοεμβρίου Kasım نوفمبر नवंबर नवम्बर พฤศจิกายน",
    "December Dec Dezember décembre diciembre dezembro dicembre desember grudnia декабря декабрь грудня Δεκεμβρίου Aralık ديسمبر दिसंबर"
    " दिसम्बर ธันวาคม",
)
"""Names of the months, first to last, in every language read here."""

MONTH_NUMBERS = {name.casefold(): number for number, names in enumerate(MONTHS, 1) for name in names.split()}
CALENDAR = word_set(
    " ".join(MONTHS).lower()
    + " monday tuesday wednesday thursday friday saturday sunday montag dienstag mittwoch donnerstag freitag samstag sonntag"
)

EVENT_WORDS = word_set(
    """olympics olympiad games championships championship cup census act election elections awards award festival tour series season open
    prix draft tournament convention war battle earthquake hurricane eruption expo fair summit conference league final finals playoffs
    olympische spiele weltmeisterschaft olympiques jeux"""
)
ORGANIZATION_WORDS = word_set(
    """league society association company corporation railway railroad university college institute institution museum church party union
    club council committee commission department foundation agency bank court academy school office bureau ministry service services
    group press records trust brothers sons industries entertainment inc ltd llc llp plc corp co gmbh ag sa team band orchestra army
    navy force forces guard police government parliament congress senate assembly federation organization organisation network studios
    pictures airlines airways motors systems technologies software laboratory laboratories board authority administration alliance
    universität hochschule verein gesellschaft partei universidad université università universidade instituto ministère ministerio
    banco banque société sociedad compañía университет институт академия компания партия министерство банк общество"""
)
PLACE_WORDS = word_set(
    """river lake county city island islands mountain mountains mount sea ocean bay state province region district street road avenue
    bridge park valley creek forest airport station canal peninsula desert coast cape fort town village township parish republic kingdom
    empire territory municipality borough harbour harbor port beach hill hills plateau strait gulf square tower castle palace cathedral
    hotel stadium building house hall theatre theater fluss stadt see berg insel straße rue place ville río ciudad calle isla monte
    rivière fleuve lac река озеро город остров область район улица республика гора"""
)
WORK_WORDS = word_set(
    "novel film album song book journal magazine newspaper opera symphony play poem episode game video show series movie"
)
LAW_WORDS = word_set(
    "act treaty law constitution amendment code convention agreement protocol directive regulation gesetz vertrag loi ley"
)
ROLE_WORDS = word_set(
    """president king queen prince princess sir lord lady dr mr mrs ms miss professor prof governor senator general captain colonel major
    pope saint emperor empress minister director judge justice bishop archbishop cardinal chancellor mayor secretary lieutenant admiral
    actor actress singer songwriter author writer poet novelist composer musician politician painter artist architect engineer scientist
    physicist mathematician philosopher historian footballer player coach producer journalist lawyer businessman comedian herr frau
    monsieur madame señor señora signor don doña presidente président präsident könig königin kaiser autor regisseur господин президент
    король царь писатель поэт композитор актёр режиссёр"""
)

ABBREVIATED = word_set(
    "St Dr Mr Mrs Ms Jr Sr Lt Col Gen Rev Prof Mt Ft Sgt Capt No vs Gov Sen Rep Hon Bros Inc Ltd Co Corp Pvt F.C"
)
LEGAL_FORMS = word_set("Inc Ltd LLC LLP Corp Co GmbH AG PLC SA Jr Sr Jr. Sr. Inc. Ltd. Corp. Co. LLC.")


OPENING_WORDS = word_set(
    """let see early late mid part one two three four five six seven eight nine ten eleven twelve hundreds thousands first second third last
    next using given various numerous born based founded located situated known named called released written directed produced published
    starring starred featuring featured described designed considered included consisting beginning coming owned led hosted built
    established formed created made set taken used won"""
)
"""English words that often begin a sentence and are no names, but carry meaning."""


@cache
def opening_words(language: str) -> frozenset[str]:
    """What is no name at the start of a sentence of this language."""
    return FUNCTION_WORDS[language] | OPENING_WORDS if language == "en" else FUNCTION_WORDS[language]


@cache
def months() -> list[str]:
    """All month names, longest first."""
    return sorted({name for names in MONTHS for name in names.split()}, key=lambda month: (-len(month), month))


SMALL_MONTHS = frozenset(name for names in MONTHS for name in names.split() if name[0].islower())
