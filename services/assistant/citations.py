"""Citations and addresses in answers: resolves the ids that a model gives to known sources, topics and conversations,
and removes addresses that no trusted text contains.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from model.source_ids import DOCUMENT, TOPIC, is_topic
from services import lazy_pattern
from services.knowledge import answered_pairs, pair_ids

if TYPE_CHECKING:
    from model.conversations import Conversation
    from services.knowledge import Source

# Ids

_WRAPPING = " \t\r\n\"'`[]“”‘’„«»\u200b\ufeff"
_LABEL = lazy_pattern(r"(?:¦+|[Ii][Dd]\s{0,9}:)\s{0,9}")
_NAMESPACE = lazy_pattern(rf"(?:{DOCUMENT}|{TOPIC})(?:@[0-9]{{1,20}}/)?")


def clean_id(text: str) -> str:
    """Return `text` without what often stands around an id that a model copies: quotes, backticks, a label."""
    cleaned = text.strip(_WRAPPING)
    while (before := _LABEL.match(cleaned)) is not None:
        cleaned = cleaned[before.end() :].strip(_WRAPPING)
    return cleaned


def resolve_ids(named: Iterable[str], known: Collection[str]) -> tuple[list[str], list[str]]:
    """Match the names that a model gave with the `known` ids. A name without the namespace (`guide.md` for
    `kb:guide.md`), or in other letter case, matches if no other known id has the same form. Returns the known ids that
    were named, in the model's order, and the names that match none, each once.
    """
    resolve = _resolver(known)
    found: dict[str, None] = {}
    unknown: dict[str, None] = {}
    for each in named:
        meant = resolve(each)
        if meant is None:
            unknown[each] = None
        else:
            found[meant] = None
    return list(found), list(unknown)


def conversation_label(index: int) -> str:
    """Return the label of a conversation in a prompt: `c1` for index 0."""
    return f"c{index + 1}"


def resolve_conversations(named: Iterable[str], shown: Sequence[str]) -> tuple[list[str], list[str]]:
    """Like `resolve_ids`, by the ids of conversations or their labels. `shown`: the ids, in the order of the labels."""
    by_name = {conversation_label(index): each for index, each in enumerate(shown)} | {each: each for each in shown}
    found, unknown = resolve_ids(named, by_name)
    return list(dict.fromkeys(by_name[each] for each in found)), unknown


def _resolver(known: Collection[str]) -> Callable[[str], str | None]:
    exact = frozenset(known)
    ids_by_form: list[dict[str, str | None]] = []

    def resolve(text: str) -> str | None:
        cleaned = clean_id(text)
        for name in (text, cleaned):
            if name in exact:
                return name
        if not ids_by_form:  # made only if needed: a long index takes a while
            # The strictest form goes first. A form that two known ids share names neither.
            ids_by_form.extend(_by_form(exact, form) for form in (_without_namespace, str.casefold, _most_general))
        for ids, name in zip(ids_by_form, (cleaned, cleaned.casefold(), cleaned.casefold()), strict=True):
            if name in ids:
                return ids[name]
        return None

    return resolve


def _by_form(known: Collection[str], form: Callable[[str], str]) -> dict[str, str | None]:
    """Map each form to its id, or to None if several ids have it."""
    ids: dict[str, str | None] = {}
    for each in known:
        ids[form(each)] = None if form(each) in ids else each
    return ids


def _without_namespace(source_id: str) -> str:
    return _NAMESPACE.sub("", source_id, count=1) if _NAMESPACE.match(source_id) else source_id


def _most_general(source_id: str) -> str:
    return _without_namespace(source_id).casefold()


# Addresses

# Addresses are read as browsers and Discord read them (WHATWG URL): "\" is "/" behind the schemes of the web, and any
# number of these stands before the host, in link targets also none.
_WEB = r"(?:https?|ftp|wss?)"
_OPENED = rf"(?:{_WEB}|file|data|javascript|vbscript|mailto|tel|sms|discord|steam|tg)"
"""The schemes that need no slash between angle brackets or in a link target."""
# An address ends at white space, at a bracket or quote that cannot be part of it, or at the next address.
_URL = lazy_pattern(
    rf"""(?:https?:[/\\]+|(?<=<)(?:{_OPENED}:|[a-z][a-z0-9+.-]+:[/\\])
        |(?<![a-z0-9])(?:{_WEB}:[/\\]+|[a-z][a-z0-9+.-]{{0,20}}+://|www\.|discord\.(?:gg|gift|new)/
        |discord(?:app)?\.com/(?:invite|template|gifts?)/))
        (?:\[[0-9a-f:.]+\]|(?!https?:[/\\])[^\s<>"`\ue000^{{}}|\[\]])+""",
    re.IGNORECASE | re.VERBOSE,
)
_BEGINNING = lazy_pattern(rf"({_WEB}):[/\\]*", re.IGNORECASE)
_ADDRESS_SIGN = lazy_pattern(
    rf"""{_WEB}:|:[/\\]|www\.|discord|<{_OPENED}:|\]\s*[(\[:]|=\s*["']?[/\\]{{2}}|&\#?\w+;|\\[!-/:-@\[-`{{-~]""",
    re.IGNORECASE | re.VERBOSE,
)
_UNTIL_SPACE = lazy_pattern(r"[^ \t\n\v\f\r\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff<]*")
"""The rest of an address in clients that link up to the next white space (as JavaScript defines it)."""
_HOST_GOES_ON = lazy_pattern(r"[^/\\?#<>^|\[\]:]*?[.\u3002\uff0e\uff61%]\w")
"""A domain behind a sign at which a `_URL` ends, although a host may hold it: `https://known.example{.other.example`."""
_PARTS = lazy_pattern(r"([a-z][a-z0-9+.-]*://)?([^/?#]*)(.*)", re.IGNORECASE | re.DOTALL)

_IN_TARGET = r"[^() \t\n\v\f\r<>]"  # other white space does not end a target
_TARGET = rf"<?(?P<target>(?:{_IN_TARGET}|\((?:{_IN_TARGET}|\({_IN_TARGET}*\))*\))*)>?"
_TITLE = r"""(?:\s+(?:"[^"]*"|'[^']*'|\([^()]*\)))?"""
_INLINE = lazy_pattern(rf"!?\[(?P<label>[^\[\]]*)\]\(\s*+{_TARGET}{_TITLE}\s*+\)")
_DEFINITION = lazy_pattern(rf"^[ \t]*\[(?P<name>[^\[\]\n]+)\]:[ \t]*+{_TARGET}{_TITLE}[ \t]*+(?:\n|$)", re.MULTILINE)
_USE = lazy_pattern(r"!?\[(?P<label>[^\[\]]*)\](?:[ ]?\[(?P<name>[^\[\]]*)\])?(?![(:])")
_LEADING = lazy_pattern(
    r"""(?:(?P<any>\]\(\s*)|\]:\s*|(?<![\w-])(?:href|src|action|formaction|poster)\s*=\s*["']?)
        (?:<(?P<angled>[^<>\n]*)>?|(?P<plain>[^ \t\n\v\f\r<>]*))""",
    re.IGNORECASE | re.VERBOSE,
)
"""A target in a link of any form, also with brackets in its label or without its end. `any`: it may be any text."""
_HOST_LIKE = lazy_pattern(r"(?:[\w-]+\.)+[a-z]{2,}(?:[/:?#]|$)|[/\\]{2}|[a-z][a-z0-9+.-]{1,30}:", re.IGNORECASE)
"""A target that leads elsewhere although it is no `_URL`: browsers read `https:host` and `\\host` as addresses."""
_ELSEWHERE = lazy_pattern(rf"{_OPENED}:|[/\\]{{2}}", re.IGNORECASE)
_REFERENCE = lazy_pattern(r"&(?:#[0-9]{1,7}|#x[0-9a-f]{1,6}|[a-z][a-z0-9]{1,31});", re.IGNORECASE)
_ESCAPE = lazy_pattern(rf"\\[!-/:-@\[-`{{-~]|{_REFERENCE.pattern}", re.IGNORECASE)
"""Escapes and character references, which CommonMark replaces by a character; HTML replaces references alone."""
_RUN = lazy_pattern(r"(?:[^ \t\n\v\f\r]*\][(:]\s+)?[^ \t\n\v\f\r]+")
_DOT = "[.\u2024\u3002\uff0e\uff61]"
_BARE_HOST = lazy_pattern(
    rf"""(?<![\w./\\-])(?:(?:[\w-]{{1,63}}{_DOT}){{1,8}}[^\W\d_]{{2,24}}|(?:[0-9]{{1,3}}\.){{3}}[0-9]{{1,3}}(?=\S{{0,60}}[a-z]))
        (?::[0-9]{{1,5}})?(?:[/\\]|[?\#](?=\w))[^\s,;!()<>]*""",
    re.IGNORECASE | re.VERBOSE,
)

_SKIPPED = "".join(map(chr, range(33)))
"""The characters that browsers skip around an address."""
MAX_PASSES = 20
"""Text that still has foreign addresses then was built to have them, and loses all signs of addresses: each pass reads
the whole text.
"""
_NO_ADDRESS = str.maketrans(dict.fromkeys("[]()<>{}:/\\.&=\"'", " "))
_REMOVED = "\ue000"
"""Marks a removed address until the text around it is tidied. From the private use area, which text does not use."""

_DEBRIS = [
    (lazy_pattern(rf"\[([^\[\]\n]*)\]\(\s*{_REMOVED}\s*\)?"), rf"\1{_REMOVED}"),
    (lazy_pattern(rf"""(?<=\])\(\s*{_REMOVED}(?:\s*(?:"[^"\n]*"|'[^'\n]*'))?\s*\)?"""), _REMOVED),
    (lazy_pattern(rf"\(\s*{_REMOVED}\s*\)|<\s*{_REMOVED}\s*>|\[\s*{_REMOVED}\s*\]"), _REMOVED),
    (lazy_pattern(rf"""(?P<mark>"|'|`|\*\*|\*|__|_|~~|\|\|){_REMOVED}(?P=mark)"""), _REMOVED),
    (lazy_pattern(rf"{_REMOVED}(?:[ \t]*{_REMOVED})+"), _REMOVED),
]
_ALONE = rf"[ \t]*+(?:(?:[-*+>•]|\d++[.)])[ \t]++)*{_REMOVED}[ \t]*+[.,;:!?]?[ \t]*+"
# Between two empty lines, one of them is removed as well.
_LONE_LINE = lazy_pattern(rf"(?<=\n\n){_ALONE}\n(?:\n|\Z)|^{_ALONE}(?:\n|\Z)", re.MULTILINE)
_TIDY = [
    (lazy_pattern(rf"^([ \t]*){_REMOVED}[ \t]*", re.MULTILINE), r"\1"),
    (lazy_pattern(rf"(?<![ \t])[ \t]*+{_REMOVED}[ \t]*+(?=[.,;:!?)\]}}]|$)", re.MULTILINE), ""),
    (lazy_pattern(rf"(?<![ \t])[ \t]++{_REMOVED}[ \t]*+|{_REMOVED}[ \t]++"), " "),
    (lazy_pattern(_REMOVED), ""),
]


class ResolvedCitations(NamedTuple):
    """The ids of the sources that an answer cites; its `pairs`, each the id of a source and of a conversation of the
    team in it; and the citations that name neither.
    """

    sources: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]
    unknown: tuple[str, ...]


