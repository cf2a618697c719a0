"""Detects whether an asker says that an answer helped, in the eight languages that the bot speaks.

Better to hear nothing than to hear praise in a question: only clear words count.
"""

from __future__ import annotations

import re

from services.search.questions import is_question

MOST_CHARS = 300
"""Of a longer message, the thanks are the lesser part."""


def _any(*alternatives: str) -> re.Pattern[str]:
    return re.compile("|".join(alternatives), re.IGNORECASE)


_CLAUSE = _any(r"[.,;:!…\n，。；：！、]+", r"(?<=[?？؟])", r"\b(?:and|but|und|aber|pero|mais|mas|но)\b")
_ASKS = ("?", "？", "؟", "吗", "嗎", "呢", "か")
"""The end of a clause that asks."""
_SUPPOSES = _any(
    r"\b(?:if|unless|whether|how|why|when|whenever|what|where|which|until|once|sure|hop(?:e|ing)|way)\b",
    r"^\W*(?:is|are|am|was|were|does|do|did|can|could|should|would|will|has|have|may|might)\b",
    r"\b(?:wenn|ob|falls|wie|warum|wieso|sobald|bis|si|cómo|cuando|qué|comment|pourquoi|quand|se|como|quando|quê)\b",
    r"\b(?:если|как|почему|когда|чтобы)\b|如果|要是|为什么|怎么|もし|なぜ",
)
"""Before what is said, in its clause: it is asked or supposed, not told."""
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
_PLEADS = _any(r"[?？؟请請]|\b(?:please|pls|plz|bitte|por favor|s['’]il (?:te|vous) pla[iî]t|пожалуйста)\b|お願い")
"""Whoever asks for something gives thanks for what is to come."""


def says_it_worked(text: str) -> bool | None:
    """Return whether a message says that something worked (True) or did not (False); None if it says neither.

    What is told last counts, and above thanks.
    """
    if len(text) > MOST_CHARS:
        return None
    told: bool | None = None
    for clause in _CLAUSE.split(text):
        if not clause.rstrip().endswith(_ASKS):
            if _tells(_FAILED, clause):
                told = False
            elif _tells(_WORKED, clause):
                told = True
    return True if told is None and _gives_thanks(text) else told


def _tells(what: re.Pattern[str], clause: str) -> bool:
    found = what.search(clause)
    return found is not None and _SUPPOSES.search(clause, 0, found.start()) is None


def _gives_thanks(text: str) -> bool:
    """For what was answered, not for what is asked before the thanks."""
    found = _THANKS.search(text)
    if found is None or _NO_THANKS.search(text):
        return False
    before = text[: found.start()]
    return _PLEADS.search(before) is None and not is_question(before)
