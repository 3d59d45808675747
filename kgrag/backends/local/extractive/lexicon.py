"""Closed classes of words that text is read by: function words per language, months, words that end or open names.
Every list is short and general; nothing here is a name, and a language without a list still works, a little less well."""

from __future__ import annotations

from functools import cache


def word_set(text: str) -> frozenset[str]:
    """The words of a list that is written as one text."""
    return frozenset(text.split())


FUNCTION_WORDS: dict[str, frozenset[str]] = {
    "en": word_set(
        """a an the this that these those it its it's he she his her hers him they them their theirs we our us you your i my me who whom
        whose which what when where why how in on at by for from to of with as and or but nor if while although though because since
        after before during until unless than then there here thus hence is are was were be been being am has have had having do does
        did doing can could will would shall should may might must not no none yes all any both each every some many most more much few
        fewer less several other others another such same only just even still yet so too very well also again never ever always
        often usually typically sometimes occasionally rarely however moreover furthermore additionally nevertheless nonetheless
        notwithstanding meanwhile therefore instead otherwise finally later soon once now today nowadays currently recently presently
        originally eventually subsequently initially formerly previously traditionally historically generally officially partially
        virtually ultimately immediately shortly formally apart according about above across against along alongside among amongst
        around behind below beneath beside besides between beyond despite down except following including inside into like near nearly
        almost off onto out outside over past per plus prior regarding through throughout toward towards under underneath unlike up
        upon via within without due owing thanks together"""
    ),
    "de": word_set(
        """der die das den dem des ein eine einer eines einem einen und oder aber wenn als ob dass weil da nach vor bei mit von zu zum zur
        im in an am um auf aus für gegen durch seit bis ist sind war waren wird werden wurde wurden hat haben hatte hatten nicht auch
        nur noch schon sehr er sie es ihr ihre ihren ihrem ihrer sein seine seiner seinem seinen wir ich du dieser diese dieses diesem
        diesen dort hier dann damit dabei jedoch später zwischen unter über sich man so wie was wer wo wann warum alle alles viele mehr
        einige andere anderen zwei drei vier fünf erst erste ersten zuletzt heute während wegen trotz ohne sowie sondern kein keine
        jeder jede jedes jener solche welche welcher zunächst bereits außerdem allerdings ferner ebenfalls etwa rund insgesamt"""
    ),
    "fr": word_set(
        """le la les l un une des du de d au aux et ou mais donc car si que qu qui quoi dont où dans en sur sous avec sans pour par il elle ils
        elles on nous vous je tu ce cet cette ces c son sa ses leur leurs est était sont étaient être fut furent a ont avait depuis
        après avant lors ainsi puis pendant entre vers chez contre plus moins très aussi ne pas comme quand tout tous toute toutes
        deux trois premier première selon alors cependant toutefois aujourd'hui"""
    ),
    "es": word_set(
        """el la los las lo un una unos unas y e o u pero porque que quien cuando donde como con sin sobre entre hasta desde en de del al a
        por para su sus este esta estos estas ese esa fue era es son eran ha han había ser según también después antes durante tras
        no se muy más menos ya dos tres primer primera él ella ellos ellas hoy además"""
    ),
    "pt": word_set(
        """o a os as um uma uns umas e ou mas que quem quando onde como com sem sobre entre até desde em no na nos nas de do da dos das ao aos
        à pelo pela pelos pelas por para seu sua seus suas este esta estes esse essa foi era é são eram tem também após antes durante
        não se muito mais menos já dois duas três primeiro primeira ele ela eles elas hoje além"""
    ),
    "it": word_set(
        """il lo la i gli le l un uno una e ed o ma che chi quando dove come con senza su sul sulla tra fra fino da dal dalla in nel nella
        nei nelle di del dello della dei degli delle a al allo alla ai agli alle per suo sua suoi sue questo questa questi fu era è
        sono erano ha hanno anche dopo prima durante secondo non si più meno già due tre primo prima egli ella essi oggi inoltre"""
    ),
    "nl": word_set(
        """de het een en of maar dat die dit deze in op te aan van voor door met bij naar uit over onder tussen na sinds tot is zijn was
        waren werd werden wordt heeft hebben had niet ook nog al zeer hij zij ze hun haar wij ik er hier daar toen later zoals"""
    ),
    "pl": word_set(
        """i w we z ze na do od po za o u przy dla przez pod nad przed jest są był była było byli być nie się że to ten ta te jako który
        która które oraz ale lub także jego jej ich już tylko gdy kiedy gdzie"""
    ),
    "sv": word_set(
        """en ett och i på av för med till från den det de som är var har hade att inte om men eller han hon sin sina sitt efter före under
        vid mellan också när där blev"""
    ),
    "tr": word_set("ve bir bu ile için olarak da de ise olan daha en çok gibi kadar sonra önce ancak veya ya o şu ne değil olan yılında"),
    "ru": word_set(
        """и в во на с со к ко по за из от до для при о об у не но а или что чтобы как это этот эта эти этого того тот та те его её их им он
        она оно они мы вы я ты был была было были есть быть стал стала является также после перед через между под над когда где если
        так же уже ещё только более все всех весь который которая которые которого свой своей своих один два три первый первая
        впоследствии позднее затем однако кроме согласно сегодня"""
    ),
    "uk": word_set("і й та в у на з із до від для при про не але або що як це цей ця ці його її їх він вона вони був була було були є також після"),
    "el": word_set("ο η το οι τα του της των τον την τους τις και σε στο στη στην στον στα με από για που είναι ήταν δεν να θα ως ένα μια ένας"),
}  # fmt: skip
"""Lower case. A capitalised one is no name where a sentence starts with it."""


def language_of(words: frozenset[str] | set[str]) -> str:
    """The language whose function words are most among ``words`` (lower case); English where none stands out."""
    best, most = "en", len(words & FUNCTION_WORDS["en"])
    if most > 3 and most * 5 >= len(words):
        return best
    for language, known in FUNCTION_WORDS.items():
        count = len(words & known)
        if count > most:
            best, most = language, count
    return best


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
PERSON_NOUNS = word_set(
    "actor actress singer songwriter author writer poet novelist composer musician politician player footballer"
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

QUESTION_WORDS = word_set(
    """who whom whose which what when where why how many much name named called tell give list explain describe please
    wer wen wem wessen was wann wo woher wohin warum wieso welche welcher welches wie viel viele heißt
    qui que quoi quel quelle quels quelles quand où comment pourquoi combien
    qué quién quiénes cuál cuáles cuándo dónde cómo cuánto cuántos cuántas qual quais quem quando onde como quanto quantos
    chi che cosa quale quali dove perché wat wie welke waar waarom hoe kto co jaki jaka jakie kiedy gdzie
    кто что какой какая какое какие когда где куда откуда почему сколько чей ποιος ποια ποιο τι πότε πού πώς γιατί"""
)
"""Words of a question that no passage needs to hold."""


@cache
def opening_words(language: str) -> frozenset[str]:
    """What is no name at the start of a sentence of this language."""
    return FUNCTION_WORDS[language] | OPENING_WORDS if language == "en" else FUNCTION_WORDS[language]


@cache
def months() -> list[str]:
    """All month names, longest first."""
    return sorted({name for names in MONTHS for name in names.split()}, key=lambda month: (-len(month), month))


SMALL_MONTHS = frozenset(name for names in MONTHS for name in names.split() if name[0].islower())