def resolve_citations(citations: Iterable[str], sources: Sequence[Source]) -> ResolvedCitations:
    """Resolve `citations`, which name loaded `sources` or conversations in them; in order, each once."""
    source_of = {pair: source.id for source in sources if is_topic(source.id) for pair in pair_ids(source.text)}
    found, unknown = resolve_ids(citations, [*(source.id for source in sources), *source_of])
    pairs = tuple((source_of[each], each) for each in found if each in source_of)
    return ResolvedCitations(tuple(dict.fromkeys(source_of.get(each, each) for each in found)), pairs, tuple(unknown))


def linkable_texts(sources: Sequence[Source], conversation: Conversation) -> list[str]:
    """Return the texts whose addresses an answer may repeat: loaded sources, team turns, the asker's own part."""
    turns = [turn.text for turn in conversation.turns if turn.from_team or turn.asked_now]
    return [*map(trusted_text, sources), *(source.url or "" for source in sources), *turns]


def trusted_text(source: Source) -> str:
    """Return the text of a source whose addresses may be repeated: of a topic only what the team said."""
    if not is_topic(source.id):
        return source.text
    return "\n".join(answer for _, _, answer in answered_pairs(source.text))


def links_block(urls: Iterable[str]) -> str:
    """Return the end of an answer: `Links:` and one `<url>` a line, without previews. Empty if there are no `urls`."""
    listed = "\n".join(f"<{url}>" for url in dict.fromkeys(urls))
    return f"\n\nLinks:\n{listed}" if listed else ""


