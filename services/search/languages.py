"""Detects the language of a text, by its script or by its function words, and holds the function words of each
language. A text is English where nothing else is clear.

On questions, which are short and full of English terms, this does better than py3langid: of the 213 in
tests/services/search/questions_by_language.py, of which 56 were written after the rules were made, it misses 2, the
library 11. It needs neither the library's 4.5 MB on disk, nor its 100 MB of memory, nor its half second to load.

Function words are words that are frequent in any question, and those around a problem ("does not work", "thanks"). They
are listed and compared without accents, since many people type none: `fuer` and `fur` both stand for `für`.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from typing import Literal

from services import lazy_pattern

_ENGLISH = """a about after again all also am an and another any anybody anyone anything are as at be because been
    before being both but by can cannot cant could couldn did didn didnt do does doesn doesnt doing don done dont
    each either else even ever every few for from further get gets getting give go going gone gonna got had has hasn
    have haven having he hello help her here hey hi him his hm how i id idea if im in instead into is isn isnt it
    its itself ive just know let like ll lot make many maybe me might mine more most much must my myself need needs
    no nor not now of off ok okay on once one only or other our ours out over own people please possible pls
    possibly quite rather re really right same say see seem seems shall she should so some somebody somehow someone
    something still such sure tell than thank thanks that thats the their them then there these they thing things
    think this those though through to too try trying tried u under until up us use used using very want wanted was
    wasn way we well were what whats when where whether which while who whom whose why will with without won
    wondering wont would wouldn yeah yes yet you your yours ve does anybody way work works working problem problems
    issue issues question questions doesnt isnt whenever wherever however guys folks good best able currently
    actually basically ca wo sha already always anymore ago everyone everybody often sometimes never since yet today
    yesterday tomorrow tonight away completely totally fairly pretty kind lots bit little"""

_GERMAN = """aber alle allem allen aller alles als also am an ander andere anderen anders auch auf aus bei beim
    bekomme benutze benutzen bevor bin bis bist bitte braucht brauche bzw da dabei dafuer dafur dagegen damit danach
    dann daran darauf darf darin darueber daruber das dass davon dazu dein deine deinem deinen dem den denn der des
    dessen dich
    die dies diese diesem diesen dieser dieses dir doch dort du durch ein eine einem einen einer eines einfach
    er es etwas euch euer eure fuer fur funktioniert funktionieren gab ganz gar geht gehen genau gerade gerne gibt gut
    hab habe haben hallo hat hatte hatten hier hilfe ich ihm ihn ihnen ihr ihre im immer in indem ins irgendwie ist ja
    jede jedem jeden jeder jedes jemand jetzt kann kannst kein keine keinem keinen keiner klappt konnen koennen konnte
    man mach mache machen macht mal mehr mein meine meinem meinen meiner mich mir mit mochte moechte moglich moeglich
    muss mussen muessen nach nachdem nein nicht nichts noch nun nur nutze nutzen ob oder ohne problem schon sehr sein
    seine seit sich sie sind so sobald soll sollen sollte sondern sonst statt trotzdem uber ueber um und uns unser
    unter viel vielen vom von vor wann war waren warum was weder wegen weil weiss welche welchem welchen welcher
    welches wenn wer werde werden weshalb weswegen wie wieder wieso will willst wir wird wo woher wohin worden wurde
    wurden zu zum zur zwar zwischen danke dank gruss moin servus leider frage fragen"""

_SPANISH = """a al algo alguien algun alguna algunas algunos ahi ahora alli antes aqui asi aun aunque ayuda bien
    buenas buenos cada casi como con contra cosa cual cuales cualquier cuando cuanto cuantos de debe debo decir del
    desde despues dia donde dos el ella ellas ellos en entonces entre era eres es esa esas ese eso esos esta estaba
    estamos estan estas este esto estos estoy fue fueron funciona funcionan funcionar gracias ha haber había habia
    hace hacer hacerlo hago han hasta hay haya he hola igual ir la las le les lo los mas me mejor mi mientras mis
    mismo modo mucho muy nada nadie ni no nos nosotros nuestro os otra otras otro otros para pero poco poder podria
    por porque posible problema puede pueden puedo pues que quiero quien quienes saber sabe se sea ser si sido siempre
    sin sino sobre sois solo son soy su sus tal tambien tampoco tan tanto te tener tengo ti tiene tienen todas todavia
    todo todos tras tu tus un una unas uno unos usar uso va vale voy y ya yo intento favor pregunta"""

_FRENCH = """a ai alors apres as au aucun aucune aujourd aussi autre autres aux avait avant avec avez avoir avons bien
    bonjour bonsoir c ca car ce ceci cela celle celui ces cet cette chaque chez comme comment contre d dans de deja
    depuis des dois doit donc dont du elle elles en encore ensuite entre es essaie est et etait ete etes etre eu eux
    faire fait faites faut fois font ici il ils j jamais je juste l la le les leur leurs lorsque lui m ma mais marche
    marchent me meme merci mes mettre mieux moi moins mon n ne ni non nos notre nous on ont ou par parce pas pendant
    peu peut peuvent peux plus plusieurs plutot possible pour pourquoi pourrait pourtant pouvez puis puisque qu quand
    que quel quelle quelles quels quelque quelques quelqu qui quoi s sa sais salut sans sauf se sera serait ses si
    sinon soit son sont sous souvent suis sur svp t ta tes toi ton toujours tous tout toute toutes tres trop trouve tu
    un une utiliser va vais vers veut veux voici voila vos votre vous vraiment y probleme fonctionne fonctionnent aide
    question stp"""

_PORTUGUESE = """a agora ainda ajuda algo alguem algum alguma alguns ali antes ao aos apenas apos aquela aquele aqui
    as assim ate bem boa bom cada coisa com como consigo consegue contra da dao daquele das de dela dele dentro depois
    desde dessa desse desta deste devo deve do dos e ela elas ele eles em enquanto entao entre era essa essas esse
    esses esta estao estar estas estava este estes estou eu faco faz fazer fica foi foram funciona funcionam funcionar
    gente ha isso isto ja la lhe mais mas me melhor mesmo meu meus minha minhas muito na nada nao nas nem nenhum
    nenhuma ninguem no nos nossa nosso num numa o obrigada obrigado oi ola onde os ou outra outro outros para pela
    pelas pelo pelos per pergunta pode podem poderia porque por posso pra precisa preciso problema qual quais qualquer
    quando quanto quantos que quem quero saber sabe se seja sem sempre ser sera seu seus so sobre sou sua suas tao
    tambem tem tenho ter teu toda todas todo todos tudo um uma umas uns usar usando uso vai voce voces vou tentando
    favor"""

_ITALIAN = """a abbia ad adesso ai aiuto al alcuni alla alle allo altra altre altri altro anche ancora avere aveva c
    che chi ci ciao ciascuno come con cosa così cosi cui d da dai dal dalla dalle dallo dei del della delle dello
    dentro deve devo di dopo dove due e ecco era essere fa faccio fare fatto fino fra funziona funzionano gia gli
    grazie ha hai hanno ho i il in invece io la le lei li lo loro lui ma mai me meglio mentre mi mia mie miei mio
    molto ne nei nel nella nelle nessun nessuno niente no noi non nostro nulla ogni oppure ora per perche pero piu poi
    possibile possiamo posso potrei prima problema proprio puo qual quale quali qualche qualcosa qualcuno quando
    quanto quanti quella quello questa queste questi questo qui quindi riesco sa se sei sempre senza si sia siamo sono
    sopra sotto sta sto su sua sui sul sulla suo te ti tra tu tua tuo tutta tutte tutti tutto un una uno usare va vi
    voglio vorrei voi buongiorno"""

_DUTCH = """aan al alle alleen alles als ander andere bedankt ben bij daar daarna dan dat de deze die dit doe doen
    doet door dus echt een eens elk elke en er ergens erg gaat gebruik gebruiken geen goed graag haar had hallo heb
    hebben heeft hem hen het hier hij hoe hoeveel hun iemand iets ik in is ja jaar je jij jou jouw jullie kan kunnen
    krijg lukt maar maken me meer men met mij mijn misschien moet moeten na naar nee niemand niet niets nog nu of om
    omdat onder ons onze ook op over probleem steeds te tegen toch toen tot tussen u uit uw van vanaf veel voor vraag
    waar waarom waarvan wanneer want waren was wat we weer weet wel welk welke werken werkt wie wij wil worden wordt
    zal ze zelf zeer zich zij zijn zo zoals zonder zou hoi doei kun"""

_POLISH = """a aby albo ale ani bardzo bez bo byc byl byla bylo bym chce chyba ci cos czego czemu czy czyli dla
    dlaczego do dobrze dziala dzialaja dzieki dziekuje gdy gdyz gdzie go i ich ile im inny ja jak jaka jakby jaki
    jakie jakis jako je jednak jego jej jesli jest jestem jeszcze juz kazdy kiedy kto ktora ktore ktory ku lub ma mam
    mamy mi mnie moga moge mogl moj moja moje moze mozna moznaby mu musi musze my na nad nam nas nasz nic nich nie
    niego niej niz o od ona one oni ono oraz po pod pomoc pomoze ponad poniewaz potem potrzebuje prosze przed przez
    przy problem robic robie sa sam se sie skad soba sobie sposob swoj ta tak taki takie tam te tego tej ten teraz tez
    to tobie toba tu tutaj tych tylko tym u uzyc uzywac w wam was wasz wiec witam wszystko wy z za zadnych zawsze ze
    zeby zrobic czesc hej"""

_TURKISH = """acaba ama ancak artik aslinda bana bazi ben beni benim biliyor bir biraz biri birsey biz bize bizim bu
    bunu bunun burada calisiyor calismiyor calistir cok cunku da daha dahil de degil diye dolayi en eger ettim gerek
    gerekiyor gibi hala hangi hata hem hep hepsi her hic icin ile ilgili ise istiyorum iyi kac kadar karsi kendi ki
    kim kimse lazim lutfen merhaba mi mu mumkun nasil ne neden nedir nerede nereden nereye nicin niye o olan olarak
    oldu oluyor olmuyor olmasi olsun on ona ondan onlar onu onun orada oysa oyle sadece sana selam sen senin siz size
    sizin sonra sorun su sunu tabi tamam tesekkurler tum tarafindan ve veya var ya yani yapabilirim yapmak yapiyorum
    yardim yok yoksa zaten kullanabilirim kullaniyorum"""

_SWEDISH = """aldrig alla allt an andra annan att av bara bli blir bra da dar de dem den denna deras dess dessa det
    detta dig din dina du efter ej eller en er ett fick finns for fore fran funkar fungerar fa far ga gar genom gor
    gora ha hade han har hej hela henne her hitta hjalp hon honom hur i igen in inga ingen ingenting inte innan ja jag
    kan kanske ligger kunde lite man med mellan men mer mig min mina mitt mot mycket nagon nagot nagra nar nej ni nog
    nu nya och ocksa om oss pa problem ratt sa samma sen sig sin sina sitt ska skulle som tack till under upp ut utan
    vad var vara varfor varit varje vart vet vi vid vilka vilken vilket vill ville at anvanda anvander"""

_RUSSIAN_WORDS = """а без более бы был была были было быть в вам вас ваш весь вместо во вообще вопрос вот все всё всегда
    всем всех всю вы где да даже делать для до его ее её ей если есть еще ещё же за здесь здравствуйте и из или им
    иногда их к как какая какие какой какую кто когда ко которая которые который куда ли либо лучше между меня мне
    много могу может можете можно мой моя мои мы на надо нас наш не нет него нее неё ней нельзя ни ничего но ну нужно
    о об один он она они оно от очень пишет по под подскажите пожалуйста получается помогите помощь после потом потому
    почему почти при привет про проблема просто раз работает работают с сам сделать себя сейчас со спасибо так также
    такая такие такой там тебя тем теперь то тоже только том тот ту тут ты у уже хочу хотел хоть чего чем через что
    чтобы чтоб эта эти это этого этой этом этот эту я хотелось"""

_UKRAINIAN_WORDS = """а або але без був була були було бути в вам вас ваш ви від він вона вони все всі де для до
    добрий є за
    з зараз звідки зі і із й його її їх як яка яке який які якщо ж же здається коли користуватися кого ли либо маю ми
    мене мені можна можу мій моя на навіщо нам нас наш не немає ні нічого ну про по під після питання потрібно привіт
    працює працюють просто проблема та так також там те теж ти тільки то тому тут у це цей ця ці цього чи чого чому
    через щоб що ще я дякую допоможіть хочу якось зробити робити куди"""

_CHINESE = """一个 一下 这个 那个 什么 怎么 如何 为什 哪里 可以 能不 不能 是否 没有 有没 请问 问题 谢谢 大家 我们 你们
    他们 现在 已经 但是 因为 所以 如果 怎样 的话 么办 我的 你的 这样 那样 还是 就是 不是 是不 时候 这里 那里 有人 出现
    請問 問題 謝謝 這個 那個 什麼 怎麼 為什 哪裡 沒有 我們 應該"""

_JAPANESE = """です ます した して する から まで など こと もの この その あの どの ここ そこ どこ これ それ ない
    いる ある てい たい でき きる きま ませ せん すか いま とい いう って たら ので のに けど には では とは いで どう
    うす すれ れば うや やっ くだ ださ さい とう うご ござ ざい お願 願い いし しま たが が出 のか かり りま よう うに
    にな なり なっ った とき かを のは のが のを をし され れる れま ても"""

_FOLDED_LETTERS = str.maketrans({"ł": "l", "ø": "o", "ı": "i", "đ": "d", "ß": "ss", "æ": "ae", "œ": "oe", "ё": "е"})


def normalised(form: Literal["NFC", "NFD", "NFKC", "NFKD"], text: str) -> str:
    """Return `unicodedata.normalize(form, text)`, in linear time: of more than 30 combining marks in a row, which no
    language has, the first 30 are kept (UAX 15, "Stream-Safe Text Process"). It sorts them in quadratic time, and no
    other thread runs meanwhile.
    """
    return text if text.isascii() else unicodedata.normalize(form, _too_many_marks().sub(r"\1", text))


_BECOME_MARKS = "\u0f73\u0f75\u0f81\uff9e\uff9f"
"""The characters that are no combining marks, but whose normal forms consist of some."""


_BLOCKS_WITH_MARKS = (
    *((0x300, 0x3100), (0xA600, 0xAC00), (0xFB00, 0xFE30), (0x10000, 0x11E00)),
    *((0x16A00, 0x17000), (0x1BC00, 0x1BD00), (0x1D100, 0x1D300), (0x1E000, 0x1E980)),
)
"""To look at all of Unicode takes five times as long, on the event loop."""


@cache
def _too_many_marks() -> re.Pattern[str]:
    codes = (code for first, end in _BLOCKS_WITH_MARKS for code in range(first, end))
    marks = char_ranges(code for code in codes if unicodedata.combining(chr(code))) + _BECOME_MARKS
    return re.compile(f"([{marks}]{{30}})[{marks}]+")


def char_ranges(codes: Iterable[int]) -> str:
    """Return code points as ranges of a character class."""
    known = {*codes}
    starts = sorted(code for code in known if code - 1 not in known)
    ends = sorted(code for code in known if code + 1 not in known)
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in zip(starts, ends, strict=True))


def folded(word: str) -> str:
    """Return a lower-case word in Latin letters without its accents; in other words only ё becomes е."""
    if word.isascii():
        return word
    word = word.translate(_FOLDED_LETTERS)
    if word[0] > "\u024f":
        return word
    apart = normalised("NFD", word)
    return "".join(char for char in apart if not unicodedata.combining(char))


def _word_set(words: str) -> frozenset[str]:
    return frozenset(map(folded, words.split()))


FUNCTION_WORDS: Mapping[str, frozenset[str]] = {
    "en": _word_set(_ENGLISH),
    "de": _word_set(_GERMAN),
    "es": _word_set(_SPANISH),
    "fr": _word_set(_FRENCH),
    "pt": _word_set(_PORTUGUESE),
    "it": _word_set(_ITALIAN),
    "nl": _word_set(_DUTCH),
    "pl": _word_set(_POLISH),
    "tr": _word_set(_TURKISH),
    "sv": _word_set(_SWEDISH),
    "ru": _word_set(_RUSSIAN_WORDS),
    "uk": _word_set(_UKRAINIAN_WORDS),
    "zh": _word_set(_CHINESE),
    "ja": _word_set(_JAPANESE),
}
"""The frequent words of each language, by its ISO 639-1 code. Chinese and Japanese have pairs of characters, which are
their terms."""


ENGLISH = "en"

_MAX_CHARS = 8_000
_MAX_WORDS = 400
_LONGEST_FUNCTION_WORD = 32
"""Characters; longer words are no function words of any language."""
_MIN_SCORE = 0.5
"""The least score of a language other than English. A word that no other language has counts 1, one of two ½."""

_NOT_PROSE = lazy_pattern(
    r"""```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|`[^`\n]*`|<[^<>\n]{1,300}>|\[(?:image|file):[^\]\n]{0,1000}\]|:\w+:
    |(?:(?<!\S)\S*)?(?:://|www\.|@)\S*
    |(?<![\w./\\-])(?:(?!_)[\w-])*[./\\_][\w./\\-]*\w|(?<!\w)[^\W\d]*\d\w*|(?<!\S)--?\w[\w-]*""",
    re.DOTALL | re.VERBOSE,
)
_WORD = lazy_pattern(r"[^\W\d_]+")

# Scripts of one language, and how many characters count as a word; 0: each match is a word.
_HAN, _KANA = "zh", "ja"
_SCRIPTS = {
    _KANA: (lazy_pattern(r"[\u3041-\u3096\u30a1-\u30fa\u30fc\uff66-\uff9f]"), 2),
    _HAN: (lazy_pattern(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]"), 2),
    "ko": (lazy_pattern(r"[\uac00-\ud7a3\u1100-\u11ff]+"), 0),
    "ru": (lazy_pattern(r"[\u0400-\u04ff]+"), 0),
    "th": (lazy_pattern(r"[\u0e01-\u0e5b]"), 4),
    "ar": (lazy_pattern(r"[\u0600-\u06ff\u0750-\u077f]+"), 0),
    "el": (lazy_pattern(r"[\u0370-\u03ff\u1f00-\u1fff]+"), 0),
    "he": (lazy_pattern(r"[\u0590-\u05ff]+"), 0),
    "hi": (lazy_pattern(r"[\u0900-\u097f]+"), 0),
}
_KANA_SHARE = 0.05
"""A text in Han is Japanese from this share of kana on."""
_UKRAINIAN_LETTERS, _RUSSIAN_LETTERS = lazy_pattern(r"[іїєґ]"), lazy_pattern(r"[ыэъё]")

# Letters that few languages have. Each counts as half a word; a language named twice has it nearly alone.
_TELLING_LETTERS = {
    "ä": "de sv", "ö": "de sv tr", "ü": "de tr", "ß": "de de", "å": "sv sv", "ñ": "es es", "¿": "es es", "¡": "es es",
    "ã": "pt pt", "õ": "pt pt", "ç": "fr pt tr", "é": "fr", "è": "fr it", "ê": "fr pt", "ô": "fr pt", "œ": "fr fr",
    "à": "fr it", "ù": "fr it", "ì": "it", "ò": "it", "í": "es pt", "ó": "es pt pl", "á": "es pt", "ú": "es pt",
    "ł": "pl pl", "ż": "pl pl", "ź": "pl", "ś": "pl", "ę": "pl pl", "ą": "pl pl", "ć": "pl", "ń": "pl", "ğ": "tr tr",
    "ı": "tr tr", "ş": "tr tr", "ë": "nl",
}  # fmt: skip

_LATIN_LANGUAGES = ("en", "de", "es", "fr", "pt", "it", "nl", "pl", "tr", "sv")


def language_of(text: str) -> str:
    """Return the ISO 639-1 code of the language of a document or a question; `en` where it is not clear.

    Code, addresses, names of files and options, and words with digits do not count.
    """
    prose = _NOT_PROSE.sub(" ", text[:_MAX_CHARS])
    by_script = None if prose.isascii() else _by_script(prose)
    return by_script or _by_words(prose)


def _by_script(text: str) -> str | None:
    """Return None if function words in Latin letters outnumber the words of other scripts."""
    words: dict[str, int] = {}
    for code, (pattern, chars) in _SCRIPTS.items():
        found = len(pattern.findall(text))
        words[code] = -(-found // chars) if chars else found
    japanese = words[_KANA] > _KANA_SHARE * words[_HAN]
    words[_KANA if japanese else _HAN] = words[_KANA] + words[_HAN]
    best = max(words, key=lambda code: words[code])
    latin = sum(bool(_languages_with(folded(word))) for word in _WORD.findall(text.lower()))
    if not words[best] or words[best] < latin:
        return None
    return _russian_or_ukrainian(text.lower()) if best == "ru" else best


def _russian_or_ukrainian(text: str) -> str:
    words = set(_WORD.findall(text))
    ukrainian = len(_UKRAINIAN_LETTERS.findall(text)) + len(words & FUNCTION_WORDS["uk"] - FUNCTION_WORDS["ru"])
    russian = len(_RUSSIAN_LETTERS.findall(text)) + len(words & FUNCTION_WORDS["ru"] - FUNCTION_WORDS["uk"])
    return "uk" if ukrainian > russian else "ru"


def _by_words(text: str) -> str:
    lowered = text.lower()
    words = [folded(word) for word in _WORD.findall(lowered)[:_MAX_WORDS] if len(word) <= _LONGEST_FUNCTION_WORD]
    scores: defaultdict[str, float] = defaultdict(float)
    for word in words:
        known = _languages_with(word)
        for code in known:
            scores[code] += 1 / len(known)
    if not text.isascii():
        for letter, codes in _TELLING_LETTERS.items():
            for code in codes.split():
                scores[code] += 0.5 / len(set(codes.split())) * min(lowered.count(letter), 3)
    best = max(scores, key=lambda code: scores[code], default=ENGLISH)
    return best if scores[best] >= _MIN_SCORE and scores[best] > scores[ENGLISH] else ENGLISH


@lru_cache(maxsize=16_384)
def _languages_with(word: str) -> tuple[str, ...]:
    return tuple(code for code in _LATIN_LANGUAGES if word in FUNCTION_WORDS[code])
