"""Function words per language: what a sentence needs and a search does not. Lower case.

A language without a list works all the same, a little less well.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet


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


def language_of(words: AbstractSet[str]) -> str:
    """The language whose function words are most among ``words`` (lower case); English where none stands out."""
    best, most = "en", len(words & FUNCTION_WORDS["en"])
    if most > 3 and most * 5 >= len(words):
        return best
    for language, known in FUNCTION_WORDS.items():
        count = len(words & known)
        if count > most:
            best, most = language, count
    return best


QUESTION_WORDS: dict[str, frozenset[str]] = {
    "en": word_set("who whom whose which what when where why how many much name named called tell give list explain describe please"),
    "de": word_set("wer wen wem wessen was wann wo woher wohin warum wieso welche welcher welches welchem welchen wie viel viele heißt"),
    "fr": word_set("qui que quoi quel quelle quels quelles quand où comment pourquoi combien est-ce s'appelle"),
    "es": word_set("qué quién quiénes cuál cuáles cuándo dónde cómo cuánto cuánta cuántos cuántas llama"),
    "pt": word_set("que quem qual quais quando onde como quanto quantos quantas chama"),
    "it": word_set("chi che cosa cos quale quali quando dove come perché quanto quanti quante chiama"),
    "nl": word_set("wie wat welke welk waar wanneer waarom hoe hoeveel heet"),
    "pl": word_set("kto co jaki jaka jakie który kiedy gdzie dlaczego ile czy"),
    "ru": word_set("кто что какой какая какое какие когда где куда откуда почему сколько чей чья как зовут"),
    "el": word_set("ποιος ποια ποιο τι πότε πού πώς γιατί πόσα πόσο"),
}  # fmt: skip
"""Words of a question that no passage needs to hold."""