def remove_foreign_links(text: str, allowed_texts: Iterable[str]) -> str:
    """Remove the addresses that occur in none of `allowed_texts`, also inside code.

    A Markdown link with such an address becomes its label; a reference definition disappears. Addresses are equal if
    they differ only in the case of scheme and host, in a slash at the end, in slashes that browsers read alike, or in
    punctuation after them. An address in character references or with escapes (`https&colon;//…`) is one too.
    """
    text = text.replace(_REMOVED, "")
    if not _ADDRESS_SIGN.search(text):
        return text
    trusted = _Trusted(list(allowed_texts))
    # The text around a removed address can form a new one: repeat until nothing is foreign.
    left, passes = text, 0
    while (tidied := _remove_once(_spell_out(left, trusted), trusted)) != left:
        passes += 1
        left = tidied if passes < MAX_PASSES else tidied.translate(_NO_ADDRESS)
    return left if left == text else left.strip("\n").rstrip()


def addresses(text: str) -> list[str]:
    """Return every address in `text`, as written, without the punctuation that follows it."""
    return [_trim(match[0]) for match in _URL.finditer(text)]


def remove_addresses(text: str) -> str:
    """Remove all addresses, and what people type into a browser (`host.example/path`)."""
    return remove_foreign_links(_BARE_HOST.sub(_ANY_ADDRESS, text), ())


