"""Reads the wording of replies: the sentences that state something, whether they are enough of an answer, whether the
asker says that an answer worked, and whether somebody doubts or corrects it.

Statements are recognised in English. In other languages a sentence asks if it ends with a question mark, and states
otherwise. Thanks are recognised in the eight languages that the bot speaks.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable

from services import lazy_pattern
from services.search.questions import QUESTION_MARKS, asking_sentences, is_question, words_to_search
from services.search.tokenizer import terms

# Statements

_MIN_TERMS, _MIN_WORDS = 2, 5
"""The fewest different terms, and the fewest words, of an answer without a link or code."""

_CODE = lazy_pattern(r"```.*?(?:```|\Z)", re.DOTALL)
_SENTENCE = lazy_pattern(r"(?<=[.!?…؟。！？])[ \t]+(?=\S)|(?<=[。！？])")
_LINE_OR_SENTENCE = lazy_pattern(r"(?<=[.!?])\s+|\n")
_ANY_WORD = lazy_pattern(r"\w")
_WORD = lazy_pattern(r"[^\W_]+")
_LINK_OR_CODE = lazy_pattern(r"https?://\S+|`[^`\n]+`|```|^[ \t]*+[$#] ?\S", re.MULTILINE)
_ADDRESS = lazy_pattern(r"<?https?://\S+")
_BLANK_LINES = lazy_pattern(r"\n{3,}")
_FILE = lazy_pattern(r"^\[(?:image|file): ", re.MULTILINE)
_CLOSING_MARKS = " )\"'*_~"


def _any(*alternatives: str) -> re.Pattern[str]:
    return lazy_pattern("|".join(alternatives), re.IGNORECASE)


def _words(*alternatives: str) -> re.Pattern[str]:
    """Match one of them, each of which begins with a word."""
    return lazy_pattern(rf"\b(?:{'|'.join(alternatives)})", re.IGNORECASE)


def _begins(*alternatives: str, after: str = "") -> re.Pattern[str]:
    """Match one of them at the beginning of a sentence, behind any punctuation and then `after`."""
    return lazy_pattern(rf"^\W*{after}(?:{'|'.join(alternatives)})", re.IGNORECASE)


_NOT_NAMES = (
    r"\w*(?:error|warning|exception)|note|example|step|edit|update|tip|solution|problem|answer|https?|run|fix|try|ans|a|q|use|or"
    r"|and|also|see|then|first|for|to|in|on|if|is|it|this|that|here|command|output|result|option|reason|cause|hint|info"
    r"|important|yes|no|ok|file|code|windows|linux|mac|macos|docker|never|not|nope|nah|don['’]?t|do|does|can|cannot|can['’]?t"
    r"|stop|wrong|false|true|fact|myth|rumou?r|lie|lies|joke|joking|kidding|sarcasm|irony|scam|fake|fraud|phishing|spam"
    r"|deprecated|obsolete|outdated|removed|unsupported|unofficial|unsafe|insecure|beware|careful|caution|attention|danger"
    r"|dangerous|bad|good|pro|con|pros|cons|before|after|old|new|today|formerly|previously|except|unless|only|instead|claim"
    r"|quote|they|he|she|users?|scammers?|attackers?|somebody|someone|nobody|nothing|none|neither|wait"
)
_TO_SOMEBODY = _any(
    r"^\s*(?:<?@[\w.-]+>?[,:]?\s+)+",
    rf"^\s*(?!(?:{_NOT_NAMES})\b)[A-Za-z_][\w\[\]`|-]{{1,30}}\s?:\s+(?=\S)",
    r"^\s*(?:hi+|hey+|hello+|hiya|yo|ah+|oh+|ok(?:ay)?|sorry|yeah|yep|thanks?)\s+@?[A-Za-z_][\w-]{2,30}\s*[,!:]\s+(?=\S)",
)
"""The name with which a message opens: "tobie: yes, with …", "hey tobie, …"."""

_OPENING = lazy_pattern(
    r"^\s*(?:(?:hi+|hey+|hello+|hiya|howdy|greetings|good\s(?:morning|evening|afternoon|day)|welcome(?:\sback)?"
    r"|hallo|hola|bonjour|salut|ol[aá]|привет|hm+|um+|uh+|erm|ah+|oh+|huh|welp|well|so|haha+|lol|heh|ok(?:ay)?|alright"
    r"|cool|nice|great|gotcha|i\ssee|no\s(?:problem|worries)|np|sure\sthing"
    r"|(?:you['’]?re|your|ur)\s(?:very\s)?welcome|(?:sorry|apologies)(?:\s(?:for|about)\s(?:the|that|this)\s?\w*)?)"
    r"(?:\s(?:there|all|everyone|folks|again))?(?=[\s,.!:;…-]|$)[\s,.!:;…)-]*)+",
    re.IGNORECASE,
)
_PLACEHOLDER = _begins(
    r"(?:one|a|just\sa|give\sme\s(?:a|one|two)|hang\son|hold\son|wait)\s?"
    r"(?:sec(?:ond)?s?|mo(?:ment)?|min(?:ute)?s?|tick|on|up)\b[^.]{0,40}\W{0,9}$",
    r"(?:(?:ok(?:ay)?|hm+|sorry|ah|so|well|still)\W+)?(?:i(?:['’]?m|\sam)\s)?(?:just\s|still\s|currently\s)?"
    r"(?:looking|reading|checking|investigating|digging|catching\sup|thinking|asking(?:\saround)?|testing"
    r"|(?:having|taking)\sa\slook)\b(?!\sat\s(?:the|your|this)\s\w+\s\w+)[^.]{0,60}\W{0,9}$",
    r"(?:so\s|ok(?:ay)?\s|hm+\s)?(?:let\sme|lemme|i(?:['’]?ll|\swill|\scan|\s(?:need|have)\sto|['’]?m\sgoing\sto)|gonna)\s"
    r"(?:just\s|quickly\s|first\s|try\s(?:to|and)\s)*(?:check|look|see|ask|read|test|try|find|dig|think|double|verify"
    r"|confirm|get\sback|be\sright\sback|be\sback|run|ping|take|catch|circle|follow|dm|know|go)\b",
    r"brb|bbl|afk|back\sin\s|be\sright\sback|will\s(?:check|look|get\sback|be\sback|do|ping)\b",
    r"(?:sorry|apologies)\b[^?]{0,80}\W{0,9}$",
    r"(?:but\s)?i(?:['’]?m|\s(?:am|have|had|need|got|gotta))\s(?:to\s)?"
    r"(?:run|go|leave|head\sout|back|here|away|typing|tired)\b",
    r"i\scan['’]?t\s(?:type|read|even|remember)\b",
    r"(?:fell|fallen)\soff\b",
    r"(?:i(?:['’]?m|\sam)\s)?not\s(?:really\s)?(?:sure|certain|familiar)\b[^,;]{0,60}\W{0,9}$",
    r"(?:i\s(?:don['’]?t|do\snot)\s(?:really\s)?know|no\s(?:idea|clue)|dunno|idk|iono|not\sthat\si\sknow)\b[^,;]{0,60}\W{0,9}$",
    r"i\sdon['’]?t\shave\s(?:context|access|any\sidea|enough)\b",
)
"""In the place of an answer: "one sec", "let me check", "reading now", "no idea"."""
_ASKS_BACK = _begins(
    r"(?:can|could|would|will|may)\s(?:you|u)\s(?!(?:can|also|could)\b)[^.]*?(?:share|post|paste|send|show|give"
    r"|tell|elaborate|explain|clarify|describe|dm|pm|check|try|put|provide|link|confirm|upload|look)\b",
    r"(?:please|pls|plz)\s(?:share|post|paste|send|show|give|tell|elaborate|clarify|describe|dm|pm|provide|upload"
    r"|ask|attach)\b",
    r"(?:share|post|paste|send|show|dm|pm|tell)\s(?:me|us|the|your|it|a)\b",
    r"what(?:['’]?s|\sis|\sare|\sdo|\sdid|\sdoes|\sversion|\serror|\skind|\shappens)\b[^.]*\b(?:you|your"
    r"|the\s(?:\w+\s){0,3}(?:error|message|output|issue|problem|question|code|response|payload|request|id))\b",
    r"(?:which|what)\s\w+(?:\s\w+)?\s(?:are|do|did|is|were|have)\s(?:you|your|this|that|it)\b",
    r"(?:are|were|do|did|have|had)\s(?:you|u)\b",
    r"(?:how|where|why|when)\s(?:are|do|did|were|would|is)\s(?:you|your|that|this|it)\b",
    r"i(?:['’]d)?\s(?:would\s)?need\s(?:to\s(?:see|know)|more|a\s(?:bit|little)\smore|the\s(?:whole|full|exact))\b",
    r"(?:do|does|is|are)\s(?:that|this|it)\s(?:make|help|work|answer|what)\b",
    after=r"(?:(?:and|but|so|ok(?:ay)?|hm+|then|also|sorry|well|wait)\W+)*",
)
_COURTESY = _begins(
    r"(?:you['’]?re|ur|your|you\sare)\s(?:very\s|most\s)?welcome",
    r"(?:glad|happy|great|good|nice|awesome)\s(?:to|that|you|it|i)\b[^.]{0,60}\W{0,9}$",
    r"(?:thanks?|thank\syou|thx|cheers|ty)\b[^.]{0,60}\W{0,9}$",
    r"(?:hope|hopefully)\s(?:that|this|it)\b[^.]{0,40}\W{0,9}$",
    r"(?:let\s(?:me|us)\sknow|lmk|feel\sfree|good\sluck|have\sa\s(?:good|great|nice)|no\s(?:problem|worries)|anytime"
    r"|my\spleasure|don['’]?t\sworry)\b[^.]{0,80}\W{0,9}$",
    r"(?:does\sthat|makes?\ssense|that\smakes\ssense|fair\senough|totally\sfair|good\s(?:question|point|catch|idea)"
    r"|sounds\s(?:good|great|right|like\sa\splan))\b[^,;]{0,40}\W{0,9}$",
    r"(?:ha(?:ha)*|lol|rip|ouch|oops|(?:oh\s)?wow|damn|ugh|yay|nice|cool|great|perfect|awesome|this|that|it\shappens)\W*$",
    r"yay\b",
)
_OWN_CASE = _any(
    r"(?<!if\s)(?<!when\s)(?<!unless\s)(?<!whether\s)\byou(?:['’]re|\sare)\s"
    r"(?:not\s|still\s|probably\s|likely\s|just\s|actually\s)*(?:trying|using|getting|passing|calling|sending|doing"
    r"|missing|seeing|mixing|looking\sat|hitting|creating|running)\b",
    r"\byour\s(?:script|code|snippet|paste|screenshot|example|log|request|payload)\s"
    r"(?:is|are|was|has|does|seems|looks|shows|says)\b",
)
"""Remarks on what the asker has shown, which are of no use to others."""
_BEGINS = r"(?<![\w,] )"
"""In front of a word: it begins a sentence or a line."""
_WE_DID = r"(?:I|we)(?:['’]ve|\shave)?\s(?:just\s|now\s|already\s){0,2}"
_FOR_ASKER = _words(
    # What the team has done for the asker. What it changed for everybody ("we have fixed that in 4.2") names no "you".
    rf"{_WE_DID}(?:sent|mailed|reset|refunded|credited|(?:un)?(?:blocked|banned|locked)|cancell?ed|deleted|removed"
    r"|renewed|extended|upgraded|invited|added|created|fixed|(?:re)?activated|restored|approved|granted|issued"
    r"|transferred|checked|changed)\b[^.!?\n]{0,80}\byou(?:rs?)?\b",
    rf"{_WE_DID}(?:refunded|un(?:blocked|banned|locked))\b|(?:I|we)(?:['’]ve|\shave)\s(?:just\s)?reset\b",
    r"hab(?:en?)?\b[^.!?\n]{0,40}\b(?:dir|dich|ihnen|sie|euch|deine?[mnrs]?|ihre?[mnrs]?|eure?[mnrs]?)\b[^.!?\n]{0,60}"
    r"\b(?:zurückgesetzt|erstattet|überwiesen|(?:ent|ge)sperrt|freigeschaltet|gelöscht|storniert|verlängert|eingeladen"
    r"|angelegt|aktiviert|ge(?:schickt|sendet|prüft|ändert))\b",
    # What has become of something of the asker's, but not "if your account was blocked", "once your order was paid".
    rf"(?:{_BEGINS}|(?:because|but|as|sorry|unfortunately|like|see)\W{{1,3}})your\s(?:\w+\s)?(?:account|order|card|invoice"
    r"|payment|ticket|licen[cs]e|subscription|refund|parcel)\s(?:was|were|(?:has|have)\s(?:been|expired|ended|failed|bounced"
    r"|arrived)|is\s(?:still|on\sits\sway|\w+\s(?:because|since|due))|ended|expired|bounced)\b",
    r"(?:dein|ihre?|eure?r?|deine)\s(?:konto|account|bestellung|karte|rechnung|zahlung|ticket|lizenz|abo|paket)"
    r"\s(?:wurde|war)\b",
    rf"yours\s(?:is|was|has)\b|for\syou\s(?:alone|only|personally)\b|{_BEGINS}for\syou\b",
    # "As you are on the old plan, …", but not "because you are not logged in", which names a cause for all.
    rf"in\syour\scase\b|{_BEGINS}(?:since|as|seeing(?:\sthat)?)\syou(?:['’](?:re|ve|d)|\s(?:are|have|had|were|already))\b",
    # "You have two plugins that fight."
    rf"{_BEGINS}you(?:\shave|['’]ve(?:\sgot)?)\s(?:an?|two|three|\d)\s\w+(?:\s\w+)?\sthat\b",
    r"as\syou(?:['’]ve|\shave)?\s(?:told|wrote|said|asked)\b|wie\s(?:besprochen|vereinbart)\b"
    r"|(?:agreed|discussed)\s(?:with\syou|on\sthe\sphone)\b",
    # A secret: "your new key is QX7F-99PL". In "your code is 6 digits long" no long word has a digit.
    r"(?:your(?:\snew)?|the\snew|(?:dein|ihr|das|der|die)\sneue[rs]?)\s(?:\w+\s)?(?:key|password|code|pin|licen[cs]e"
    r"|token|one|schlüssel|passwort|kennwort|lizenz)\s(?:is|ist|lautet)\W{1,9}(?=\S*\d)\S{6}",
)
"""Sentences for the asker alone: they are private, or of no use to others."""
_DONE = _begins(r"(?:done|erledigt)\s?[,.!:]", r"(?:yes\W{1,3})?th(?:at|is)\sone\b")
"""Messages that say that a thing is done, or which of several that the asker has named is right."""
_FOR_NOW = _words(
    # "If you are logged in at the moment" is said in general.
    r"(?<!you)(?<!you\s)(?:is|are|am|have|has|not|['’](?:s|re|m|ve|t))\b[^.!?\n]{0,40}\b(?:right\snow|at\sthe\smoment|at\spresent)\b"
    r"(?!\s(?:of|when|where|that|the|you|it)\b)|im\s(?:moment|augenblick)\b(?!\sde[rs]\b)",
    r"(?:today|tonight|tomorrow)\b(?!['’]s)|heute\b|(?-i:morgen)\b(?<!guten.morgen)(?<!am.morgen)",
    r"this\s(?<!in.this.)(?<!for.this.)(?:morning|afternoon|evening|weekend)\b(?!['’]s)"
    r"|(?:back|out|closed|ready|fixed|released|available|online|com(?:es?|ing))\s(?:again\s)?(?:this|next)\s(?:week|month)\b"
    r"|(?:diese|nächste)[rn]?\swoche\b",
    # "From Monday until Friday" holds each week.
    r"(?:until|by|this|next)\s(?<!day.until.)(?:mon|tues|wednes|thurs|fri|satur|sun)day\b"
    r"|bis\s(?<!tag.bis.)(?:mon|diens|donners|frei|sams|sonn)tag\b",
    r"(?:we|I)(?:['’](?:re|m)|\s(?:are|am))\s(?:\w+\s)?working\son\s(?:it|this|that|a\sfix)\b|wir\sarbeiten\sdaran\b",
    r"(?:will|should)\sbe\sback\s(?:at|by|in|soon|on)\b",
    r"(?<!than\s)(?:an?|few|two|three|\d{1,3})\s(?:minute|hour|day|week)s?\sago\b|yesterday\b(?!['’]s)|is\scurrently\b|currently\snot\b",
    r"since\s(?:yesterday|the\slast\s\w+|last\s\w+|this\s\w+|(?:mon|tues|wednes|thurs|fri|satur|sun)day)\b|gestern\b",
    rf"{_BEGINS}next\s(?:week|month)\b|{_BEGINS}on\s(?:mon|tues|wednes|thurs|fri|satur|sun)day\b(?!\s(?:and|to|or)\b)",
    r"(?:with|in|until)\sthe\snext\s(?:release|version|update)\b|(?:went|ran|came|broke|died|crashed|failed|stopped)\b[^.!?\n]{0,30}\bover\s?night\b",
    r"(?-i:[A-Z])\w+\sis\s(?:already\s)?on\sit\b",
    r"we(?:['’]re|\sare)\s(?:\w+\s)?(?:looking\sinto|investigating|on\sit\b|aware)|we\sknow\sabout\s(?:it|this|that)\b",
)
"""Sentences that hold only on the day on which they are written."""
_BEING_DONE = lazy_pattern(
    r"(?:^|[.!?,;:]\s+)(?:(?!\b(?:while|when|whenever|if|until|once|as|that|which)\b)[^.!?,;:\n]){0,60}\b(?:is|are)\s(?:still\s|just\s)?being\s"
    r"(?:moved|migrated|repaired|fixed|updated|upgraded|rebuilt|restored|investigated|replaced|serviced|tested|reworked)\b"
    r"|\A\W*for\snow\b",
    re.IGNORECASE | re.MULTILINE,
)
"""Sentences about work that is going on; "while it is being updated" is said in general."""
_OF_PERSON = lazy_pattern(
    r"\A\W*(?:(?:yes|no|yeah|well)\W{1,3})?s?he\b|\b(?-i:[A-Z])[\w'’-]{1,30}\s(?-i:[A-Z])[\w'’-]{1,30}\W{1,3}(?:who|s?he)\b",
    re.IGNORECASE,
)
_UNSURE = _words(
    r"(?:never|not|n['’]t)\s(?:actually\s|really\s)?(?:tried|tested)\b|untested\b|my\sguess\b|i(?:['’]?d|\swould|['’]m\sjust)?\sguess(?:ing)?\b",
    r"(?:not|n['’]t)\s(?:\w+\s)?(?:sure|certain)\sat\sall\b|i\s(?:think|believe|suppose|hope|guess)\s(?:so|not)\b|people\ssay\b|supposedly\b",
    r"in\stheory\b|i(?:['’]d|\swould)\s(?:\w+\s)?(?:test|try)\s(?:that|it|this)\s(?:first|before)\b",
    rf"{_BEGINS}(?:it\s)?(?:looks|seems|sounds)\slike\b(?!\s(?:this|that)\b)",
    r"(?:lol|lmao|rofl|jk|just\skidding|kidding)\b",
    r"(?:wrote|said|posted)\s(?:above|before|earlier)\b|as\si\s(?:said|wrote|told)\b|what\s(?-i:[A-Z])\w+\s(?:wrote|said|did|posted|suggested)\b",
)
_JOKES = lazy_pattern(r"(?<!\w)(?:;-?\)|:-?D(?!\w))|[😂🤣🙃😉😜😝]|\s/s\W{0,3}$", re.MULTILINE)
"""Guesses, jokes, and what only refers to other messages."""
_STRUCK_OUT = lazy_pattern(
    r"~~\S|^\W{0,4}(?:outdated|obsolete|deprecated|veraltet)\s?[\]:!)]", re.IGNORECASE | re.MULTILINE
)
_EDIT = lazy_pattern(r"\bedit(?:ed)?\s?:\s?([^\n]{1,200})", re.IGNORECASE)

_FORMALITY = lazy_pattern(
    r"(?:ok(?:ay)?|hm+|hi|hello|hey|sure|sorry"
    r"|(?P<said>(?:one|a|just\sa|give\sme\s(?:a|one))\s(?:sec(?:ond)?|moment|min(?:ute)?)"
    r"|let\sme\s(?:check|look|see)(?:\s(?:it|that|this))?|(?:i(?:['’]m|\sam)\s)?(?:looking|checking|reading)(?:\snow)?|brb"
    r"|(?:you['’]?re|ur|you\sare)\s(?:very\s|most\s)?welcome|yw|glad\s(?:it|that|this)\s(?:helped|worked|works)))"
    r"\b[\s,.!…-]*",
    re.IGNORECASE,
)


def is_formality(text: str) -> bool:
    """Return True for a message that says nothing: that an answer will follow ("one sec, looking"), or "you're
    welcome". A quote may lack it, so this is a closed list of words.
    """
    text, at, says_one = text.strip(), 0, False
    while at < len(text) and (found := _FORMALITY.match(text, at)):
        at, says_one = found.end(), says_one or found["said"] is not None
    return says_one and at == len(text)


def _without_addressee(text: str) -> str:
    """Return `text` without the name that it opens with: "tobie: use X" gives "use X"."""
    return _TO_SOMEBODY.sub("", text, count=1)


def is_statement(sentence: str) -> bool:
    """Return False for a question, a placeholder ("let me check"), a courtesy. A bare yes or no turns what follows."""
    whole = sentence.strip()
    rest = _OPENING.sub("", _without_addressee(whole), count=1).strip()
    if not _ANY_WORD.search(rest):
        return False
    if whole.rstrip(_CLOSING_MARKS).endswith(QUESTION_MARKS) or _ASKS_BACK.match(rest):
        return False
    return not any(pattern.match(each) for pattern in (_PLACEHOLDER, _COURTESY) for each in (whole, rest))


def statements(text: str) -> str:
    """Return the statements in `text`, by which it is judged; empty if there is none. Code stays as it is. It states
    nothing below words that do not ("Did you run this?"), nor does an address.

    A line loses the other sentences at both ends: what is quoted is the whole text.
    """
    parts = _split_code(text)
    stated = [map(_statements_of_line, each.split("\n")) for each in parts[::2]]
    prose = ["\n".join(line for line in lines if line is not None) for lines in stated]
    if _says_words(parts[::2]) and not _says_words(prose):
        return ""
    parts[::2] = prose
    return _BLANK_LINES.sub("\n\n", "\n".join(each for each in parts if each.strip())).strip("\n").rstrip()


def is_answer(text: str) -> bool:
    """Return whether `text`, as `statements` returns it, is enough of an answer: it has a link, code or a few words
    besides remarks on the asker's own case ("you are using the wrong key there").
    """
    text = _OPENING.sub("", _without_addressee(text), count=1)
    text = " ".join(each for each in _LINE_OR_SENTENCE.split(text) if not _OWN_CASE.search(each))
    if _LINK_OR_CODE.search(text):
        return True
    return len(_WORD.findall(text)) >= _MIN_WORDS and len(set(terms(words_to_search(text)))) >= _MIN_TERMS


def holds_for_all(text: str) -> bool:
    """Return whether the text of a message of the team may be told to everybody who asks the same, at any time. False
    for what it says of the asker's own case ("I refunded your order", "your new key is …") and for what holds on that
    day only ("down at the moment", "until Friday"), for guesses, jokes, what is said of a person and what refers to
    other messages, as far as English and some German words show it; and if something of it is struck out, or an
    "EDIT:" takes it back.
    """
    text = _OPENING.sub("", _without_addressee(text), count=1)
    prose = _LINK_OR_CODE.sub("", "\n".join(_split_code(text)[::2]))
    if _STRUCK_OUT.search(prose) or any(takes_back(each) or may_doubt(each) for each in _EDIT.findall(prose)):
        return False
    if any(pattern.search(prose) for pattern in (_UNSURE, _JOKES, _OF_PERSON, _BEING_DONE)):
        return False
    return not (_DONE.match(text) or _FOR_ASKER.search(text) or _FOR_NOW.search(prose))


def has_file(text: str) -> bool:
    """Return whether a message has a file or a picture, without which its words may mean nothing."""
    return _FILE.search(text) is not None


def _split_code(text: str) -> list[str]:
    """Return prose and code in turn, prose first."""
    parts: list[str] = []
    end = 0
    for found in _CODE.finditer(text):
        parts += [text[end : found.start()].strip("\n"), found[0]]
        end = found.end()
    return [*parts, text[end:].strip("\n") if parts else text[end:]]


def _says_words(prose: Iterable[str]) -> bool:
    lines = (line.strip() for each in prose for line in each.split("\n"))
    return any(line and not _ADDRESS.fullmatch(line) for line in lines)


def _statements_of_line(line: str) -> str | None:
    """Return the statements of a line, None if there is none. An empty line stays."""
    if not line.strip():
        return line
    if line.lstrip().startswith(">"):  # somebody else's words
        return None
    indent = line[: len(line) - len(line.lstrip())]
    sentences = [each for each in _SENTENCE.split(line) if each.strip()]
    stated = [at for at, each in enumerate(sentences) if is_statement(each)]
    if not stated:
        return None
    return indent + " ".join(each.strip() for each in sentences[stated[0] : stated[-1] + 1])


# Thanks

MAX_THANKS_CHARS = 300
"""A longer message says more than thanks."""

_CLAUSE = _any(r"[.,;:!…\n，。；：！、]+", r"(?<=[?？؟])", r"\b(?:and|but|und|aber|pero|mais|mas|но)\b")
_QUESTION_ENDS = ("?", "？", "؟", "吗", "嗎", "呢", "か")
_SUPPOSES = _any(
    r"\b(?:if|unless|whether|how|why|when|whenever|what|where|which|until|once|sure|hop(?:e|ing)|way)\b",
    r"^\W*(?:is|are|am|was|were|does|do|did|can|could|should|would|will|has|have|may|might)\b",
    r"\b(?:wenn|ob|falls|wie|warum|wieso|sobald|bis|si|cómo|cuando|qué|comment|pourquoi|quand|se|como|quando|quê)\b",
    r"\b(?:если|как|почему|когда|чтобы)\b|如果|要是|为什么|怎么|もし|なぜ",
)
"""In front of words such as "it works", in the same clause: they are asked or supposed, not told."""
_FAILED = _any(
    r"^\W*(?:did|does)(?:n['’]?t| not) (?:really )?(?:work|help)",
    r"\b(?:that|this|it|these) (?:still |just |really |also |unfortunately )?(?:did|does|do|is|was|has)"
    r"(?:n['’]?t| not) (?:really |quite |even )?(?:work|help|solv|fix)",
    r"\bstill (?:fail|broken|getting|the same|doesn['’]?t|does not|isn['’]?t|not (?:work|help|fix|solv))",
    r"\bno luck\b|(?<!not the )\bsame (?:error|problem|issue)\b",
    r"(?:^\W*|\b(?:das|es|leider|trotzdem) )(?:geht|klappt|funktioniert|hilft|half|klappte|ging) "
    r"(?:das |es |jetzt |leider |immer noch |trotzdem |auch |so )*nicht\b(?! um)",
    r"\b(?:immer noch|weiterhin) (?:nicht|der(?:selbe)? fehler)|\bnicht geholfen",
    r"(?:^\W*|\b(?:eso|esto|así|todavía|aún|sigue|me) )no (?:me )?(?:funciona|funcionó|sirve|sirvió|ayuda|ayudó)\b"
    r"(?! (?:el|la|los|las|mi)\b)|\bsigue (?:sin|igual|fallando)|\bmismo error",
    r"\b(?:ça|cela) (?:ne |n['’]?)?(?:marche|fonctionne|aide|a)(?: toujours)? pas\b|\bmême erreur",
    r"(?:^\W*|\b(?:isso|isto|ainda) )não (?:me )?(?:funciona|funcionou|ajudou|resolveu)\b(?! (?:o|a|os|as|meu)\b)",
    r"\bcontinua (?:sem|igual|o mesmo)",
    r"\bне (?:помогло|помог|сработало|заработало)\b|(?:^\W*|\bвс[её] равно )не работает\b(?=\W*$)|та же ошибка",
    r"(?<!行)不行(?!不)|[没沒]有?用(?![过過户戶到])|还是(?:报错|失败|一样)",
    r"(?:^\W*|まだ|やはり|やっぱり)(?:動かない|動きません)|[ダだ][メめ]でした|解決しません",
)
_WORKED = _any(
    r"\b(?:that|this) (?:has |just |finally )?(?:worked|helped|(?:fixed|solved) (?:it|that|my|the)\b)"
    r"(?! (?:before|until|till|yesterday|earlier|except|only|on|in|with)\b)",
    r"\b(?:that|this|it) (?:now |finally )?(?:works|worked|helped|did it|fixed it|solved it)"
    r"(?=\W*$| (?:now|again|great|perfectly|for me|for us|like a charm|thank|thx)\b)",
    r"(?<!nothing )(?<!longer )(?<!never )\bworks (?:now|again|great|perfectly|like a charm)\b",
    r"\b(?:klappt|funktioniert|geht|läuft) (?:jetzt|nun|wieder)\b|\bhat geholfen",
    r"\b(?:ya|ahora) funciona\b|\bfuncionó\b|\bça (?:marche|fonctionne)\b|\b(?:agora funciona|funcionou)\b",
    r"\b(?:заработало|помогло)\b",
    r"解决了|解決了|(?<!不)可以了(?!解)|(?:解決しました|動きました)(?!ら)",
)
_THANKS = _any(
    r"\b(?:thanks|thank you|thx|tysm|tyvm|cheers)\b|^\W*ty(?=\W*$| (?:so|very)\b)",
    r"\b(?:danke|dankeschön|vielen dank|gracias|merci|obrigad[oa]|valeu|спасибо)\b",
    r"[谢謝]{2}|多[谢謝]|ありがと|助かりました",
)
_NO_THANKS = _any(
    r"\b(?:no|nein|non|não|нет),? (?:thank|thx|danke|merci|gracias|obrigad|спасибо)|不[谢謝]|不用",
    r"\b(?:anyway|for nothing|in advance|im voraus|de antemano|por adelantado|desde já|заранее)\b",
    r"\bd['’]avance\b|[先前][谢謝]",
)
_REQUESTS = _any(r"[?？؟请請]|\b(?:please|pls|plz|bitte|por favor|s['’]il (?:te|vous) pla[iî]t|пожалуйста)\b|お願い")
"""A request: the thanks behind it are for what is to come."""


def says_it_worked(text: str) -> bool | None:
    """Return whether a message says that something worked (True) or did not (False); None if it says neither.

    The last clause that says so counts, and more than thanks. Only clear words count: praise that is missed does less
    harm than praise that is read into a question.
    """
    if len(text) > MAX_THANKS_CHARS:
        return None
    worked: bool | None = None
    for clause in _CLAUSE.split(text):
        if not clause.rstrip().endswith(_QUESTION_ENDS):
            if _says(_FAILED, clause):
                worked = False
            elif _says(_WORKED, clause):
                worked = True
    return True if worked is None and _gives_thanks(text) else worked


def _says(words: re.Pattern[str], clause: str) -> bool:
    found = words.search(clause)
    return found is not None and _SUPPOSES.search(clause, 0, found.start()) is None


def _gives_thanks(text: str) -> bool:
    """Return False if the thanks are for what the text asks for in front of them."""
    found = _THANKS.search(text)
    if found is None or _NO_THANKS.search(text):
        return False
    before = text[: found.start()]
    return _REQUESTS.search(before) is None and not is_question(before)


# Doubts

_CONTRADICTS = _any(
    r"\b(?:no|nope|nah|not|never|cannot|none|nothing|wrong(?:ly)?|incorrect|untrue|false|mistaken?|actually|instead|rather"
    r"|still|anyway|however|careful|caution|beware|danger\w*|unsafe|insecure|harmful|destructive|(?:delet|wip|los|overwrit|eras)es"
    r"|lost|breaks|broken?|corrupts|crash(?:es|ed)?|fail(?:s|ed)?|outdated|obsolete"
    r"|deprecated|used to|unless|nonsense|(?:bad|terrible) (?:idea|advice)|correction|are you sure"
    r"|bricked|nuked|killed|formatted|hacked|scam|malware|worse|denied|404|(?:do|does|did|ca|wo|is|was)nt"
    r"|(?:will|would|could|may|might) (?:\w+ )?(?:delete|wipe|lose|overwrite|erase|break|corrupt|crash|fail|remove)"
    r"|(?:it|that|this|which) (?:\w+ )?(?:deleted|wiped|overwrote|erased|corrupted|removed)"
    r"|nicht|kein\w*|falsch|trotzdem|falso|pas|faux|não|errado|нет|не|неверно)\b|n['’]t\b|不|没|沒|違|ない",
)
_HARMS = _any(
    r"\b(?:errors?|refused|gone|dead|banned|charged|slower|virus|phishing|horrible|old version|older version|rip|wtf"
    r"|locked (?:me|us|out)|(?:charges|costs) (?:you|me|us|money)"
    r"|(?:removed|deleted|wiped|erased|overwrote) (?:all|my|our|the|everything))\b",
)
"""Words for harm that came of following an answer. The team says them in additions, too."""
_REFERENCES = frozenset({"that", "this", "these", "those", "it", "they", "them", "you", "your"})
_FIRST_WORDS = 5
"""In so many words at the beginning, a sentence refers to what it is about, or says that it adds something."""
_AGREES = lazy_pattern(
    r"(?<!\w)(?:yes|yep|yeah|yup|right|exactly|correct|indeed|agreed|true|same(?:\s(?:here|for\sme))?|me\stoo|ok(?:ay)?|a+h+|oh+|i\ssee"
    r"|got\sit|gotcha|understood|(?:that\s)?makes\ssense|good\s(?:to\sknow|answer|one|point|catch)|will\s(?:do|try)|done|this|that|nice|cool|great"
    r"|perfect|awesome|sounds\sgood|ja|genau|sí|oui|sim|да)(?!\w)",
    re.IGNORECASE,
)
_ADDS = _begins(
    r"(?:and|plus|additionally|furthermore|btw|by\sthe\sway|fyi|in\saddition|see|here|there(?:['’]s|\sis|\sare)"
    r"|(?:(?:the|our)\s)?docs|more|yes|yep|yeah|right|exactly|indeed|agreed|\+1|i\sagree|works\sfor\sme|https?://)(?!\w)",
)
_INTERJECTION = _begins(r"(?:hm+|uh+|um+|oh|ah|wait|sorry|well|hey|hold\son|please|edit(?=\s?:))(?!\w)")
_CORRECTS = _begins(
    r"(?:no|nope|nah|wrong|incorrect|actually|careful|beware|caution|correction|(?:do\snot|don['’]?t|never)"
    r"(?!\s(?:forget|worry|hesitate))|scratch\sthat"
    r"|not\s(?:quite|really|exactly|any\s?more|true|right|correct|so|sure)|nein|falsch|non|faux|não|нет)\b(?!\s(?:problem|worries|need))",
    r"(?:that|this|it)(?:['’]s|\sis|\swas)\s(?:not|wrong|incorrect|outdated|deprecated|obsolete|no\slonger|dangerous|risky|unsafe"
    r"|(?:for\s)?(?:an?|the)\s(?:old|older|other|wrong|previous))\b",
    r"(?:that|this|it)\s(?:won['’]t|will\snot|does\s?n[o'’]t|only|used\sto|deletes|wipes|breaks)\b",
)
_TAKES_BACK = _begins(
    # "Wait!", but not "Wait until it is green, …". "Stop!", but not "Stop it, …".
    r"(?:wait|hold\s(?:on|up)|hang\son)(?:\s(?:a|one)\s(?:sec(?:ond)?|moment|min(?:ute)?))?"
    r"(?=\W*$|\s?[!…]|[,.:;…-]+\s(?!(?:and|then|until|till)\b)|\s(?:no|nope|that|this|it|i|you|actually)\b)",
    r"(?:wait\s)?stop(?=\W*$|\s?[,!:…-])",
    r"(?:ignore|forget|disregard|scratch|strike|cancel)\s(?:about\s)?(?:(?:that|this|it)(?=\W*$|\s?[,.:;!…-]"
    r"|\s(?:one|message|answer|please|i)\b)|what\si\b|my\s|(?:the\s)?(?:above|last\s|previous\s)|everything\si\b|all\sthat\b)",
    r"(?:scratch|strike)\s(?:that|this|it)\b|disregard\b|never\s?mind\b|nvm\b|(?:w?oops)\b|on\ssecond\sthought",
    r"my\s(?:bad|mistake|fault|error)\b|i\s(?:misread|misunderstood|mistyped|misspoke|made\sa\smistake|meant|take\s(?:that|it)\sback"
    r"|(?:was|am)\s(?:wrong|mistaken|not\ssure)|got\s(?:that|it)\swrong|mixed\s(?:that|it|this)\sup|confused)\b",
    r"i['’]m\s(?:wrong|mistaken|not\s(?:so\s)?sure)\b|(?:better|rather)\snot\b",
    r"(?:that|this|it)\s(?:(?:might|may|could)\s(?:not|be\swrong)|did\s?n[o'’]t\s(?:work|help))\b",
    r"(?:that|this|the)\s(?:answer|advice|command|one|above|\w+\sabove)\s(?:is|was)\s(?:not|wrong|incorrect|outdated)\b",
    r"(?:let\sme|lemme|i(?:['’]ll|\swill|['’]d\sbetter|(?:['’]ll|\swill)?\s(?:need|have)\sto|\sshould))\s(?:(?:just|quickly|first|better)\s){0,4}"
    r"(?:(?:double|re)[\s-]?)?(?:check|verify|confirm|test|look|see|think|read|ask)\b",
    r"(?:warte|moment\smal|stopp|vergiss\s(?:das|es)|ich\sschaue?\snochmal)\b(?!\s(?:bis|auf))",
    after=r"(?:(?:oh|ah|hm+|uh+|um+|er+m?|ok(?:ay)?|sorry|well|hey|please|pls|just|but|and|so|actually|wait|no)\b\W{0,6}){0,8}",
)
"""Beginnings of a message that takes an answer back, or puts it off, right behind it."""
_ACCEPTS = _any(
    r"^\W*(?:ok(?:ay)?|ah+|oh+|alright|i\ssee|got\sit|gotcha|understood|yes|yep|yeah|then|(?:i|we)['’]?ll|(?:i|we)\swill"
    r"|let\s(?:me|us)|gonna|going\sto|will|(?:i['’]?m\s|i\sam\s)?(?:trying|testing|updating|restarting|on\sit))\b",
    r"\b(?:by\sthe\sway|btw|fyi|works?|working|worked|solved|fixed|found\sit|did\s(?:it|the\strick)|helped|helpful"
    r"|that\swas\sit|my\s(?:bad|mistake|fault)|i\s(?:forgot|missed|overlooked|misread)|typo|perfect|great|awesome|good"
    r"|nice|cool|lovely|appreciated?|thank\w*)\b",
)
"""Signs that the asker takes an answer: they see, they try it, they name the cause, they praise it."""
_SAYS_NO = lazy_pattern("[👎❌🚫⛔🛑]")
_NAME = lazy_pattern(rf"^\s*@?(?!(?i:{_NOT_NAMES})\b)[A-Z][\w-]{{1,30}},\s+(?=\S)")
"""The name of a colleague with which a message opens: "Kim, …"."""
_BUT = lazy_pattern(r"\b(?:but|however|although|except|aber|pero|mais|mas|но)\b", re.IGNORECASE)


def may_doubt(text: str, *, is_clear: bool = False) -> bool:
    """Return whether what a user says about an answer may doubt it: that it did not work; a statement, or a report of
    trouble, that contradicts; a question that does so and begins with a reference to it; in thanks, what follows "but".
    `is_clear`: only what says that it did not work, and what `corrects`, which are clear in themselves.
    """
    worked = says_it_worked(text)
    if worked is False or _SAYS_NO.search(text):
        return True
    if worked:
        return any(bool(statements(each)) or may_doubt(each) for each in _BUT.split(text, maxsplit=1)[1:])
    if is_clear:
        return corrects(text)
    if text.rstrip(_CLOSING_MARKS).endswith(_QUESTION_ENDS) or asking_sentences(text)[0]:
        return _contradicts(text) and not _REFERENCES.isdisjoint(_first_words(text))
    harms = _HARMS.search(text) is not None and _ACCEPTS.search(text) is None
    return (_contradicts(text) or harms) and not _only_agrees(text)


def reply_may_doubt(text: str) -> bool:
    """Return whether what a user says in reply to an answer may doubt it: any statement, but for thanks, agreement,
    additions, and what accepts it.
    """
    if may_doubt(text):
        return True
    if not statements(text) or asking_sentences(text)[0] or is_formality(text) or says_it_worked(text):
        return False
    return not (_only_agrees(text) or _adds(text) or _ACCEPTS.search(text))


def may_correct(text: str) -> bool:
    """Return whether what the team says in reply to an answer may correct it, or takes it back. False for an addition
    ("also see the docs"), agreement and courtesy.
    """
    if takes_back(text) or _SAYS_NO.search(text):
        return True
    if says_it_worked(text) or _only_agrees(text) or is_formality(text):
        return False
    if not statements(text):
        return _contradicts(text) and text.rstrip(_CLOSING_MARKS).endswith(_QUESTION_ENDS)
    return _contradicts(text) or not _adds(text)


def corrects(text: str) -> bool:
    """Return whether a message begins by denying what was said before it ("no, use …")."""
    while interjection := _INTERJECTION.match(text):
        text = text[interjection.end() :]
    return _CORRECTS.match(text) is not None


def takes_back(text: str) -> bool:
    """Return whether what the team says right after an answer takes it back ("scratch that", "wait!"), corrects it, or
    says that it has yet to be checked. False for what goes on with it ("don't forget to …", "wait until …").
    """
    said = (text, _without_addressee(text), _NAME.sub("", text))
    return any(corrects(each) or bool(_TAKES_BACK.match(each)) for each in said)


def _adds(text: str) -> bool:
    words = _first_words(text)
    return bool(_ADDS.match(text)) or "also" in words or {"as", "well"} <= set(words)


def _first_words(text: str) -> list[str]:
    return [found[0].lower() for found in itertools.islice(_WORD.finditer(text), _FIRST_WORDS)]


def _only_agrees(text: str) -> bool:
    return _WORD.search(_AGREES.sub(" ", text)) is None


def _contradicts(text: str) -> bool:
    return _CONTRADICTS.search(text) is not None
