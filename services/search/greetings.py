"""Removes greetings from the beginning of a message."""

from __future__ import annotations

import re

LOOKED_AT = 400  # characters of a line: a greeting is short
MOST = 4  # "@bot hey, good morning all!"

_GREETING = re.compile(
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
_WORD = re.compile(r"\w")


def without_greeting(text: str) -> str:
    """Return `text` without its greeting, from the first line on that says more than one; unchanged if it says nothing
    else.
    """
    lines = text.splitlines()
    for number, line in enumerate(lines):
        rest = line[:LOOKED_AT].strip()
        for _ in range(MOST):
            found = _GREETING.match(rest)
            if found is None:
                break
            rest = rest[found.end() :]
        if _WORD.search(rest):
            return "\n".join([rest + line[LOOKED_AT:], *lines[number + 1 :]])
    return text