_ANY_ADDRESS = "https://removed.invalid"


def _parts_of_link(found: re.Match[str]) -> tuple[str, str, str]:
    """Split what `_LEADING` has found: what opens the link, its target, and the rest. An empty target leads nowhere."""
    group = "plain" if found["angled"] is None else "angled"
    before, target, after = found.string[found.start() : found.start(group)].removesuffix("<"), found[group], ""
    if found["any"] is None:
        target = target.rstrip("\"'") if _ELSEWHERE.match(target.strip(_SKIPPED)) else ""
    elif group == "plain":  # up to the bracket that closes the link
        depths = accumulate({"(": 1, ")": -1}.get(sign, 0) for sign in target)
        end = next((at for at, depth in enumerate(depths) if depth < 0), len(target))
        target, after = target[:end], target[end:]
    return before, target, after


class _Trusted:
    """The addresses in texts that may be repeated."""

    def __init__(self, texts: list[str]) -> None:
        self._texts = texts
        self._keys = {_comparison_key(address) for text in texts for address in addresses(text)}

    def holds(self, address: str) -> bool:
        return _comparison_key(_trim(address)) in self._keys

    def is_foreign(self, target: str) -> bool:
        """Return True if the target of a link leads elsewhere."""
        target = re.sub(r"[\t\n\r]", "", target).strip(_SKIPPED)
        if _URL.match(target) or _BEGINNING.match(target):
            return not self.holds(target)
        if re.match(r"[/\\]{2}", target):
            return not self.holds(f"https:{target}")
        if not _HOST_LIKE.match(target):
            return False
        known = re.compile(rf"(?<![\w./\\-]){re.escape(target)}(?![\w-]|\.\w)")
        return not any(known.search(text) for text in self._texts)

    def names_another_host(self, found: re.Match[str]) -> bool:
        """Return True if the text after an address makes another host of its host, or a user name:
        `https://known.example^@other.example`. It does not if a text has both as they are.
        """
        _, _, path = _parts(_trim(found[0]))
        rest = _UNTIL_SPACE.match(found.string, found.end())
        if path or rest is None or ("@" not in rest[0] and not _HOST_GOES_ON.match(rest[0])):
            return False
        return not any(f"{found[0]}{rest[0]}" in text for text in self._texts)


