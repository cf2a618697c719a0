"""Characters that pass for others: what a reader, or a model, takes for a delimiter or a label."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

_LETTERS = {
    "a": "аɑα",
    "b": "ьƅ",
    "c": "сϲ",
    "d": "ԁ",
    "e": "еҽɛε",
    "h": "һ",
    "i": "іıιӏ",
    "m": "м",
    "n": "ոη",
    "o": "оοօ",
    "r": "гᴦ",
    "s": "ѕꜱ",
    "t": "тτᴛ",
    "u": "υսцʋᴜ",
    "x": "хχ",
    "y": "уγүʏ",
}
_BRACKETS = {"<": "‹⟨〈❮❰❬⧼˂ᐸ⋖ᚲ", "<<": "«⟪《≪", "<<<": "⋘⫷", ">": "›⟩〉❯❱❭⧽˃ᐳ⋗", ">>": "»⟫》≫", ">>>": "⋙⫸"}
_COLONS = "ː˸∶꞉։׃܃܄᛬⁚︰"
# Seen as nothing, yet legitimate in text: joiners (emoji, Indic scripts) and variation selectors.
_UNSEEN = "\u200c\u200d\ufe0e\ufe0f"

_SAME: dict[str, str] = {
    **{look: letter for letter, looks in _LETTERS.items() for look in looks},
    **{look: brackets for brackets, looks in _BRACKETS.items() for look in looks},
    **dict.fromkeys(_COLONS, ":"),
    **dict.fromkeys(_UNSEEN, ""),
}


@lru_cache(maxsize=4096)
def same_as(character: str) -> str:
    """One character as it looks: `Ｙ` → `y`, `：` → `:`, `≪` → `<<`, a joiner or a lone accent → nothing."""
    if character in _SAME:
        return _SAME[character]
    plain = unicodedata.normalize("NFKD", character).lower()
    return "".join(_SAME.get(part, part) for part in plain if not unicodedata.combining(part))


def fold(text: str) -> str:
    """`text` as it looks: `＜＜＜Ｙоu：` → `<<<you:`."""
    return text.lower() if text.isascii() else "".join(map(same_as, text))
