"""Reads the wording of a message: whether it asks for help, what to search for, and what an answer must contain."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from services import lazy_pattern
from services.search.languages import ENGLISH, language_of
from services.search.tokenizer import STOP_WORDS, terms

_GREETING_LINE_CHARS = 400
_MOST_GREETINGS = 4  # in a row: "@bot hey, good morning all!"

_OPENING_GREETING = lazy_pattern(
    r"""(?:(?:hi+|hey+|hello+|hiya|howdy|yo|greetings|good\ (?:morning|evening|afternoon|day)|quick\ question
      |hallo|moin|servus|guten\ (?:tag|morgen|abend)|bonjour|bonsoir|salut|coucou|hola|buenas|buen(?:os|as)\ (?:d[ií]as
      |tardes|noches)|ol[aá]|oi|bom\ dia|boa\ (?:tarde|noite)|привет|здравствуйте|добрый\ (?:день|вечер|утро))
      (?:\ (?:there|all|everyone|everybody|guys|folks|team|again|zusammen|alle|allerseits|à\ tous|tout\ le\ monde
      |a\ todos|pessoal|всем))?(?=[\s,.!?:;…]|$)(?!\ world\b)
      |(?:你好|您好|大家好|こんにちは|こんばんは|おはようございます)
      |@\S{1,80}(?=\s))
      [\s,.!?:;…。！，、]{0,9}""",
    re.IGNORECASE | re.VERBOSE,
)
_ANY_WORD = lazy_pattern(r"\w")


def without_greeting(text: str) -> str:
    """Return `text` without the greeting it opens with; unchanged if it is nothing but a greeting."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        rest = line[:_GREETING_LINE_CHARS].strip()
        for _ in range(_MOST_GREETINGS):
            found = _OPENING_GREETING.match(rest)
            if found is None:
                break
            rest = rest[found.end() :]
        if _ANY_WORD.search(rest):
            return "\n".join([rest + line[_GREETING_LINE_CHARS:], *lines[number + 1 :]])
    return text


EARLIER_QUESTION = "Before: "
"""Opens the line of a query that repeats an earlier question."""

_NOISE = lazy_pattern(r"\[(?:image|file): [^\]\n]{0,1000}\]|(?<!\S)@[\w.-]+(?!\S*/)")

_ADDRESS = lazy_pattern(r"https?://\S+")
_NOT_PROSE = lazy_pattern(
    r"```.*?(?:```|\Z)|`[^`\n]*`|https?://\S+|^[ \t]*>[^\n]*|\[(?:image|file): [^\]]{0,1000}\]",
    re.DOTALL | re.MULTILINE,
)
_SENTENCE = lazy_pattern(r"(?<=[.!?؟])\s+|(?<=[。！？])|\n+|\s[-–—]\s|;\s")
_CLAUSE = lazy_pattern(r",\s+(?:and\s+|but\s+|so\s+)?")
_GREETING = lazy_pattern(
    r"^(?:(?:hi+|hey+|hello+|yo|good (?:morning|evening|afternoon|day)|greetings|thanks?|thank you|thx|ok(?:ay)?|so"
    r"|well|um+|and|but|also|btw|oh|hm+|sorry|please|quick question|question|ah+|yeah|yes|no)\b"
    r"(?: (?:there|all|everyone|everybody|guys|folks|team|again|so much|a lot|in advance))?[\s,.!:…-]*|@\S+\s+)+",
    re.IGNORECASE,
)

