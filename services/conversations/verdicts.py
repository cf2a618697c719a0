"""Whether an asker says that an answer helped, in the eight languages that the bot speaks."""

from __future__ import annotations

import re

MOST_CHARS = 300
"""Of a longer message, the thanks are the lesser part."""

_FAILED = re.compile(
    r"\b(?:that|this|it|these|they|which) (?:still |just |really )?(?:did|does|do|is|was)(?:n['’]?t| not)"
    r" (?:really |quite )?(?:work|help|solv|fix)"
    r"|\bno luck|\bstill (?:not|no|fail|broken|getting|the same|doesn|does not|isn)"
    r"|\bsame (?:error|problem|issue)"
    r"|\b(?:geht|klappt|funktioniert|hilft|half|klappte|ging) (?:das |es |leider |immer noch |trotzdem |auch |so )*nicht"
    r"|\b(?:immer noch|weiterhin) (?:nicht|der(?:selbe)? fehler)|\bnicht geholfen"
    r"|\bno (?:me )?(?:funciona|funcionó|sirve|sirvió|ayuda|ayudó)|\bsigue (?:sin|igual|fallando)|\bmismo error"
    r"|\b(?:marche|fonctionne|aide)(?:nt)? (?:toujours )?pas|\bça n['’]a pas|\bmême erreur"
    r"|\bnão (?:funciona|funcionou|ajudou|resolveu)|\bcontinua (?:sem|igual|o mesmo)"
    r"|не (?:помогло|работает|сработало|помог)|вс[её] равно не|та же ошибка"
    r"|没用|沒用|不行|没有用|还是(?:不|报错|失败)|沒有用|動かない|動きません|ダメでした|だめでした|解決しません",
    re.IGNORECASE,
)
_HELPED = re.compile(
    r"\b(?:thanks|thank you|thx|tysm|tyvm|ty|cheers)\b(?! in advance)"
    r"|\b(?:that|this|it) (?:has |just |now )?(?:worked|works|helped|did it|fixed it|solved it)"
    r"|\bworks (?:now|fine|great|like)"
    r"|\b(?:vielen dank|danke(?:schön)?|besten dank)\b(?! im voraus)"
    r"|\b(?:klappt|funktioniert|geht|läuft) (?:jetzt|nun)|\bhat geholfen"
    r"|\bgracias\b(?! de antemano)|\b(?:ya |ahora )funciona|\bfuncionó"
    r"|\bmerci\b(?! d['’]avance)|\bça (?:marche|fonctionne)|\b(?:obrigad[oa]|valeu)\b|\bfuncionou"
    r"|\bспасибо\b(?! заранее)|заработало|помогло"
    r"|谢谢|謝謝|多谢|解决了|可以了|ありがと|助かりました|解決しました|動きました",
    re.IGNORECASE,
)


def verdict(text: str) -> bool | None:
    """Whether it says that something worked (True) or did not (False); None: it says neither. Who gives thanks and says
    that it still fails says that.
    """
    if len(text) > MOST_CHARS:
        return None
    if _FAILED.search(text):
        return False
    return True if _HELPED.search(text) else None
