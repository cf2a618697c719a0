"""The redactor: replaces known secrets, and everything that has the shape of a secret, with fixed labels.

Hashes, UUIDs and snowflakes are no secrets, as people ask about them: length alone counts little. The patterns of
shapes have bounded or possessive repeats: time is linear in the length of a text, and memory does not grow with it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from urllib.parse import quote

from services import lazy_pattern
from services.redaction.named_secrets import (
    BREAK_CHARS,
    NAMES,
    PLACEHOLDER,
    Span,
    compile_run,
    end_of_run,
    named_secrets,
)


@dataclass(frozen=True, slots=True)
class Shape:
    """A kind of secret.

    Attributes:
        label: replaces each secret.
        markers: in lower case; a text without any of them has no such secret. Far cheaper than a pattern.
        hint: has to match the text in lower case as well. It begins with a few letters, so that the search is fast.
        spans: yields start and end of each secret in a text.
    """

    label: str
    markers: tuple[str, ...]
    hint: re.Pattern[str]
    spans: Callable[[str], Iterator[Span]]

    def may_be_in(self, lowered: str) -> bool:
        for marker in self.markers:  # a loop: any() costs as much again
            if marker in lowered:
                return self.hint.search(lowered) is not None
        return False

    def replace_in(self, text: str) -> tuple[str, int]:
        """Replace each secret, in each of its lines, by the label. Return the text and the number of secrets."""
        parts: list[str] = []
        at = count = 0
        for start, end in self.spans(text):
            lines = text[start:end].splitlines(keepends=True)
            parts += [text[at:start], *(self.label + line[len(line.rstrip(BREAK_CHARS)) :] for line in lines)]
            at, count = end, count + 1
        return "".join([*parts, text[at:]]), count


def label(name: str) -> str:
    return f"[redacted: {name}]"


def _shape(name: str, markers: str, *patterns: str, hint: str = "") -> Shape:
    """Make a shape of patterns, which are tried in turn. A group `kept` at the beginning stays readable."""
    joined = "|".join(patterns)
    pattern = lazy_pattern(joined if "(?P<kept>" in joined else f"(?P<kept>)(?:{joined})")

    def spans(text: str) -> Iterator[Span]:
        return ((match.end("kept"), match.end()) for match in pattern.finditer(text))

    return Shape(label(name), tuple(markers.split()), lazy_pattern(hint), spans)


_NAME_MARKERS = "pass pw psk credential secret token key string totp codes"
_NAME_HINT = lazy_pattern(
    r"(?:pass(?:w(?:or)?d|phrase|code)?|pwd?|psk|credential|secret|token|key|string|value|b(?:ase)?64|hash|seed|code)s?"
    r"(?:\\?[\"'`]\]?)?[ \t]{0,20}(?:[=:]|%3d|\\|string\b)"
)
_NAMED = Shape(label("secret"), tuple(_NAME_MARKERS.split()), _NAME_HINT, partial(named_secrets, code=False))
_SCHEME = r"(?i:bearer|basic|bot|token)[ \t]{1,20}"
_KEY_MARKS = lazy_pattern(
    r"-----(?P<which>BEGIN|END) [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    r"|\bPrivate-Lines: [0-9]{1,4}(?>(?:\s|\\n|>){1,6})"  # of PuTTY
)
_KEY_ENDS = lazy_pattern(
    r"(?>(?:[^-]|-(?!----BEGIN |----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)){0,20000})"
    r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
)
_KEY_HEADS = compile_run(r"(?>(?:\s|\\n|>){0,6})[A-Z][A-Za-z-]{1,29}:[^\n\\]{0,200}")
_KEY_MATERIAL = compile_run(r"(?>(?:\s|\\n|>){0,6})[A-Za-z0-9+/=]{20,100}+")
_KEY_LAST_LINE = lazy_pattern(r"(?>(?:\s|\\n|>){1,6})[A-Za-z0-9+/]{1,19}={0,2}(?=\s|\\n|$)")
_WORDS = lazy_pattern(r"[^\s>]+")
_KEY_PIECE = lazy_pattern(r"[A-Za-z0-9+/=]{1,100}")
_LEAST_PIECE = 20
_MAX_BEFORE_END = 20_000


def _private_keys(text: str) -> Iterator[Span]:
    """Find private keys. One without an end, or a beginning, reaches as far as it looks like key material: a long one
    takes two messages.
    """
    at = 0
    while mark := _KEY_MARKS.search(text, at):
        start, end = mark.span()
        if mark["which"] is None:
            start, end = end, end_of_run(_KEY_MATERIAL, text, end)
            if end > start and (last := _KEY_LAST_LINE.match(text, end)):
                end = last.end()
        elif mark["which"] == "END":
            start = _begin_of_material(text, max(at, start - _MAX_BEFORE_END), start)
        elif whole := _KEY_ENDS.match(text, end):
            end = whole.end()
        else:
            heads = end_of_run(_KEY_HEADS, text, end)
            material = end_of_run(_KEY_MATERIAL, text, heads)
            end = material if material > heads else end
        at = end
        if end > start and ((start, end) != mark.span() or mark["which"] == "BEGIN"):
            yield start, end


def _begin_of_material(text: str, first: int, end: int) -> int:
    """Return where the key material begins that ends at `end`; `end` if there is none. Its last line may be short."""
    begin = end
    for at, word in enumerate(reversed(list(_WORDS.finditer(text[first:end].replace("\\n", "  "))))):
        if not _KEY_PIECE.fullmatch(word[0]) or (at > 0 and len(word[0]) < _LEAST_PIECE):
            break
        begin = first + word.start() if len(word[0]) >= _LEAST_PIECE else begin
    return begin


_CALL_WITH_NAME = lazy_pattern(
    rf"\w\([ \t]{{0,9}}(?P<quote>[\"'])[\w.-]{{0,60}}{NAMES}(?P=quote),"
    rf"[ \t]{{0,9}}[bBrRuUfF]{{0,2}}(?P<mark>[\"'])(?!{PLACEHOLDER}|(?P=mark))"
)
_UNTIL_MARK = {mark: compile_run(rf"[^\\{mark}\n]++|\\[^\n]") for mark in "\"'"}
_ARGUMENT_ENDS = lazy_pattern(r"[\"'][ \t]{0,9}[,)]")


def _arguments(text: str) -> Iterator[Span]:
    """Find secrets in calls whose first argument is a name and the next its value."""
    at = 0
    while opening := _CALL_WITH_NAME.search(text, at):
        at = opening.end()
        end = end_of_run(_UNTIL_MARK[opening["mark"]], text, at)
        if end > at and _ARGUMENT_ENDS.match(text, end):
            yield at, end
            at = end


_PRIVATE_KEY = Shape(
    label("private key"), ("-----begin", "-----end", "private-lines: "), lazy_pattern(""), _private_keys
)
_PREFIXES = (
    "npm_|pypi-AgE|dop_v1_|doo_v1_|dor_v1_|shpat_|shpss_|shpca_|shppa_|whsec_|glsa_|glrt-|dckr_pat_|gsk_|xai-|nvapi-"
    "|tskey-auth-|sntrys_|figd_|lin_api_|lin_oauth_|nfp_|PMAK-|CFPAT-|GOCSPX-|ntn_|sbp_|pscale_tkn_|pscale_pw_|lsv2_pt_|lsv2_sk_"
)
"""The beginnings by which tokens of these services are recognised."""
SHAPES: tuple[Shape, ...] = (
    _PRIVATE_KEY,
    _shape(
        "webhook",
        "webhooks/ interactions/ hooks.slack.com webhook.office.com outlook.office.com hooks.zapier.com",
        r"https?://(?:[a-z]{1,20}\.)?discord(?:app)?\.com/api/(?:v[0-9]+/)?(?:webhooks|interactions)/[0-9]+/[\w-]+",
        r"https?://(?:hooks\.slack\.com|hooks\.zapier\.com/hooks)/[\w/-]+",
        r"https?://(?:[\w-]{1,60}\.webhook\.office\.com|outlook\.office\.com/webhook)/[\w/@-]+",
    ),
    _shape(
        "discord token",
        ".",
        # A snowflake in base 64 (hence M, N or O), a time stamp, a signature (Discord API reference, "Authentication").
        r"(?<![\w-])[MNO][\w-]{22,28}\.[\w-]{5,7}\.[\w-]{25,50}(?![\w-])",
        r"(?<![\w-])mfa\.[\w-]{60,}",
        hint=r"\.[\w-]{5,7}\.[\w-]{25}|mfa\.",
    ),
    _shape(
        "api key",
        "sk- sk_ rk_ akia asia aiza ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ glpat- hf_ xox xapp- eyj "
        + _PREFIXES.lower().replace("|", " ")
        + " sg. :aa age-secret-key- ya29. hvs. atatt3x atctt3x",
        # Letters alone need the name of their owner in front, or both cases mixed.
        r"(?<![A-Za-z0-9])(?:sk|rk)[-_](?:(?:(?:proj|svcacct|admin|ant|or|live|test)[-_]|(?=[\w-]{0,99}[0-9]))[\w-]{16,}"
        r"|(?=[a-z]{0,99}[A-Z])(?=[A-Z]{0,99}[a-z])[A-Za-z]{20,}(?![\w-]))",
        # With the secret of the key behind it.
        r"(?<![A-Za-z0-9])A[KS]IA[0-9A-Z]{16}(?![A-Za-z0-9])(?:[ \t,;:|\"']{1,4}[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=]))?",
        r"(?<![A-Za-z0-9])AIza[\w-]{30,}",
        r"(?<![A-Za-z0-9])(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{40,}|glpat-[\w-]{20,}|hf_[A-Za-z0-9]{30,})",
        r"(?<![A-Za-z0-9])(?:xox[a-z]-|xapp-)[\w-]{10,}",
        r"(?<![\w-])eyJ[\w-]{10,}\.eyJ[\w-]{5,}\.[\w-]*",
        rf"(?<![A-Za-z0-9])(?:{_PREFIXES})[\w-]{{20,}}",
        r"(?<![\w-])SG\.[\w-]{16,64}\.[\w-]{16,64}",
        r"(?<![\w:-])[0-9]{8,10}:AA[\w-]{33}(?![\w-])",  # of a bot of Telegram
        r"(?<![\w-])(?:AGE-SECRET-KEY-1[0-9A-Z]{40,}|(?:ya29|hvs)\.[\w-]{20,}|AT[AC]TT3x[\w=-]{40,})",
    ),
    _shape(
        "secret",
        "authorization",
        r"(?P<kept>(?i:authorization)(?:\\?[\"'])?[ \t]{0,20}[:=][ \t]{0,20}(?:\\?[\"'])?"
        rf"(?!(?:{_SCHEME})?{PLACEHOLDER})(?:{_SCHEME})?)[^\s\"'\\]+",
    ),
    _shape(
        "secret",
        "bearer",
        rf"(?P<kept>(?i:\bbearer)[ \t]{{1,20}})(?!{PLACEHOLDER})"
        r"(?=[\w.~+/=-]{20}|[\w.~+/=-]{0,99}[0-9])[\w.~+/=-]{8,}",
    ),
    _shape(
        "secret",
        "basic",
        r"(?P<kept>(?i:\bbasic)[ \t]{1,20})(?=[a-z0-9+/]{0,99}[A-Z])[A-Za-z0-9+/]{8,400}={1,2}(?![\w=])",
    ),
    _shape(
        "secret",
        'cookie: sig= login curl key-data: "auth" sshpass mysql "kty"',
        # Sessions, signed addresses, kubeconfig, .netrc, arguments of curl, Docker's logins.
        r"(?P<kept>\b(?i:cookie):[ \t]{0,9}[\w.-]{1,60}=|[?&]sig=|\bclient-key-data:[ \t]{0,9}"
        r"|\blogin\s{1,9}\S{1,100}\s{1,9}password\s{1,9}|(?<!\w)(?:-u|--user)[ =]['\"]?[^\s:'\"]{1,60}:"
        r"|\bsshpass -p ?['\"]?|\bmysql(?:dump|admin)?(?= )[^\n|;]{0,100} -p(?=\S)"
        r"|\"(?:d|p|q|dp|dq|qi|k)\":[ \t]{0,9}\"(?=[\w-]{20,2000}\")"  # of a JSON Web Key
        r"|\"auth\":[ \t]{0,9}\"(?=[A-Za-z0-9+/]{12,400}={1,2}\"|(?=[a-z0-9+/]{0,99}[A-Z])(?=[A-Z0-9+/]{0,99}[a-z])"
        rf"[A-Za-z0-9+/]{{16,400}}\"))(?!{PLACEHOLDER})[^\s;,'\"&]{{8,}}",
        hint=r"cookie:|sig=|key-data:|login\s|-u |--user|\"auth\"|sshpass|mysql|\"kty\"",
    ),
    _shape(
        "secret",
        "identified password",
        # Statements of SQL.
        rf"(?P<kept>\b(?i:identified\s{{1,9}}by|with\s{{1,9}}(?:encrypted\s{{1,9}})?password)\s{{1,9}}['\"])(?!{PLACEHOLDER})[^'\"\s]{{6,200}}",
        hint=r"identified\s|with\s",
    ),
    _shape(
        "secret",
        "</",
        # An element in a message; whole documents have `MARKUP_SHAPES`.
        rf"(?P<kept><[\w:.-]{{0,60}}{NAMES}>)(?!{PLACEHOLDER})(?=[^<\s]{{0,99}}[0-9])[^<\s]{{6,200}}(?=</)",
    ),
    _shape(
        "secret",
        "&lt;/",
        rf"(?P<kept>&lt;[\w:.-]{{0,60}}{NAMES}&gt;)(?!{PLACEHOLDER}|&lt;)[^<&\s]{{6,200}}(?=&lt;/)",
    ),
    _shape(
        "secret",
        _NAME_MARKERS,
        # A label in bold, and an argument behind the name of an option.
        rf"(?P<kept>{NAMES}(?::[*_]{{1,3}}|[*_]{{1,3}}:)[ \t]{{0,4}}`?"
        rf"|(?<![\w-])--(?:[\w-]{{1,40}}-)?{NAMES}[ \t]{{1,4}}['\"]?)"
        rf"(?!{PLACEHOLDER}|-)(?=[^\s`'\"]{{0,99}}[0-9])[^\s`'\"]{{8,}}",
        hint=r"[*_]:|:[*_]|--",
    ),
    _NAMED,
    Shape(label("secret"), tuple(_NAME_MARKERS.split()), lazy_pattern(""), _arguments),
    _shape(
        "secret",
        "://",
        # A token alone has both letters and digits.
        r"(?P<kept>://)(?=[A-Za-z_-]{0,99}[0-9])(?=[0-9_-]{0,99}[A-Za-z])[\w-]{20,200}(?=@)",
    ),
    _shape(
        "secret",
        "://",
        r"(?P<kept>://)(?:\[redacted: [a-z ]{1,20}\]|[^\s/:@]){0,100}:(?!\[redacted: )"
        r"[^\s/?#]{1,200}(?=@)",  # up to the last @: a password may have some
    ),
)

CODE_SHAPES = tuple(
    replace(shape, spans=partial(named_secrets, code=True)) if shape is _NAMED else shape for shape in SHAPES
)
"""For programs, where `token: str` and `token = next(tokens)` are no secrets."""

_is_sample = lazy_pattern(
    r"example|sample|dummy|placeholder|your|replace|x{4}|\*{3}|\.{3}|(?P<one>[\w*.-])(?P=one){5}|012345|123456|abcdef",
    re.IGNORECASE,
).search


def _without_samples(shape: Shape) -> Shape:
    """Return a shape that leaves out made-up tokens of documentation."""

    def spans(text: str) -> Iterator[Span]:
        return ((start, end) for start, end in shape.spans(text) if not _is_sample(text, start, end))

    return replace(shape, spans=spans)


_has_key_line = lazy_pattern(r"[A-Za-z0-9+/]{60}").search


def _whole_keys(text: str) -> Iterator[Span]:
    """Find private keys with a line of key material: a sample has `...` there."""
    return ((start, end) for start, end in _private_keys(text) if _has_key_line(text, start, end))


_TOKENS = frozenset(map(label, ("discord token", "webhook", "api key")))
DOCUMENTATION_SHAPES = (
    replace(_PRIVATE_KEY, spans=_whole_keys),
    *(_without_samples(shape) for shape in SHAPES if shape.label in _TOKENS),
)
"""For published documentation: keys and tokens that their own form shows."""

_COUNT_OR_SWITCH = r"\s{0,20}(?:[0-9]+(?:\.[0-9]+)?|(?i:true|false))\s{0,20}</"
_ATTRIBUTES = r"(?:\s[^<>]{0,200})?"

MARKUP_SHAPES: tuple[Shape, ...] = (
    _shape(
        "secret",
        "</",
        rf"(?P<kept><(?:[\w:.-]{{0,60}}{NAMES}{_ATTRIBUTES}"
        rf"|[\w:.-]{{1,60}}\s{_ATTRIBUTES}(?:key|name|id)=\"[\w:.-]{{0,60}}{NAMES}\"{_ATTRIBUTES})>(?:<!\[CDATA\[)?)"
        rf"(?!\s{{0,20}}{PLACEHOLDER}|(?<=<(?i:pass)>){_COUNT_OR_SWITCH}|(?<=<(?i:credentials)>){_COUNT_OR_SWITCH})[^<]*[^<\s](?=\s*</)",
    ),
    _shape(
        "secret",
        "value",
        rf"(?P<kept>(?:key|name)=\"[^\"\n]{{0,100}}{NAMES}\"\s{{1,9}}value=\")(?!{PLACEHOLDER})[^\"]+",
    ),
)
"""For documents in XML."""

_NO_DOMAIN = r"(?:service|socket|timer|target|slice|scope|mount|device|local)\b"

_ALONE = r"(?<![\w.+/:=#-])(?<![0-9][ ,;|])"
_UNIT = (
    r"(?:%|(?:[num\u00b5\u03bc]?s|secs?|seconds?|[kKMGT]?i?B|bytes?|rows?"
    r"|records?|lines?|items?|events?|requests?|ops|Hz)(?!\w))"
)
_NO_UNIT = rf"(?!(?:[ .-][0-9]{{1,8}}){{0,4}}[ \t]{{0,2}}{_UNIT})"
"""A measured or counted number is no telephone number."""
_NO_MORE = rf"(?![\w.-]?\w)(?![ ,;|]{{1,2}}[0-9]){_NO_UNIT}"
"""Several numbers side by side are no telephone numbers."""

PERSONAL_SHAPES: tuple[Shape, ...] = (
    _shape(
        "email",
        "@",
        # Neither a version (`left-pad@1.3.0-rc.x`), nor a unit of systemd, nor the user of a repository.
        r"(?<![\w.+%-])(?!git@)[\w.+%-]{1,64}@(?![0-9]+\.[0-9])"
        rf"(?:(?!{_NO_DOMAIN})[A-Za-z0-9-]{{1,63}}\.){{1,8}}(?!{_NO_DOMAIN})[A-Za-z]{{2,24}}(?![\w@])",
    ),
    _shape(
        "phone number",
        "+ ( - . 0",
        # With the code of the country, in groups or in one; else as in North America. Numbers side by side are none.
        r"(?<![\w+.-])\+(?=(?:[ .()-]{0,2}[0-9]){8,15}(?![0-9]))[1-9][0-9]{0,2}"
        r"[ .-]?(?:\([0-9]{1,4}\)[ .-]?|[0-9]{1,5}[ .-])"
        rf"[0-9]{{2,8}}(?:[ .-][0-9]{{2,8}}){{0,4}}(?![\w.-]?\w){_NO_UNIT}",
        rf"(?<![\w+.-])\+[1-9][0-9]{{9,14}}(?![\w.-]?\w){_NO_UNIT}",
        r"(?<![\w(.+-])\([2-9][0-9]{2}\) ?[2-9][0-9]{2}[ .-][0-9]{4}(?![\w.-]?\w)" + _NO_UNIT,
        r"(?<![\w.+/:=-])[2-9][0-9]{2}(?P<gap>[.-])[2-9][0-9]{2}(?P=gap)[0-9]{4}(?![\w.-]?\w)" + _NO_UNIT,
        # Within a country, with a zero in front: an area code and the rest, in one or in groups. In one piece it could
        # be any id.
        rf"(?=[0(]){_ALONE}(?:0(?=(?:[ /-]?[0-9]){{8,10}}(?![ /-]?[0-9]))[1-9][0-9]{{1,4}}"
        r"(?:[ /-][0-9]{6,8}|[ /-][0-9]{2,4}(?:[ -][0-9]{2,4}){1,3})"
        r"|0[1-9](?: [0-9]{2}){4}|0[2378] [0-9]{4} [0-9]{4}"
        rf"|\(0[1-9][0-9]{{0,4}}\)[ /-]?[0-9]{{3,8}}(?:[ -][0-9]{{2,6}}){{0,2}}){_NO_MORE}",
    ),
    _shape(
        "phone number",
        "tel phone fax whatsapp mobile cell",
        # Said to be one: in one piece as well.
        r"(?P<kept>(?<![\w-])(?i:tel(?:efon|ephone)?|(?:tele)?phone|fax|whatsapp|mobile|cell)"
        r"(?:[ _-]?(?i:number|nr|no))?\W{0,4}(?<![0-9]))"
        r"(?!(?:19|20)[0-9]{2}[-/])(?=(?:[ ()/-]{0,2}[0-9]){8,15}(?![0-9]))\(?[0-9][0-9 ()/-]{6,20}[0-9](?![\w.-]?\w)",
    ),
)
"""Personal data, for documents that others may ask about. Replies and prompts keep it."""

LABELS = tuple(dict.fromkeys(shape.label for shape in (*SHAPES, *MARKUP_SHAPES, *PERSONAL_SHAPES)))

MIN_KNOWN_CHARS = 6
"""Shorter values ("none", "test") are no secrets, and hiding them would hide ordinary words."""
KNOWN_LABEL = label("known secret")


class Redactor:
    """Takes secrets out of text. Idempotent; safe to share between threads. The number of lines stays the same, so that
    line numbers in evidence and captures keep their meaning.
    """

    def __init__(self, known: Iterable[str] = (), shapes: Sequence[Shape] = SHAPES) -> None:
        """`known`: the values of the configured secrets. Each line of a value counts as one."""
        self._shapes = tuple(shapes)
        values = {form for value in known for line in value.splitlines() for form in _written_forms(line.strip())}
        # A secret that is part of a label could never be taken out. Longest first: one may begin with another.
        usable = {value for value in values if not any(value in fixed for fixed in (KNOWN_LABEL, *LABELS))}
        self._values = sorted(usable, key=lambda value: (-len(value), value))
        self._known = re.compile("|".join(map(re.escape, self._values)))

    def text(self, text: str) -> str:
        """Return the text with each secret replaced by a label such as `[redacted: api key]`."""
        return self.redact_and_count(text)[0]

    def documentation_text(self, text: str) -> str:
        """Redact published documentation: only known secrets, private keys and tokens that look real. Sample passwords,
        placeholders, links and shell syntax stay.
        """
        return self._redact_and_count(text, DOCUMENTATION_SHAPES)[0]

    def redact_and_count(self, text: str) -> tuple[str, dict[str, int]]:
        """Redact a text, and count the secrets by label."""
        return self._redact_and_count(text, self._shapes)

    def _redact_and_count(self, text: str, shapes: Sequence[Shape]) -> tuple[str, dict[str, int]]:
        counts: dict[str, int] = {}
        if any(value in text for value in self._values):
            text, counts[KNOWN_LABEL] = self._known.subn(KNOWN_LABEL, text)
        # Most texts have no secret: finding that out must be cheap.
        lowered = text.lower()
        for shape in shapes:
            if shape.may_be_in(lowered):
                text, count = shape.replace_in(text)
                if count:
                    counts[shape.label] = counts.get(shape.label, 0) + count
        return text, counts


def _written_forms(value: str) -> set[str]:
    """Return the value as it is written in plain text, in a URL and in JSON."""
    if len(value) < MIN_KNOWN_CHARS:
        return set()
    return {
        value,
        quote(value, safe="", errors="replace"),
        json.dumps(value)[1:-1],
        json.dumps(value, ensure_ascii=False)[1:-1],
    }