_ASKS = lazy_pattern(
    r"""^(?:
      how\s+(?:do|does|did|can|could|to|should|would|come|much|many|long|often|big|is|are|am|will)\b
    | what(?:'s|’s|\s+(?:is|are|does|do|did|was|happens|happened|should|would|could|can|if|about|version|kind|else))\b
    | what\s+\w+(?:\s+\w+)?\s+(?:is|are|do|does|can|should|will|must)\b
    | (?:where|why|when|who|whom|whose)(?:'s|’s|\s+(?:is|are|do|does|did|can|could|should|would|will|was|were|am|isn|don
        |doesn|won|to|has|have)\b)
    | which\s+(?!is\b|was\b|means\b)\w+
    | (?:can|could|does|should|would)\s+(?!you\b|be\b|have\b)[\w.-]+\s+\w+
    | (?:is|are|was|were)\s+(?:there|it|this|that|the|any|my|these|those|anyone|anybody|someone)\b
    | (?:can|could|may|should|shall|must|do|does|did|will|would|has|have)(?:n['’]t)?\s+
        (?:i|we|it|the|this|that|these|they|someone|somebody|anyone|anybody|my|one|people)\b
    | (?:can|could|would|will)\s+you\s+(?:please\s+|pls\s+)?(?:help|tell|explain|show|point|clarify|share|give|advise)\b
    | do\s+you\s+(?:know|have)\s+(?:how|if|why|what|where|whether|when|any|an?\s+(?:idea|example|guide))\b
    | any(?:body|one)?\s+(?:idea|ideas|way|chance|tips?|help|hints?|suggestions?|advice|pointers?|guides?|docs|examples?
        |know|knows|else|have|had|seen|can|got|using|experience)\b
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_SEEKS = lazy_pattern(
    r"""\b(?:
      how\s+(?:do|can|could|should|would)\s+(?:i|we|you|one)
    | (?:wondering|know|unsure|sure|understand|figure\s+out|explain|confused\s+about|find\s+out|tell\s+me)\s+
        (?:how|why|if|whether|what|where|which|when)
    | (?:i|we)(?:['’]m|['’]re|\s+am|\s+are)?\s+(?:currently\s+|just\s+|still\s+)?
        (?:trying|struggling|looking|attempting)\s+(?:to|for|with)
    | (?:i|we)(?:['’]d|\s+would)?\s+(?:need|want|like)\s+(?:some\s+)?(?:help|to\s+know|advice|support|an?\s+way)
    | (?:need|some)\s+help | help\s+(?:me|with|please) | please\s+help | stuck\s+(?:on|at|with|in|trying)
    | is\s+it\s+possible | any\s+ideas? | what(?:['’]s|\s+(?:is|are|does))\s+(?:that|it|this|the)
    )\b""",
    re.IGNORECASE | re.VERBOSE,
)
_REPORTS = lazy_pattern(
    r"""\b(?:
      (?:can['’]?t|cannot|can\s+not|couldn['’]?t|could\s+not|unable\s+to|not\s+able\s+to|failing\s+to|failed\s+to
        |fails\s+to)
    | (?:doesn['’]?t|does\s+not|don['’]?t|isn['’]?t|is\s+not|not|stopped|never|won['’]?t|wont|will\s+not|didn['’]?t)\s+
        (?:\w+\s+)?(?:work|start|load|connect|install|show|appear|run|respond|find|build|compile|boot|open|update|detect
        |recogni[sz]e|accept|sync|save|send|receive|finish|stop|upload|download|play|log|refresh|render|scan|print|trigger
        |fire|apply|persist|close|restart|wake|let|allow|go|come|boot|mount|resolve|authenticate|match|change|get)
        (?:ed|s|ing|ning|ting|d)?
    | (?:i|we)\s+(?:have\s+|just\s+)?(?:forgot|forgotten|lost)
    | (?:fails|failed|crash(?:es|ed|ing)?|hangs|freezes|timed?\s+out|times\s+out|segfaults?|panic(?:s|ked))
    | keeps?\s+(?:on\s+)?\w+ing
    | (?:get|gets|getting|got|see|seeing|throws|throwing|gives|giving|shows|says|receiv\w+
        |return(?:s|ed|ing)?|with|an|this)\s+(?:an?\s+|the\s+|this\s+|me\s+|following\s+|[\w-]+\s+){0,4}
        (?:errors?|exception|traceback|warning|code)
    | error(?:\s+code|\s+message)?\s*[:#]\s*\S | exited?\s+with | exception: | traceback | stack\s*trace
    | (?:problems?|issues?|trouble|errors?)\s+(?:with|when|while|after|installing|connecting|running|getting|starting)
    | (?:is|are|was|got|gets)\s+(?:broken|missing|stuck|rejected|denied|refused|empty|blank|not\s+\w+ed)
    )""",
    re.IGNORECASE | re.VERBOSE,
)

_SOLVED = lazy_pattern(
    r"""\b(?:
      (?:it|that|this|everything|all)(?:['’]s)?\s+(?:now\s+)?(?:works?|worked|working|fixed|solved|did\s+it|helped)\b
    | works?\s+(?:now|fine|again|great|perfectly)(?!\s+(?:in|on|with|for|as|from|when|if|without|locally|here|until))
    | working\s+(?:now|again) | (?:i|we|just|finally)\s+(?:\w+\s+)?
        (?:fixed|solved|figured|found)\s+(?:it|that|this|the\s+\w+|out) | nvm | never\s*mind | got\s+it
    | no\s+longer\s+(?:crash|fail|hang)\w*
    | problem\s+solved | solved | fixed\s+(?:now|it)
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_ADVISES = lazy_pattern(
    r"""^(?:you\s+(?:can|could|should|need|have\s+to|must|might|may|want|just|would|will|don)|try\s|have\s+you\s+tried|just\s+\w+
      |make\s+sure|check\s|i\s+(?:would|suggest|recommend|think|guess|believe|fixed|solved)|if\s+you\b|see\s|look\s+(?:at|in)
      |(?:have|had|did|were|was|are)\s+you\b|do\s+you\s+(?!know|have|guys|support|offer)
      |what\s+(?:\w+\s+){0,2}(?:are|do|did|were|have)\s+you\b|what(?:'s|\s+is)\s+your\b|can\s+you\s+(?:try|send|post|paste|run|check)
      |could\s+you\s+(?:try|send|post|paste|run|check)|(?:it|that|this)\s+(?:works|worked)\s+for\s+me)""",
    re.IGNORECASE | re.VERBOSE,
)
_SMALL_TALK = lazy_pattern(
    r"""\b(?:how\s+(?:are|is|was)\s+(?:you|u|it\s+going|everyone|everybody|life|your|the\s+weekend)|what(?:['’]?s|\s+is)\s+up
      |how\s+(?:have\s+you\s+been|do\s+you\s+do)|(?:any(?:body|one)|somebody|someone)\s+(?:here|there|around|awake|home|alive)\s*(?:\?|$)
      |who(?:['’]?s|\s+is|\s+are)\s+(?:here|there|you|coming|going\s+to\s+the)|are\s+you\s+(?:a\s+bot|serious|kidding|real|there)
      |can\s+i\s+ask|what\s+do\s+you\s+(?:think|mean|do)|where\s+are\s+you|what\s+a\s+\w+|who\s+cares|why\s+not|guess\s+what
      |you\s+know\s+what|isn['’]t\s+it|right\s*\?|what\s+time|see\s+you|happy\s+\w+day)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_WISHES = lazy_pattern(
    r"""\b(?:i\s+wish|if\s+only|(?:would|['’]d)\s+be\s+(?:so\s+)?(?:nice|great|cool|awesome|neat)|long\s+live|can['’]?t\s+wait
      |looking\s+forward|(?:i|we)(?:['’]ve|\s+have)?\s+(?:just\s+)?(?:made|built|did|decided|moved|always\s+thought)|i\s+(?:love|like|hate|prefer|agree|think|guess|believe|suppose|bet|doubt|assumed?|always\s+thought))\b""",
    re.IGNORECASE | re.VERBOSE,
)
_REPLIES = lazy_pattern(
    r"^(?:yes|yeah|yep|yup|no|nope|nah|sure|actually|right|exactly|true|agreed|indeed|because|it\s+depends|i\s+agree"
    r"|fair\s+enough|ignore\s+my|never\s*mind)\b",
    re.IGNORECASE,
)
_REMARKS = lazy_pattern(
    r"\W*(?:unfortunately|sadly|luckily|fortunately|apparently|obviously|technically|basically|honestly|interesting(?:ly)?"
    r"|speaking of|fyi|afaik|iirc|imo|imho|btw|lol|lmao|haha+"
    r"|phew|yay|hooray|finally|ok(?:ay)?|rofl|wow|oh+|ah+|hm+|well|but|though|still|also|plus|or"
    r"|and|so|then|maybe|perhaps|probably|cool|nice|great|good|cheers|welcome|done|just|like|it|that|this|they|he|she"
    r"|there|these|those|same|which|what|who)\b",
    re.IGNORECASE,
)
_NEEDS = lazy_pattern(
    r"\b(?:wants?|needs?|trying|tried|should|must|has to|have to|would like|looking for|how)\b", re.IGNORECASE
)
_TROUBLE = lazy_pattern(
    r"\b(?:\w+n['’]t|arent|isnt|doesnt|dont|wont|cant|never|always|although|even though|instead|wrong|broken?|breaks?"
    r"|dies?|died|denied|refused|rejected|fail(?:s|ed|ing)?|errors?|missing|lost|gone|stuck|hangs?|slow|crash(?:es|ed)?"
    r"|warnings?|timeout|times out|unknown|locked|nothing happens)\b",
    re.IGNORECASE,
)
_STATES = lazy_pattern(
    r"^\W*(?:the|an?|some|most|all)\b|\b(?:is|are|was|were|am|be|been|has|have|had|does|do|did|will|would|can|could|may|might|means?|seems?"
    r"|\w+['’](?:s|re|ve|ll|d|m))\b",
    re.IGNORECASE,
)
"""Verbs of statements, and words that statements begin with."""
_CONTINUES = lazy_pattern(
    r"""(?:(?:ok(?:ay)?|thanks?|thank\s+you|great|cool|nice|hm+|oh|ah)[\s,.!]+)*
        (?:(?:what|how)\s+about\b
        |(?:and|but|or|so|then|also|same|even|only|on|for|with|in|without)\b[^?]{1,160}\?)""",
    re.IGNORECASE | re.VERBOSE,
)
_ADDRESSEE = lazy_pattern(
    r"^@?(?!\w*(?:error|warning|exception)\b|(?:question|problem|issue|traceback|fatal|panic|help)\b)[a-z][\w-]{2,24}:\s",
    re.IGNORECASE,
)
_FIRST_PERSON = lazy_pattern(r"\b(?:i|i['’]?m|i['’]?ve|i['’]?d|my|mine|me|we|we['’]re|our|us|im|ive)\b", re.IGNORECASE)
_ABOUT_THEMSELVES = lazy_pattern(r"\b(?:i|we|i['’]?m|i['’]?ve|i['’]?d|we['’]re|we['’]ve|im|ive)\b", re.IGNORECASE)
_SECOND_PERSON = lazy_pattern(r"\b(?:you|your|you['’]re|yours|u|ur)\b", re.IGNORECASE)
_ERROR = lazy_pattern(
    r"\b\w*(?:Error|Exception|Warning)\b\s*:|\b(?:error|warning|fatal|panic|traceback)\b\s*[:(]|\b[45]\d\d\b",
    re.IGNORECASE,
)
_SHORT_QUESTION = lazy_pattern(
    r"(?:(?:but|and|so)\s+)?(?:how|why|where|what now|wtf|possible|any(?:one|body)?(?:\s+ideas?|\s+else)?|ideas?"
    r"|thoughts|is that|right|help)\W*|\w+(?:\s\w+)?\?+",
    re.IGNORECASE,
)
_MIN_REPORT_TERMS = 6
_MIN_KEYWORD_TERMS = 3
_MIN_SUBJECT_TERMS = 2
_MIN_WORDS = 3
_QUESTION_MARKS = ("?", "？", "؟", "՞")
_UNFINISHED_ENDS = ("..", "…", ":", ",", ";", "-", "–", "—", "(", "：", "，", "、", "；", "،", "؛")
_WORDS_THAT_ASK = lazy_pattern(
    r"""(?:^|[,:]\s*)(?:
      (?:wie|warum|wieso|weshalb|wo|woher|wohin|welche[rsnm]?|kann\s+(?:ich|man)|gibt\s+es|muss\s+ich
        |wei(?:ß|ss)\s+jemand|hat\s+jemand)
    | (?:c[oó]mo|por\s*qu[eé]|qu[eé]\s+\w+|cu[aá]l(?:es)?|d[oó]nde|cu[aá]ndo|se\s+puede
        |hay\s+(?:alguna|forma|manera)|alguien\s+sabe)
    | (?:comment|pourquoi|quel(?:le)?s?|o[uù]|quand|est[\s-]ce\s+qu\w*|c['’]est\s+quoi|y\s+a[\s-]t[\s-]il
        |quelqu['’]un\s+sait)
    | (?:como|por\s*que|qual|quais|onde|quando|d[aá]\s+para|tem\s+como|algu[eé]m\s+sabe)
    | (?:как|почему|зачем|где|когда|какой|какая|какие|можно\s+ли|есть\s+ли|кто[\s-]нибудь|подскажите|что\s+делать)
    )(?!\w)""",
    re.IGNORECASE | re.VERBOSE,
)
# In Chinese, `A不A` asks yes or no: 会不会, 是不是, 可不可以.
_CHARACTERS_THAT_ASK = lazy_pattern(
    r"怎么|怎麼|怎样|怎樣|如何|为什么|為什麼|什么|什麼|为啥|啥|咋|多少|哪里|哪裡|哪个|哪個|哪些|是否|能否|可否|(?P<a>[^\W不])不(?P=a)"
    r"|可以.{0,20}吗|有没有|有沒有|[吗嗎呢]\s*$|どう|なぜ|何故|どこ|どれ|何を|ですか|ますか|でしょうか|方法|어떻게|왜|어디|무엇|나요|까요|อย่างไร|ทำไม|ยังไง"
)
_ALPHABETIC = lazy_pattern(r"[a-zа-яёà-ÿ]", re.IGNORECASE)
_UNSPACED = lazy_pattern(r"[\u0e01-\u0e3a\u3041-\u30fa\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_WORD = lazy_pattern(r"[^\W_]+")


def words_to_search(text: str) -> str:
    """Return the words to search for: without greeting, placeholders of attachments, names of people and addresses."""
    return without_greeting(_ADDRESS.sub(" ", _NOISE.sub(" ", text.replace(EARLIER_QUESTION, ""))).strip())


def current_question(text: str) -> str:
    """Return the current question, without earlier ones, attachment placeholders and names of people."""
    lines = (line for line in text.split("\n") if not line.startswith(EARLIER_QUESTION))
    return _NOISE.sub(" ", "\n".join(lines)).strip()


def may_ask(text: str) -> bool:
    """Return whether `text` may ask although it is not put as a question: a report of trouble ("404 handler on my
    blueprint is never called"), a need ("ci should fail below 80"), or keywords as typed into a search ("wildcard
    certificate for subdomains"). False for advice and replies to others, solved problems, statements, opinions and
    wishes.
    """
    prose = _prose(text)
    if _SOLVED.search(prose) or _SECOND_PERSON.search(prose) or _ADDRESSEE.match(prose) or _is_wish_or_reply(prose):
        return False
    if any(map(_ADVISES.match, _sentences(prose))):
        return False
    count = len(set(terms(words_to_search(text))))
    wants = bool(_NEEDS.search(prose) or _TROUBLE.search(prose))
    if count >= _MIN_REPORT_TERMS and (_ERROR.search(text) or (wants and _FIRST_PERSON.search(prose))):
        return True
    if count < _MIN_KEYWORD_TERMS or _ADDRESS.search(text) or _REMARKS.match(prose):
        return False
    return wants or not (_STATES.search(prose) or _ABOUT_THEMSELVES.search(prose))


def asks_for_something(text: str) -> bool:
    """Return whether a message to the bot has a subject, if only in keywords: it is neither thanks nor a greeting."""
    sentences = _sentences(_prose(text))
    if any(_SOLVED.search(sentence) or _SMALL_TALK.search(sentence) for sentence in sentences):
        return False
    return len(set(terms(words_to_search(" ".join(sentences))))) >= _MIN_SUBJECT_TERMS


def is_question(text: str) -> bool:
    """Return whether `text` asks for help or reports a problem, which thanks, chatter and advice to others do not."""
    prose = _prose(text)
    addressee = _ADDRESSEE.match(prose)
    if addressee:
        prose = prose[addressee.end() :]
    sentences = _sentences(prose)
    if any(_is_asking(sentence) for sentence in sentences):
        return True
    # "possible?", "how", "any ideas" ask about the text before them.
    if _SHORT_QUESTION.fullmatch(sentences[-1].strip()) and len(set(terms(prose))) >= _MIN_REPORT_TERMS:
        return True
    # A statement addressed to somebody by name, or one that replies, is help for them.
    if addressee or _is_wish_or_reply(prose) or _SOLVED.search(prose) or any(map(_ADVISES.match, sentences)):
        return False
    return any(_SEEKS.search(sentence) or _REPORTS.search(sentence) for sentence in sentences)


def looks_finished(text: str) -> bool:
    """Return whether the author of `text` seems to have asked everything, so that an answer need not wait for more.

    The last sentence has to ask: after a report of trouble, or a question with an explanation below it, people go on.
    False for a greeting, an open code block, and an end such as "I tried this:".
    """
    said = text.rstrip()
    if said.endswith(_UNFINISHED_ENDS) or said.count("```") % 2 or not _WORD.search(_GREETING.sub("", _prose(said))):
        return False
    if said.endswith(_QUESTION_MARKS):
        return is_question(said) or is_follow_up(said) or asks_for_something(said)
    sentences = [each for sentence in _SENTENCE.split(_prose(said)) if (each := sentence.strip()) not in {"", "x"}]
    return bool(sentences) and _is_asking(_GREETING.sub("", sentences[-1]))


def asking_sentences(text: str) -> tuple[list[str], list[str]]:
    """Return the sentences of `text` that ask, and all others, including links, code and quotations."""
    asking: list[str] = []
    others: list[str] = []
    for sentence in filter(str.strip, _SENTENCE.split(text)):
        (asking if _is_asking(_GREETING.sub("", _prose(sentence))) else others).append(sentence)
    return asking, others


def is_follow_up(text: str) -> bool:
    """Return whether `text` continues an earlier question: "and on Windows?"."""
    return bool(_CONTINUES.match(_prose(text)))


def _is_wish_or_reply(prose: str) -> bool:
    """Return True if a text states a wish, an opinion, or replies to somebody."""
    return bool(_WISHES.search(prose) or _REPLIES.match(prose.lstrip("( ")))


def _prose(text: str) -> str:
    """Return `text` with an "x" in the place of each piece of code, link and quotation."""
    return _NOT_PROSE.sub(" x ", text).strip()


def _sentences(prose: str) -> list[str]:
    """Return the sentences without the greetings that they open with."""
    return [_GREETING.sub("", sentence.strip()) for sentence in _SENTENCE.split(prose)]


def _is_asking(sentence: str) -> bool:
    if _CHARACTERS_THAT_ASK.search(sentence):
        return True
    # Scripts without blanks have no words to count: a question mark at the end is enough.
    if sentence.endswith(_QUESTION_MARKS) and (_UNSPACED.search(sentence) or not _ALPHABETIC.search(sentence)):
        return True
    if not _ALPHABETIC.search(sentence):
        return False
    if _ADVISES.match(sentence) or _SMALL_TALK.search(sentence) or len(_WORD.findall(sentence)) < _MIN_WORDS:
        return False
    asked = sentence.endswith(_QUESTION_MARKS) or "¿" in sentence or bool(_WORDS_THAT_ASK.search(sentence))
    return asked or any(_ASKS.match(clause) for clause in _CLAUSE.split(sentence))


_UNITS = r"(?:milli|micro)?(?:sec(?:ond)?|minute|min|hour|day|week|month|year)s?"
_NUMBER_WORDS = "one|two|three|four|five|ten|no|unlimited|any"
_FIGURES = (
    (
        lazy_pattern(
            r"\bhow\s+(?:long|often|old)\b|\b(?:time-?out|interval|lifetime)\b.{0,40}\bdefault", re.IGNORECASE
        ),
        lazy_pattern(
            rf"\d\s*(?:ms|s|m|h|d|{_UNITS})\b|\b(?:a|an|one|two|three|every|each|per|in)\s+{_UNITS}\b"
            rf"|\b(?:daily|weekly|hourly|monthly|forever|never|immediately|{_UNITS})\b|\b(?:timedelta|until|till|(?:19|20)\d\d\b)",
            re.IGNORECASE,
        ),
    ),
    (
        lazy_pattern(
            r"\b(?:which|what|minimum|min|lowest|latest|newest|oldest)\s+(?:\w+\s+){0,2}(?:versions?|numbers?|limits?)"
            r"|\bhow\s+(?:many|much)\b|\bmax(?:imum)?\s+(?:number|length)|\bsince\s+which\b",
            re.IGNORECASE,
        ),
        lazy_pattern(rf"\d|\b(?:{_NUMBER_WORDS})\b", re.IGNORECASE),
    ),
    (
        lazy_pattern(r"\bhow\s+(?:large|big)\b|\bmax(?:imum)?\s+size\b", re.IGNORECASE),
        lazy_pattern(
            r"\d\s*(?:[kmgt]i?b?|b|bytes?|(?:kilo|mega|giga|tera)bytes?|char(?:acter)?s?|lines|pixels|px|%)(?!\w)"
            r"|\d\s*\*\s*\d|\b(?:no|any|unlimited)\b",
            re.IGNORECASE,
        ),
    ),
    (
        lazy_pattern(r"\b(?:which|what)(?:['’]s|\s+(?:is|are))?\s+(?:the\s+)?(?:\w+\s+){0,2}ports?\b", re.IGNORECASE),
        lazy_pattern(r"(?<![\w.])\d{2,5}(?!\w|\.\d)"),
    ),
    (
        lazy_pattern(
            r"\bwhen\s+(?:will|is|does|do|can)\b.{0,80}\b(?:come|comes|coming|out|released?|land|ship|available|expected|planned)\b"
            r"|\brelease\s+date\b",
            re.IGNORECASE,
        ),
        lazy_pattern(
            r"\b(?:19|20)\d\d\b|\b(?:january|february|march|april|may|june|july|august|september|october|november|december)\s+\d",
            re.IGNORECASE,
        ),
    ),
)
"""Pairs of patterns: a question for a figure, and a text that has such a figure."""
_NAMES = lazy_pattern(
    r"(?<![\w.-])(?:--[a-z][\w-]+|[A-Z]{1,8}[-_]?\d{2,}|v?\d+\.\d+(?:\.\d+)*|[A-Za-z]\w*_\w+|\w+::\w+|\w[\w.]{2,}\(\))"
)
"""In a question: options, error codes, versions, identifiers and calls."""
_VERSION_OF = lazy_pattern(
    r"\bversions?\s+of\s+(?:the\s+)?([\w.+#-]{2,40})"
    r"|\b(?:which|what|minimum|min|lowest|latest|newest|oldest)\s+([\w.+#-]{2,40})\s+versions?\b",
    re.IGNORECASE,
)
_NO_PRODUCT = frozenset({"the", "this", "that", "it", "its", "your", "minimum", "lowest", "latest", "newest", "oldest"})
_HOW_MANY = lazy_pattern(r"\bhow\s+many\s+((?:[a-z]{2,40}\s+){0,4}[a-z]{2,40})", re.IGNORECASE)
_NOT_COUNTED = frozenset(
    [
        *("of", "the", "an", "my", "our", "your", "more", "other", "different", "times", "in", "on", "per", "at", "to"),
        *("do", "does", "did", "can", "could", "is", "are", "was", "were", "should", "will", "would", "may", "must"),
        *("has", "have", "you", "we", "they", "there", "that"),
    ]
)
"""Words behind "how many" that name nothing: "how many of my folders", "how many can I have"."""
_NUMBER_WITHIN = 48
"""Characters between a thing and its number: "at most 40 agents", "Agents: 40"."""
_NUMBER = lazy_pattern(rf"(?<![\d.])\d+(?!\.?\d)|\b(?:{_NUMBER_WORDS})\b", re.IGNORECASE)
_DIGIT_WITHIN = 24
"""Characters from the name of a product to its version: "Python >= 3.9", "Node.js, version 20"."""
_INTRODUCTION = lazy_pattern(
    r"(?:introduction|intro|overview|welcome\b.*|(?:table of )?contents|getting started|get started|quick ?start|about)"
    r"[\W_]*",
    re.IGNORECASE,
)
_GENERAL_QUESTION = lazy_pattern(
    r"\bwhat(?:['’]?s| is| are| does)\b|\b(?:introduction|overview|summary|begin|beginner|start(?:ed|ing)?|new to)\b",
    re.IGNORECASE,
)


class Requirements(NamedTuple):
    """The contents that a text needs to answer a question.

    Attributes:
        figures: patterns of a time, a version, a port or a limit, each of which has to match.
        names: options, error codes and identifiers in the question, in lower case; one of them is enough.
        versions_of: products whose version is asked for, in lower case; each needs one.
        counted: beginnings of the words for the things that are counted; one of them needs a number.
    """

    figures: tuple[re.Pattern[str], ...]
    names: frozenset[str]
    versions_of: frozenset[str]
    counted: frozenset[str]


def requirements_of(question: str) -> Requirements:
    figures = tuple(figure for asks, figure in _FIGURES if asks.search(question))
    found = {(after or before).strip(".+#-").lower() for after, before in _VERSION_OF.findall(question)}
    products = found - _NO_PRODUCT - {""}
    versions_of = frozenset(products) if figures else frozenset[str]()
    names = frozenset(each.lower() for each in _NAMES.findall(question))
    return Requirements(figures, names, versions_of, _counted_things(question))


def _counted_things(question: str) -> frozenset[str]:
    found: set[str] = set()
    for words in _HOW_MANY.findall(question.lower()):
        from_thing = itertools.dropwhile(lambda word: word in _NOT_COUNTED, words.split())
        thing = itertools.takewhile(lambda word: word not in _NOT_COUNTED, from_thing)
        found |= {word.removesuffix("s").removesuffix("ie") for word in thing}
    return frozenset(found - {""})


def is_too_general(headings: Sequence[str], question: str) -> bool:
    """Return whether the section below `headings` is an introduction and the question asks for something particular."""
    return bool(headings and _INTRODUCTION.fullmatch(headings[-1].strip())) and not _GENERAL_QUESTION.search(question)


def meets(text: str, required: Requirements) -> bool:
    if not all(figure.search(text) for figure in required.figures):
        return False
    lower = text.lower()
    if not all(_has_version_after(product, lower) for product in required.versions_of):
        return False
    if required.counted and not any(_has_number_near(thing, lower) for thing in required.counted):
        return False
    return not required.names or any(name.removesuffix("()") in lower for name in required.names)


_EXCLUSIVE = """
enable activate on / disable deactivate off; install / uninstall remove; add create / remove delete; start run / stop
open / close; allow grant / deny block forbid revoke; show / hide; increase raise / decrease lower; include / exclude
import / export; upgrade update / downgrade; upload / download; encrypt / decrypt; mount / unmount; push / pull
connect / disconnect; subscribe / unsubscribe; minimum min / maximum max; always / never
backup / restore recover / delete remove erase wipe / rename / copy duplicate clone / archive / reset / move
lock / unlock; cancel / renew; attach / detach; ban / unban; pause / resume continue; accept approve / reject decline
public / private; join / leave; merge / split; expand / collapse; promote / demote; up / down
all every everybody everyone everything each whole / one single some only / nobody
all every everybody everyone everything each whole / my mine our own / nobody; my mine our own / another other / nobody
windows / linux / macos mac / android / ios
aktivieren / deaktivieren; installieren / deinstallieren; activer / désactiver; activar / desactivar
"""
"""Lines of words, in groups: a question with a word of one side is not answered where one of another side stands."""


@lru_cache(maxsize=1)
def _exclusive_terms() -> tuple[tuple[frozenset[str], ...], ...]:
    groups = _EXCLUSIVE.replace("\n", ";").split(";")
    return tuple(
        tuple(frozenset(terms(side)) | STOP_WORDS.intersection(side.split()) for side in each.split("/"))
        for each in groups
        if each
    )


_WORD_OR_PAUSE = lazy_pattern(r"[\w'’+#-]+|[.,;:!?()\n]")
_JOINED_PARTICLE = lazy_pattern(r"\b(log|sign|opt)-?(in|out|off|on|up)\b", re.IGNORECASE)
_NO_PARTICLE = lazy_pattern(
    r"\b(?:figure|figuring|find|finding|found|work|working|run|running|ran) out\b|\b(?:at|after|first of) all\b"
    r"|\ball (?:of (?:a )?sudden|day|night|the time)\b",
    re.IGNORECASE,
)
_PARTICLES = frozenset({"on", "off", "in", "out", "up", "down"})
_LEADS_TO_VERB = frozenset(["i", "we", "you", "they", "to", "please", "not", "cannot", "and", "or", *".,;:!?()\n"])
_FOLLOWS_PARTICLE = frozenset(["to", "from", "of", "for", "with", "in", "on", "at", "by", "again", "when", "and", "or"])
_PAUSES = frozenset(".,;:!?()\n")
_SIDED_PARTICLES = frozenset({"in", "out", "up"})
_WORDS_TO_VERB = 3
_DIRECTIONS = {"into": "to", "onto": "to", "by": "with"} | {
    each: each for each in ("from", "to", "with", "over", "under", "than", "before", "after", "or")
}
"""Words that lead to another thing, each with the direction that it stands for."""
_REVERSED = (("from", "to"), ("before", "after"))
_NOTHING = frozenset[str]()


class _FunctionWords(NamedTuple):
    """The meaning of the stop words of a question, which `terms` leaves out.

    Attributes:
        words: those of `_EXCLUSIVE`; "on" and "up" only behind a verb ("turn it on").
        particles: "in", "out" and "up" behind a verb, by each of the terms in front of them ("log in to").
        targets: by direction, the terms of what it leads to: "from A to B".
    """

    words: frozenset[str]
    particles: Mapping[str, frozenset[str]]
    targets: Mapping[str, frozenset[str]]


@lru_cache(maxsize=256)
def _function_words_in(question: str) -> _FunctionWords:
    text = _NO_PARTICLE.sub(" ", _JOINED_PARTICLE.sub(r"\1 \2", without_greeting(question)))
    words = _WORD_OR_PAUSE.findall(text.lower())
    exclusive = frozenset[str]().union(*itertools.chain.from_iterable(_exclusive_terms()))
    places = [at for at, each in enumerate(words) if each not in _PARTICLES or _is_particle(words, at)]
    particles: dict[str, frozenset[str]] = {}
    for at in (each for each in places if words[each] in _SIDED_PARTICLES):
        for term in terms(" ".join(words[max(0, at - _WORDS_TO_VERB) : at])):
            particles[term] = particles.get(term, _NOTHING) | {words[at]}
    said = {words[at] for at in places}
    return _FunctionWords(exclusive & said & (STOP_WORDS | _PARTICLES), particles, _targets_in(words))


def _is_particle(words: Sequence[str], at: int) -> bool:
    """Return True if the word at that place belongs to a verb ("turn it on"), and is no preposition ("on Windows")."""
    if words[at] in {"off", "out", "down"}:
        return True
    lead, verb = words[at - 2] if at > 1 else ".", words[at - 1] if at else "."
    after = words[at + 1] if at + 1 < len(words) else "."
    return (lead in _LEADS_TO_VERB and bool(terms(verb))) or after in _PAUSES | _FOLLOWS_PARTICLE


def _targets_in(words: Iterable[str]) -> dict[str, frozenset[str]]:
    """Return the terms that each direction leads to, up to the next stop word."""
    targets: dict[str, frozenset[str]] = {}
    direction, is_named = "", False
    for before, word in itertools.pairwise(["", *words]):
        found = terms(word)
        if word in _DIRECTIONS:  # "way to", "how to" lead to no thing
            direction, is_named = "" if word == "to" and not terms(before) else _DIRECTIONS[word], False
        elif found and direction:
            targets[direction] = targets.get(direction, _NOTHING).union(found)
            is_named = True
        elif word in _PAUSES or (is_named and word != "and"):
            direction = ""
    return targets


def _goes_elsewhere(one: _FunctionWords, other: _FunctionWords, shared: set[str]) -> bool:
    """Return True if one question turns in or up what the other turns out; if one goes to where the other comes from;
    or if both name the same two things (`shared`) in another order: "A faster than B" and "B faster than A".
    """
    both = one.particles.keys() & other.particles.keys()
    if any(one.particles[term].isdisjoint(other.particles[term]) for term in both):
        return True
    if _is_reversed(one.targets, other.targets) or _is_reversed(other.targets, one.targets):
        return True
    for direction in (one.targets.keys() & other.targets.keys()) - {"or"}:
        here, there = one.targets[direction], other.targets[direction]
        if here.isdisjoint(there) and here | there <= shared:
            return True
    return False


def _is_reversed(one: Mapping[str, frozenset[str]], other: Mapping[str, frozenset[str]]) -> bool:
    """Return True if one question comes from where the other goes to, by their targets."""
    for direction, back in _REVERSED:
        comes, goes = one.get(direction, _NOTHING), other.get(back, _NOTHING)
        is_same = bool(comes and goes) and (comes <= goes or goes <= comes)
        if is_same and comes.isdisjoint(one.get(back, _NOTHING)) and goes.isdisjoint(other.get(direction, _NOTHING)):
            return True
    return False


_HIDES_WORD = lazy_pattern(
    r"[🚫❌⛔🔙✖]|:\w+:(?=[^\W\d_])|[A-Za-z][\u0370-\u04ff]|[\u0370-\u04ff][A-Za-z]|(?<=[A-Za-z])[\u00ad\u200b-\u200f\u2060-\u2064\ufeff](?=[A-Za-z])"
)
"""Letters of two alphabets, or a sign that nobody sees, within a word: it is not the one that people read; or a picture
that says the opposite, or says something right before a word.
"""
_MARKUP = lazy_pattern(r"[*~`]+|(?<!\w)_+|_+(?!\w)|\|\|")
_NEGATION_APART = lazy_pattern(r"\b(un|de|dis|non)[-_/.:\"')\]]{1,3}(?=[^\W\d_]{3})", re.IGNORECASE)
_UN_APART = lazy_pattern(r"\bun (?=[a-z]{4})", re.IGNORECASE)
_NEGATING = ("un", "de", "dis")
_BACK_UP = lazy_pattern(r"\bback(?:ed|ing|s)? up\b", re.IGNORECASE)
_NUMBER_IN_QUESTION = lazy_pattern(r"\d[\d.]*")
_WITHOUT = lazy_pattern(r"\b(?:without|ohne|sans|sin)((?:\s+[\w-]+){1,3})", re.IGNORECASE)


def asks_something_else(question: str, earlier: str, answer: str) -> bool:
    """Return True if a question differs from an `earlier` one, and from its `answer`, in a word that makes it another
    one: an opposite (disable, enable; turn on, turn off) or another act (restore, back up), a system, whose or how many
    (my, all, one), a number such as a version, "without", or another direction (from A to B, from B to A). True, too,
    if the earlier one names both of two opposites and the question one of them, or if a word of it has letters of two
    alphabets or signs that nobody sees.
    """
    if _HIDES_WORD.search(earlier):
        return True
    question, earlier, answer = map(_with_negations, (question, earlier, answer))
    if _is_opposite(question, earlier, answer):
        return True
    new, old = (_meant_by(text) for text in (question, earlier))
    if _swaps_a_word(question, earlier, answer):
        return True
    for group in _exclusive_terms():
        now, before = ([at for at, side in enumerate(group) if side & words] for words in (new, old))
        if len(group) == len(before) > len(now) > 0:
            return True
    numbers = _numbers_in(question)
    return bool(numbers - _numbers_in(f"{earlier}\n{answer}") and _numbers_in(earlier) - numbers)


def _with_negations(text: str) -> str:
    """Return a text without markup, where "un-install" and, in English, "un install" are one word."""
    joined = _NEGATION_APART.sub(r"\1", _MARKUP.sub("", text))
    return _UN_APART.sub("un", joined) if language_of(joined) == ENGLISH else joined


_LIGHT_VERBS = frozenset({"do", "get", "make", "put", "switch", "turn"})


def _swaps_a_word(question: str, earlier: str, answer: str) -> bool:
    """Return True if two questions differ in one word each at the same place ("reset the staging database", "reset the
    production database"), unless the words are of one meaning or the answer has the new one. Of languages other than
    English too little is known of words: there it is enough that the new question has one of its own.
    """
    new, old = (_matter_of(text) for text in (question, earlier))
    own, other = [each for each in new if each not in old], [each for each in old if each not in new]
    if not own or set(own) <= set(terms(answer)):
        return False
    if language_of(question) != ENGLISH:
        return True
    is_swap = len(own) == len(other) == 1 and [other[0] if each == own[0] else each for each in new] == old
    return is_swap and not any({own[0], other[0]} <= side for group in _exclusive_terms() for side in group)


def _matter_of(question: str) -> list[str]:
    """Return the terms of a question in order, without those that name no matter."""
    found = terms(_BACK_UP.sub("backup", without_greeting(question)))
    return [each for each in dict.fromkeys(found) if each not in _ask_nothing() | _LIGHT_VERBS]


def is_about_opposite(question: str, headings: Sequence[str], text: str) -> bool:
    """Return True if a section of the documentation is about an opposite of what is asked, or leads elsewhere, by its
    headings or by all those sentences of its `text` that have the most terms of `question`.
    """
    asking = "\n".join(asking_sentences(question)[0]) or question
    heading = _EACH.sub(" ", "\n".join(headings))
    groups = [each for each in _exclusive_terms() if len(each) <= _MOST_SIDES]
    if _is_opposite(asking, heading, text, groups=groups):
        return True
    # A page speaks to everybody: what is the asker's own is in no contrast to what holds for all.
    asked, wanted = _WITHOUT.sub(" ", _OWN.sub(" ", asking)), set(terms(question))
    shared = [(len(wanted.intersection(terms(each))), each) for each in _SENTENCE.split(_EACH.sub(" ", text))]
    most = max(shared)[0]
    enough = min(_MIN_SUBJECT_TERMS, max(1, len(wanted) - 1))  # a word of a short question may be the opposite itself
    nearest = [f"{heading}\n{_WITHOUT.sub(' ', each)}" for count, each in shared if count == most >= enough]
    particles = _function_words_in(text).words & _PARTICLES
    return bool(nearest) and all(_is_opposite(asked, each, text, particles, groups) for each in nearest)


_MOST_SIDES = 5
"""Pages name acts as things, too ("shadow copies"): a group of more sides, those of acts, is not looked at."""
_OWN = lazy_pattern(r"\b(?:my|mine|our|own)\b", re.IGNORECASE)
_EACH = lazy_pattern(r"\b(?:each|every)\b", re.IGNORECASE)
"""What holds for each thing holds for one."""


def _is_opposite(
    question: str,
    earlier: str,
    answer: str,
    also: frozenset[str] = _NOTHING,
    groups: Sequence[Sequence[frozenset[str]]] | None = None,
) -> bool:
    """Return True if a question has the opposite of a word of `earlier`, does without what that has, or leads
    elsewhere. A term of the `answer`, or a word that it has `also`, is no opposite. `groups`: of `_exclusive_terms`;
    None: all.
    """
    question, earlier = (_BACK_UP.sub("backup", text) for text in (question, earlier))
    mine, its = _function_words_in(question), _function_words_in(earlier)
    new, old = _meant_by(question), _meant_by(earlier)
    own, other = new - old - set(terms(answer)) - also, old - new
    for group in _exclusive_terms() if groups is None else groups:
        asked, said = ({at for at, side in enumerate(group) if side & words} for words in (own, other))
        if asked and said and asked.isdisjoint(said):
            return True
    if any(f"{prefix}{term}" in old for prefix in _NEGATING for term in own) or any(
        f"{prefix}{term}" in own for prefix in _NEGATING for term in other
    ):
        return True
    lacking = _left_out(question) & old - _left_out(f"{earlier}\n{answer}")
    lacked = _left_out(earlier) & new - _left_out(question)
    return bool(lacking or lacked) or _goes_elsewhere(mine, its, new & old)


def _meant_by(question: str) -> set[str]:
    """Return the terms of a question, and the stop words that have a meaning in it."""
    text = _BACK_UP.sub("backup", question)
    return set(terms(text)) | _function_words_in(text).words


_REQUESTS = lazy_pattern(
    r"""\b(?:i|we)(?:['’]d|\s+would)?\s+(?:\w+\s+)?(?:need|want|like|wish)\b | \b(?:tell|give|show|send)\s+(?:me|us)\b
    | \bich\s+(?:will|möchte|brauche|suche|hätte\s+gern) | \b(?:sag|sagt|zeig|zeigt|gib|gebt)\s+mir\b""",
    re.IGNORECASE | re.VERBOSE,
)
_WITHDRAWS = lazy_pattern(
    r"\b(?:(?:forget|scrap)\s+(?:it|that)|no\s+wait|nvm|never\s*mind|solved|works?\s+(?:now|again)|hat\s+sich\s+erledigt"
    r"|vergiss\s+(?:es|das)|geht\s+(?:jetzt|wieder))\b",
    re.IGNORECASE,
)


_ENOUGH_TAKEN_UP = 2
"""An answer with so many words of a statement beside the question is for those of whom that is true."""


def asks_only_among_others(question: str, earlier: str, answer: str = "") -> bool:
    """Return True if only a part of an `earlier` question is about what `question` asks: a second sentence of it asks
    something besides, with a word that neither `question` nor the sentence nearest to that has; or only what stands
    beside its questions has words of `question`. Also if the `answer` has two words of a statement beside it that
    `question` has not, or one of what somebody wants ("I need …"); or if the question is withdrawn behind it ("never
    mind, solved").

    Then nobody knows whether the answer was to that part, and anybody may have put it there to be quoted to others.
    """
    asking, others = _sentences_with_matter(earlier)
    wanted = set(terms(question))
    asked = [set(terms(each)) - _ask_nothing() for each in asking]
    nearest = max(asked, key=lambda words: len(words & wanted), default=set[str]())
    behind = earlier.find(asking[0]) if asking else len(earlier)
    if any(earlier.find(each) > behind and _WITHDRAWS.search(_prose(each)) for each in others):
        return True
    if nearest & wanted:
        answered = set(terms(answer)) - wanted - nearest - _ask_nothing()
        taken_up = [(answered.intersection(terms(each)), _REQUESTS.search(_prose(each))) for each in others]
        asks_besides = any(words - wanted - nearest for words in asked)
        return asks_besides or any(len(words) >= (1 if request else _ENOUGH_TAKEN_UP) for words, request in taken_up)
    return bool(asked) and bool(set(terms(" ".join(others))) & wanted)


def is_another_question(one: str, other: str) -> bool:
    """Return True if one of two questions is about something else, or asks for something besides, that the other does
    not ask for.
    """
    for mine, its in ((one, other), (other, one)):
        if asks_something_else(mine, its, "") or asks_only_among_others(mine, its):
            return True
        if _function_words_in(its).targets.get("or", _NOTHING).difference(terms(mine)):
            return True
    return False


def _sentences_with_matter(question: str) -> tuple[Sequence[str], Sequence[str]]:
    """Return what `asking_sentences` does, without sentences that ask about what the others say ("What is wrong?")."""
    asking, others = asking_sentences(question)
    return [each for each in asking if set(terms(each)) - _ask_nothing()], others


@lru_cache(maxsize=1)
def _ask_nothing() -> frozenset[str]:
    """Return the terms that name no matter."""
    return frozenset(terms(_ASK_NOTHING))


_ASK_NOTHING = """
advice anybody anyone best correct explain fix happen happening help hint idea know mean missing miss normal possible
possibly problem issue proper properly recommend reason resolve right safe solution solve somebody someone suggest
suggestion thought tip way work wrong able please thanks ideas ways works issues problems knows helps anyones
command option setting step use
"""


def _numbers_in(text: str) -> set[str]:
    """Return the numbers, without zeros behind the point: 95.00 is 95."""
    found = (each.rstrip(".") for each in _NUMBER_IN_QUESTION.findall(text))
    return {each.rstrip("0").rstrip(".") if "." in each else each for each in found}


def _left_out(text: str) -> set[str]:
    return {term for words in _WITHOUT.findall(text) for term in terms(words)}


def _has_number_near(thing: str, text: str) -> bool:
    return any(
        not text[at - 1 : at].isalpha() and _NUMBER.search(text[max(0, at - _NUMBER_WITHIN) : end + _NUMBER_WITHIN])
        for at, end in _spans_of(thing, text)
    )


def _has_version_after(product: str, text: str) -> bool:
    return any(
        not (text[at - 1 : at].isalnum() or text[end : end + 1].isalpha())
        and any(char.isdigit() for char in text[end : end + _DIGIT_WITHIN])
        for at, end in _spans_of(product, text)
    )


def _spans_of(word: str, text: str) -> Iterator[tuple[int, int]]:
    at = text.find(word)
    while at >= 0:
        yield at, at + len(word)
        at = text.find(word, at + max(len(word), 1))
