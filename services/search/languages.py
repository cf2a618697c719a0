"""Detects the language of a text, by its script or by its function words. English where nothing else is clear.

On questions, which are short and full of English terms, this does better than py3langid: of the 213 in
tests/services/search/questions_by_language.py, of which 56 were written after the rules were made, it misses 2, the
library 11. It needs neither the library's 4.5 MB on disk, nor its 100 MB of memory, nor its half second to load.
"""

from __future__ import annotations

import re
from collections import defaultdict
from functools import lru_cache

from services.search.function_words import FUNCTION_WORDS, folded

ENGLISH = "en"

_READ = 8_000
"""Characters: enough of a long document."""
_MANY = 400
"""Words: more of them do not make the answer surer."""
_LEAST = 0.5
"""What has to speak for a language other than English: a word that no other language has counts 1, one of two ½."""

_NOT_PROSE = re.compile(
    r"""```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|`[^`\n]*`|<[^<>\n]{1,300}>|\[(?:image|file):[^\]\n]{0,1000}\]|:\w+:
    |(?:(?<!\S)\S*)?(?:://|www\.|@)\S*
    |(?<![\w./\\-])(?:(?!_)[\w-])*[./\\_][\w./\\-]*\w|(?<!\w)[^\W\d]*\d\w*|(?<!\S)--?\w[\w-]*""",
    re.DOTALL | re.VERBOSE,
)
_WORD = re.compile(r"[^\W\d_]+")
_LATIN = re.compile(r"[A-Za-zÀ-ɏ]")

# Scripts that name their language, and how many characters make a word; 0: words are told apart by blanks.
_HAN, _KANA = "zh", "ja"
_SCRIPTS = {
    _KANA: (re.compile(r"[\u3041-\u3096\u30a1-\u30fa\u30fc\uff66-\uff9f]"), 2),
    _HAN: (re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]"), 2),
    "ko": (re.compile(r"[\uac00-\ud7a3\u1100-\u11ff]+"), 0),
    "ru": (re.compile(r"[\u0400-\u04ff]+"), 0),
    "th": (re.compile(r"[\u0e01-\u0e5b]"), 4),
    "ar": (re.compile(r"[\u0600-\u06ff\u0750-\u077f]+"), 0),
    "el": (re.compile(r"[\u0370-\u03ff\u1f00-\u1fff]+"), 0),
    "he": (re.compile(r"[\u0590-\u05ff]+"), 0),
    "hi": (re.compile(r"[\u0900-\u097f]+"), 0),
}
_KANA_SHARE = 0.05
"""Chinese has no kana; Japanese with less of it is a list of terms."""
_UKRAINIAN, _RUSSIAN = re.compile(r"[іїєґ]"), re.compile(r"[ыэъё]")

# Letters that few languages have, and half a word's worth each time.
_LETTERS = {
    "ä": "de sv", "ö": "de sv tr", "ü": "de tr", "ß": "de de", "å": "sv sv", "ñ": "es es", "¿": "es es", "¡": "es es",
    "ã": "pt pt", "õ": "pt pt", "ç": "fr pt tr", "é": "fr", "è": "fr it", "ê": "fr pt", "ô": "fr pt", "œ": "fr fr",
    "à": "fr it", "ù": "fr it", "ì": "it", "ò": "it", "í": "es pt", "ó": "es pt pl", "á": "es pt", "ú": "es pt",
    "ł": "pl pl", "ż": "pl pl", "ź": "pl", "ś": "pl", "ę": "pl pl", "ą": "pl pl", "ć": "pl", "ń": "pl", "ğ": "tr tr",
    "ı": "tr tr", "ş": "tr tr", "ë": "nl",
}  # fmt: skip

_LATIN_LANGUAGES = ("en", "de", "es", "fr", "pt", "it", "nl", "pl", "tr", "sv")


def language_of(text: str) -> str:
    """Return the ISO 639-1 code of the language of a document or a question; `en` where it is not clear.

    Code, addresses, names of files and options, and what has digits in it are not looked at.
    """
    prose = _NOT_PROSE.sub(" ", text[:_READ])
    by_script = None if prose.isascii() else _by_script(prose)
    return by_script or _by_words(prose)


def _by_script(text: str) -> str | None:
    """None: words in Latin letters that are no terms outnumber those of other scripts."""
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
    ukrainian = len(_UKRAINIAN.findall(text)) + len(words & FUNCTION_WORDS["uk"] - FUNCTION_WORDS["ru"])
    russian = len(_RUSSIAN.findall(text)) + len(words & FUNCTION_WORDS["ru"] - FUNCTION_WORDS["uk"])
    return "uk" if ukrainian > russian else "ru"


def _by_words(text: str) -> str:
    lowered = text.lower()
    words = [folded(word) for word in _WORD.findall(lowered)[:_MANY]]
    scores: defaultdict[str, float] = defaultdict(float)
    for word in words:
        known = _languages_with(word)
        for code in known:
            scores[code] += 1 / len(known)
    if not text.isascii():
        for letter, codes in _LETTERS.items():
            for code in codes.split():
                scores[code] += 0.5 / len(set(codes.split())) * min(lowered.count(letter), 3)
    best = max(scores, key=lambda code: scores[code], default=ENGLISH)
    return best if scores[best] >= _LEAST and scores[best] > scores[ENGLISH] else ENGLISH


@lru_cache(maxsize=16_384)
def _languages_with(word: str) -> tuple[str, ...]:
    return tuple(code for code in _LATIN_LANGUAGES if word in FUNCTION_WORDS[code])