def _spell_out(text: str, trusted: _Trusted) -> str:
    """Replace escapes and character references where they hide something foreign."""

    def spelled(match: re.Match[str]) -> str:
        return match[0][1:] if match[0][0] == "\\" else re.sub(r"[\t\n\r]", "", html.unescape(match[0]))

    def read(match: re.Match[str]) -> str:
        run = match[0]
        for plain in (form.sub(spelled, run) for form in (_ESCAPE, _REFERENCE)):
            if plain != run and _remove_once(plain, trusted) != plain and _remove_once(run, trusted) == run:
                return plain
        return run

    return _RUN.sub(read, text) if _ESCAPE.search(text) else text


def _remove_once(text: str, trusted: _Trusted) -> str:
    dropped: set[str] = set()

    def define(match: re.Match[str]) -> str:
        if not trusted.is_foreign(match["target"]):
            return match[0]
        dropped.add(match["name"].lower())
        return ""

    def use(match: re.Match[str]) -> str:
        return match["label"] if (match["name"] or match["label"]).lower() in dropped else match[0]

    def inline(match: re.Match[str]) -> str:
        return (match["label"].strip() or _REMOVED) if trusted.is_foreign(match["target"]) else match[0]

    def leading(match: re.Match[str]) -> str:
        before, target, after = _parts_of_link(match)
        return f"{before}{_REMOVED}{after}" if target and trusted.is_foreign(target) else match[0]

    def bare(match: re.Match[str]) -> str:
        if trusted.holds(match[0]) and not trusted.names_another_host(match):
            return match[0]
        return _REMOVED + match[0][len(_trim(match[0])) :]

    text = _DEFINITION.sub(define, text)
    if dropped:
        text = _USE.sub(use, text)
    text = _INLINE.sub(inline, _INLINE.sub(inline, text))  # an image within a link comes off first
    return _tidy(_URL.sub(bare, _LEADING.sub(leading, text)))


def _tidy(text: str) -> str:
    if _REMOVED not in text:
        return text
    for pattern, left in _DEBRIS:
        text = pattern.sub(left, text)
    text = _LONE_LINE.sub("", text)
    for pattern, left in _TIDY:
        text = pattern.sub(left, text)
    return text


def _trim(address: str) -> str:
    """Remove the sentence's punctuation at the end, also a closing bracket that the address did not open."""
    end, unopened = len(address), address.count(")") - address.count("(")
    while address[end - 1] in ".,;:!?'*_~\\" or (address[end - 1] == ")" and unopened > 0):
        end -= 1
        unopened -= address[end] == ")"
    return address[:end]


def _comparison_key(address: str) -> str:
    """Return the same key for equal addresses. `www.` without a scheme is read as https."""
    scheme, host, rest = _parts(address)
    return f"{scheme.lower() or 'https://'}{host.lower()}{rest.rstrip('/')}"


def _parts(address: str) -> tuple[str, str, str]:
    """Return scheme, host and the rest as a browser finds them."""
    begun = _BEGINNING.match(address)
    if begun is not None:
        address = f"{begun[1]}://{address[begun.end() :]}".replace("\\", "/")
    return _PARTS.findall(address)[0]  # matches every text
