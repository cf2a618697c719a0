"""Reads the wording of a message: whether it asks for help, what to search for, and what an answer must contain."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import NamedTuple

from services import lazy_pattern
from services.search.tokenizer import terms

# What is said

_GREETING_LINE_CHARS = 400
_MAX_GREETINGS = 4  # in a row: "@bot hey, good morning all!"
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
        for _ in range(_MAX_GREETINGS):
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


def words_to_search(text: str) -> str:
    """Return the words to search for: without greeting, placeholders of attachments, names of people and addresses."""
    return without_greeting(_ADDRESS.sub(" ", _NOISE.sub(" ", text.replace(EARLIER_QUESTION, ""))).strip())


def current_question(text: str) -> str:
    """Return the current question, without earlier ones, attachment placeholders and names of people."""
    lines = (line for line in text.split("\n") if not line.startswith(EARLIER_QUESTION))
    return _NOISE.sub(" ", "\n".join(lines)).strip()


_NOT_PROSE = lazy_pattern(
    r"```.*?(?:```|\Z)|`[^`\n]*`|https?://\S+|^[ \t]*>[^\n]*|\[(?:image|file): [^\]]{0,1000}\]",
    re.DOTALL | re.MULTILINE,
)


def prose_of(text: str) -> str:
    """Return `text` with an "x" in the place of each piece of code, link and quotation."""
    return _NOT_PROSE.sub(" x ", text).strip()


SENTENCE_END = lazy_pattern(r"(?<=[.!?؟])\s+|(?<=[。！？])|\n+|\s[-–—]\s|;\s")
_GREETING = lazy_pattern(
    r"^(?:(?:hi+|hey+|hello+|yo|good (?:morning|evening|afternoon|day)|greetings|thanks?|thank you|thx|ok(?:ay)?|so"
    r"|well|um+|and|but|also|btw|oh|hm+|sorry|please|quick question|question|ah+|yeah|yes|no)\b"
    r"(?: (?:there|all|everyone|everybody|guys|folks|team|again|so much|a lot|in advance))?[\s,.!:…-]*|@\S+\s+)+",
    re.IGNORECASE,
)


def _sentences(prose: str) -> list[str]:
    """Return the sentences without the greetings that they open with."""
    return [_GREETING.sub("", sentence.strip()) for sentence in SENTENCE_END.split(prose)]


# Questions

_MIN_WORDS = 3
QUESTION_MARKS = ("?", "？", "؟", "՞")
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
_CLAUSE = lazy_pattern(r",\s+(?:and\s+|but\s+|so\s+)?")
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


def _is_asking(sentence: str) -> bool:
    if _CHARACTERS_THAT_ASK.search(sentence):
        return True
    # Scripts without blanks have no words to count: a question mark at the end is enough.
    if sentence.endswith(QUESTION_MARKS) and (_UNSPACED.search(sentence) or not _ALPHABETIC.search(sentence)):
        return True
    if not _ALPHABETIC.search(sentence):
        return False
    if _ADVISES.match(sentence) or _SMALL_TALK.search(sentence) or len(_WORD.findall(sentence)) < _MIN_WORDS:
        return False
    asked = sentence.endswith(QUESTION_MARKS) or "¿" in sentence or bool(_WORDS_THAT_ASK.search(sentence))
    return asked or any(_ASKS.match(clause) for clause in _CLAUSE.split(sentence))


def asking_sentences(text: str) -> tuple[list[str], list[str]]:
    """Return the sentences of `text` that ask, and all others, including links, code and quotations."""
    asking: list[str] = []
    others: list[str] = []
    for sentence in filter(str.strip, SENTENCE_END.split(text)):
        (asking if _is_asking(_GREETING.sub("", prose_of(sentence))) else others).append(sentence)
    return asking, others


_CONTINUES = lazy_pattern(
    r"""(?:(?:ok(?:ay)?|thanks?|thank\s+you|great|cool|nice|hm+|oh|ah)[\s,.!]+)*
        (?:(?:what|how)\s+about\b
        |(?:and|but|or|so|then|also|same|even|only|on|for|with|in|without)\b[^?]{1,160}\?)""",
    re.IGNORECASE | re.VERBOSE,
)


def is_follow_up(text: str) -> bool:
    """Return whether `text` continues an earlier question: "and on Windows?"."""
    return bool(_CONTINUES.match(prose_of(text)))


_MIN_REPORT_TERMS = 6
_ADDRESSEE = lazy_pattern(
    r"^@?(?!\w*(?:error|warning|exception)\b|(?:question|problem|issue|traceback|fatal|panic|help)\b)[a-z][\w-]{2,24}:\s",
    re.IGNORECASE,
)
_SHORT_QUESTION = lazy_pattern(
    r"(?:(?:but|and|so)\s+)?(?:how|why|where|what now|wtf|possible|any(?:one|body)?(?:\s+ideas?|\s+else)?|ideas?"
    r"|thoughts|is that|right|help)\W*|\w+(?:\s\w+)?\?+",
    re.IGNORECASE,
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


def is_question(text: str) -> bool:
    """Return whether `text` asks for help or reports a problem, which thanks, chatter and advice to others do not."""
    prose = prose_of(text)
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


def _is_wish_or_reply(prose: str) -> bool:
    """Return True if a text states a wish or an opinion, or replies to somebody."""
    return bool(_WISHES.search(prose) or _REPLIES.match(prose.lstrip("( ")))


# Needs, reports of trouble, and keywords

_MIN_KEYWORD_TERMS = 3
_SECOND_PERSON = lazy_pattern(r"\b(?:you|your|you['’]re|yours|u|ur)\b", re.IGNORECASE)
_FIRST_PERSON = lazy_pattern(r"\b(?:i|i['’]?m|i['’]?ve|i['’]?d|my|mine|me|we|we['’]re|our|us|im|ive)\b", re.IGNORECASE)
_ABOUT_THEMSELVES = lazy_pattern(r"\b(?:i|we|i['’]?m|i['’]?ve|i['’]?d|we['’]re|we['’]ve|im|ive)\b", re.IGNORECASE)
_NEEDS = lazy_pattern(
    r"\b(?:wants?|needs?|trying|tried|should|must|has to|have to|would like|looking for|how)\b", re.IGNORECASE
)
_TROUBLE = lazy_pattern(
    r"\b(?:\w+n['’]t|arent|isnt|doesnt|dont|wont|cant|never|always|although|even though|instead|wrong|broken?|breaks?"
    r"|dies?|died|denied|refused|rejected|fail(?:s|ed|ing)?|errors?|missing|lost|gone|stuck|hangs?|slow|crash(?:es|ed)?"
    r"|warnings?|timeout|times out|unknown|locked|nothing happens)\b",
    re.IGNORECASE,
)
_ERROR = lazy_pattern(
    r"\b\w*(?:Error|Exception|Warning)\b\s*:|\b(?:error|warning|fatal|panic|traceback)\b\s*[:(]|\b[45]\d\d\b",
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
_STATES = lazy_pattern(
    r"^\W*(?:the|an?|some|most|all)\b|\b(?:is|are|was|were|am|be|been|has|have|had|does|do|did|will|would|can|could|may|might|means?|seems?"
    r"|\w+['’](?:s|re|ve|ll|d|m))\b",
    re.IGNORECASE,
)
"""Verbs of statements, and words that statements begin with."""


def may_ask(text: str) -> bool:
    """Return whether `text` may ask although it is not put as a question: a report of trouble ("404 handler on my
    blueprint is never called"), a need ("ci should fail below 80"), or keywords as typed into a search ("wildcard
    certificate for subdomains"). False for advice and replies to others, solved problems, statements, opinions and
    wishes.
    """
    prose = prose_of(text)
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


_MIN_SUBJECT_TERMS = 2


def asks_for_something(text: str) -> bool:
    """Return whether a message to the bot has a subject, if only in keywords: it is neither thanks nor a greeting."""
    sentences = _sentences(prose_of(text))
    if any(_SOLVED.search(sentence) or _SMALL_TALK.search(sentence) for sentence in sentences):
        return False
    return len(set(terms(words_to_search(" ".join(sentences))))) >= _MIN_SUBJECT_TERMS


_UNFINISHED_ENDS = ("..", "…", ":", ",", ";", "-", "–", "—", "(", "：", "，", "、", "；", "،", "؛")


def looks_finished(text: str) -> bool:
    """Return whether the author of `text` seems to have asked everything, so that an answer need not wait for more.

    The last sentence has to ask: after a report of trouble, or a question with an explanation below it, people go on.
    False for a greeting, an open code block, and an end such as "I tried this:".
    """
    said = text.rstrip()
    if said.endswith(_UNFINISHED_ENDS) or said.count("```") % 2 or not _WORD.search(_GREETING.sub("", prose_of(said))):
        return False
    if said.endswith(QUESTION_MARKS):
        return is_question(said) or is_follow_up(said) or asks_for_something(said)
    sentences = [each for sentence in SENTENCE_END.split(prose_of(said)) if (each := sentence.strip()) not in {"", "x"}]
    return bool(sentences) and _is_asking(_GREETING.sub("", sentences[-1]))


# Questions for everybody

OPENING = r"^\W{0,9}(?:(?:and|but|so|also|ok|please|well)\W{1,9})?"
AUXILIARY = (
    rf"{OPENING}(?:can|could|may|might|is|are|am|was|were|do|does|did|will|would|should|shall|must|need|has|have|had)\b"
)
"""The beginning of a question that wants a yes or a no."""
_ASKS_HOW_TO = lazy_pattern(r"\bhow\s(?:do|can|could|should|would|to)\b|\bwie\s(?:kann|muss|soll)", re.IGNORECASE)
_FOR_NOW = lazy_pattern(
    r"\b(?:today|tonight|tomorrow|right\snow|at\sthe\smoment|heute|(?:diese|nächste)[rnms]?\s(?:woche|monat)"
    r"|(?:this|next)\s(?:week|month|morning|afternoon|evening|weekend|(?:mon|tues|wednes|thurs|fri|satur|sun)day))\b",
    re.IGNORECASE,
)
_OWN_CASE = lazy_pattern(
    r"\b(?:why|where|when|has|have|is|was|were|did|will|who(?:['’]s|\shas|\sdid)?)\b[^.!?\n]{0,40}\bmy\s(?:\w{1,20}\s)?(?:account|payment"
    r"|parcel|order|card|invoice|application|appeal|plan|subscription|settings|ticket|refund|licen[cs]e|post|ban)s?\b"
    r"|\bwhy\s(?:am|was|were)\s(?:i|we)\b|\bwhy\s(?:can(?:no|['’])?t|can)\s(?:i|we)\s(?:not\s)?(?:\w{1,20}\W{0,9})$"
    r"|\b(?:which|what|how\s(?:many|much))\s(?:\w{1,20}\s){0,3}do\s(?:i|we)\s(?:have|owe)\b",
    re.IGNORECASE | re.MULTILINE,
)
_SEEN_THERE = lazy_pattern(
    rf"{AUXILIARY}(?:\W{{1,3}}(?:this|that|these|those)\b(?!\s(?:possible|normal|allowed|correct|true|course|server|bot|project))"
    r"|[^?\n]{0,200}\b(?:this|these|those)\s(?:\w{1,20}\s)?(?:mail|e-mail|message|link|person|user|site|page|offer|file|folder|warning"
    r"|address|screenshot|picture|one|thing|invite|code|number|key|account)s?\b)",
    re.IGNORECASE | re.MULTILINE,
)
_UNNAMED = lazy_pattern(
    rf"{AUXILIARY}(?:\W{{1,3}}(?:they|he|she)\b|[^?\n]{{0,200}}\b(?:it|them|him|her)\W{{0,3}}$)"
    r"|\bhow\s(?:do|can|should)\s(?:i|we)\s\w{1,20}\s(?:it|them|those|these|this|that)(?:\s\w{1,20})?\W{0,3}$",
    re.IGNORECASE | re.MULTILINE,
)
_STATE = lazy_pattern(
    rf"{AUXILIARY}[^?\n]{{0,120}}\b(?:down|offline|hacked|broken|breached|compromised|on\s(?:duty|call)|sold\sout|out\sof\sstock|left|back\sup)\W{{0,3}}$"
    r"|\bwho(?:\sis|['’]s)?\son\s(?:duty|call)\b|\bwhy\scan\s(?:nobody|no\sone)\b|\bwhy\scan(?:no|['’])?t\s(?:anybody|anyone|people|we\sall)\b"
    r"|\bwhen\s(?:will|does|is)\b[^?\n]{0,60}\b(?:open|be\sback|be\sup|be\sover|return|resume)\b|\bsafe\sto\s(?:update|upgrade|withdraw|deploy)\b",
    re.IGNORECASE | re.MULTILINE,
)
_PERSON = lazy_pattern(
    r"\s@[\w.-]+(?!\S*/)|\bwho(?:\sis|['’]s)\s(?:the|that|this)\s(?:\w{1,20}\s)?(?:wo)?(?:man|girl|boy|guy|lady|person|kid|dude)\b"
    r"|\b(?:why|when|is|was|has|will|did)\b[^?\n]{0,60}\s(?-i:[A-Z])[\w'’-]{1,30}\s(?:\w{1,20}\s)?(?:banned|muted|kicked|fired|demoted|suspended"
    r"|arrested|pregnant|married|divorced|ill|sick|dead|gay)\b",
    re.IGNORECASE,
)
_GENUINE = lazy_pattern(
    rf"{AUXILIARY}[^?\n]{{0,200}}\b(?:(?:genuine|legit(?:imate)?|authentic|scam|fake|phishing|trust(?:ed|worthy)?|yours"
    r"|(?:from|by)\s(?:you|the\steam))\b|real\W{0,3}$)",
    re.IGNORECASE | re.MULTILINE,
)


def asks_for_all(question: str) -> bool:
    """Return whether others who ask a question in the same words want the same answer, as far as English and German
    words show it. False where it is about its own day ("Is the server down?"), the asker's own case ("Where is my
    parcel?"), something that only those see who are there ("Is this link safe?"), or a person.
    """
    for each in asking_sentences(question)[0]:
        if any(pattern.search(each) for pattern in (_STATE, _OWN_CASE, _SEEN_THERE, _GENUINE, _PERSON)):
            return False
        if _FOR_NOW.search(each) and not _ASKS_HOW_TO.search(each):
            return False
        unnamed = _UNNAMED.search(each)
        if unnamed and not terms(question[: question.find(each) + unnamed.start()]):
            return False
    return True


# What an answer must contain

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


def meets(text: str, required: Requirements) -> bool:
    """Return whether a text has what is required."""
    if not all(figure.search(text) for figure in required.figures):
        return False
    lower = text.lower()
    if not all(_has_version_after(product, lower) for product in required.versions_of):
        return False
    if required.counted and not any(_has_number_near(thing, lower) for thing in required.counted):
        return False
    return not required.names or any(name.removesuffix("()") in lower for name in required.names)


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
