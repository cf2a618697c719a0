"""The words in which people ask about files, and those of logs and configurations for the same things."""

from __future__ import annotations

import re
from functools import lru_cache

from services.documents import prepared
from services.search import smallest_tokens

# ruff: noqa: E501 (tables of words, one class a line)


_ALIKE = {"FATAL": ("FATAL", "CRITICAL"), "CRITICAL": ("CRITICAL", "FATAL")}
LEVELS = {word: _ALIKE.get(level, (level,)) for level, words in prepared.LEVELS.items() for word in words.split()}
"""Levels by the words for them. FATAL and CRITICAL may mean the same: the one that the word names comes first."""

COLUMNS = {
    "severity": "(?:log_)?levels? severit(?:y|ies)",
    "component": "components? loggers? modules? class(?:es)? services? process(?:es)? daemons? programs? writers?",
    "day": "days? dates?",
    "hour": "hours?",
    "minute": "minutes?",
    "thread": "threads?",
    "address": "ip(?:s|_address(?:es)?)? address(?:es)?",
}
"""The columns that lines can be counted by, with the words for them."""

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")

_NUMBERS = {
    "a couple of": 2,
    "a few": 3,
    "penultimate": 2,
    "second": 2,
    "third": 3,
    "fourth": 4,
    "fifth": 5,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "eight": 8,
    "nine": 9,
    "ten": 10,
}

SIDES = {
    "until": "no_later_than not_later_than up_to_and_including up_to until till by",
    "since": "no_earlier_than not_earlier_than starting_from starting_at onwards_from since",
    "before": "earlier_than older_than prior_to ahead_of before",
    "after": "later_than newer_than more_recent_than past after",
}
"""The sides of a time, with the words for them."""

_FEW = "a_couple_of a_few two three four five six seven eight nine ten"
_CLASSES = {
    "LEVEL": " ".join(f"{word}s?" for word in sorted(LEVELS, key=len, reverse=True)),
    "COLUMN": " ".join(COLUMNS.values()),
    "FEW": _FEW,
    "N": rf"\d{{1,3}} {_FEW}",
    "ORDINAL": r"second third fourth fifth penultimate [2-9](?:nd|rd|th)",
    "ENTRY": "entr(?:y|ies) lines? messages? records? events? logs? level lvl severity statements? output",
    "THING": "entry line message one record log row event thing",
    "THINGS": "entries lines? messages records rows events logs ones",
    "IT": "it that this there them those",
    "WHAT": "what anything something",
    "HAPPENED": "came comes? happen(?:s|ed)? logged written recorded printed stands? is was were goes went occur(?:s|red)?",
    "CLOSE": "right just immediately directly straight shortly moments? seconds",
    # The sides of a line: as an adverb, before a noun, as a verb, before `it`, and behind a number of lines.
    "NEXT_ADVERB": "after(?:wards?)? next below",
    "NEXT_PLACE": "behind following",
    "NEXT_ADJECTIVE": "next following",
    "NEXT_VERB": "follow(?:s|ed|ing)? succeed(?:s|ed|ing)?",
    "NEXT_TO": "after",
    "NEXT_AWAY": "later on further(?:_down|_on)? down",
    "NEXT_LAST": "after(?:wards?)?",
    "PREVIOUS_ADVERB": "before(?:hand)? above prior earlier previously",
    "PREVIOUS_PLACE": "ahead preceding",
    "PREVIOUS_ADJECTIVE": "previous preceding prior",
    "PREVIOUS_VERB": "preced(?:es?|ed|ing) led_(?:up_)?to",
    "PREVIOUS_TO": "before prior_to",
    "PREVIOUS_AWAY": "earlier back up further_up previously",
    "PREVIOUS_LAST": "before(?:hand)? earlier prior",
    "FIRST": "first 1st earliest initial(?:ly)? oldest (?:start|begin(?:s|ning)?)_of",
    "LAST": "last latest most_recent(?:ly)? newest final(?:ly)? end_of",
    "START": "starts? started begins? set_in",
    "STOP": "stops? ends? finish(?:es)? cease",
    "KINDS": "distribution breakdown histogram statistics stats tally counts? numbers? totals?",
    "BY": "per (?:(?:group(?:ed|ing)?|count(?:ed)?|split|broken_down)_)?by (?:for|in|of)_each",
    "MENTION": "mention(?:s|ed|ing)? contain(?:s|ed|ing)? hits? with appear(?:s|ed)? show(?:s|ed)?_up come_up occur(?:s|red)?",
}

# Words that ask, beside those of the classes.
_ASKING = """
    errors? warnings? warn fatal critical info debug trace notice files? logs? logg?ed logfiles? levels? lvl severit(?:y|ies)
    shown? shows about written wrote write finds? found recent many often counts? total amount quantity list all any every each times? between since until during around exactly say(?:s|ing)? said tell give text
    print content position distribution breakdown common frequent(?:ly)? most which what when where who why how did does do are
    the report(?:ed|s)? records? exists? present see seen attached one attachment upload(?:ed)?
    posted evidence stuff exact full whole please at on in of for to with its it everything anywhere nowhere come up
    down still ever sign altogether overall quote happening search look(?:ing)? grep refer(?:s|red)? per only single very
    instan(?:ce|t) occurrences? numbers? later entries and""".replace("\n", " ")
# What is asked for in these words stands in a line without them.
_NAMING = "types? kinds? categor(?:y|ies) date day timestamp components? ips? address(?:es)? users? wrong points? gone"


def any_of(*names: str) -> str:
    """Return a pattern for the words of the named classes, and for other words literally.

    Each word is a regular expression, letter case aside; `_` means a space.
    """
    words = [word for name in names for word in _CLASSES.get(name, name).split()]
    return f"(?:{'|'.join(words)})".replace("_", r"\s++")


_STRUCTURE = re.compile(
    any_of(
        *("THING", "THINGS", "WHAT", "HAPPENED", "CLOSE", "FEW", "ORDINAL", "FIRST", "LAST", "MENTION"),
        *(f"{side}_{form}" for side in ("NEXT", "PREVIOUS") for form in ("ADVERB", "ADJECTIVE", "VERB")),
        _ASKING,
        _NAMING,
    ),
    re.IGNORECASE,
)


def asks(word: str) -> bool:
    """Return True if a word belongs to the wording of a question, and is not searched."""
    return not word.isdigit() and _STRUCTURE.fullmatch(word) is not None


_THING = re.compile(any_of(_NAMING), re.IGNORECASE)


def names_thing(word: str) -> bool:
    """Return True if a word that is not searched may name what is asked for, and lines are something else."""
    return _THING.fullmatch(word) is not None


_LINES = re.compile(
    any_of("ENTRY", "THING", "THINGS", "LEVEL", "time", "files?", "ones?", "kinds?", "types?"), re.IGNORECASE
)


def asks_for_lines(noun: str) -> bool:
    """Return True if a noun means lines or their levels: "which entries", "which errors"."""
    return _LINES.fullmatch(noun) is not None


def number_of(words: str) -> int:
    """Return the number in `5`, `five`, `a few`, `3rd`, `third`."""
    digits = re.match(r"\d+", words)
    return max(1, int(digits[0])) if digits else _NUMBERS[" ".join(words.lower().split())]


# ruff: noqa: E501 (tables of patterns, one meaning a line)


BONUS = 2.0
"""The bonus for a path that fits in every part. Rank scores are between 0 and 1 without identifiers: the bonus outweighs
all else, so that the same setting of another owner, with the same words, ranks lower."""

_LAST_SHARE = 0.5
_SPELT, _FORMS, _MEANT = 1.0, 0.85, 0.75
_INDEX = re.compile(r"\[\d+\]")


def _compiled(table: dict[str, str]) -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple((re.compile(said), written) for said, written in table.items())


# Tried on the lower-case question.
_IN_LOGS = _compiled({
    r"manag\w* to (?:log|sign|get) ?in|(?:log|sign)\w* ?in .*success|\bgot in\b|let in": "accepted opened session authenticated",
    r"log(?:ged|s)? ?(?:out|off)|\bleft\b|\bleave\b|sign(?:ed)? (?:out|off)|h[au]ng up": "disconnected closed logout session",
    r"kicked|thrown out|lock(?:ed)? out|banned|cut off": "disconnecting disconnect denied blocked too many",
    r"(?:wrong|bad|incorrect) (?:pass|cred|login|pin)": "failed invalid authentication failure",
    r"dropp?(?:ed)?\b|\blost\b|went away|interrupt|broke|(?:other|far) (?:end|side)": "closed reset broken lost disconnected terminated peer",
    r"crash|\bdied?\b|went down|\bkill": "exception fatal panic killed exiting aborted terminated died",
    r"g[ai]ve(?:n|s)? up|abandon": "timed timeout giving aborted aborting",
    r"too long|slow|waited|never answered|no (?:answer|reply|response)|not respond|hang|hung|stuck": "timed timeout expired slow unresponsive",
    r"c[ao]me (?:back )?up|boot|launch|went live|go live": "started starting startup succeeded listening ready",
    r"shut|stopp|turned off|switched off|went offline": "shutdown stopping stopped disabled exiting disabling",
    r"r[au]ns? out|\bfull\b|no (?:more )?(?:space|memory|room)": "memory space exhausted exceeded left",
    r"turned away|not allowed|no permission|forbid": "refused denied rejected unauthorized forbidden",
    r"delet|remov|clean|purg|got rid": "delete deleted removing removed cleanup",
    r"how long did|duration|how much time": "took elapsed ms seconds",
    r"again|another (?:try|attempt)|once more": "retry retrying attempt",
    r"upper|at most|largest|highest|longest|maximum": "max maximum limit",
    r"lower|at least|smallest|lowest|shortest|minimum": "min minimum",
    r"misconfigur|not (?:been )?(?:set|configured)|unset": "undefined missing unset not defined",
    r"not reach|unreach|no (?:connection|route)|could not connect": "cannot open connect route host refused unreachable",
})  # fmt: skip
_IN_KEYS = _compiled({
    r"how long (?:may|can|must|does|do|is|are|will|should|before)|time ?limit|gives? up|times? out|maximum (?:time|duration)|wait(?:s|ed|ing)? (?:at most|for)|max(?:imum)? wait": "timeout ttl max_wait wait duration lifetime deadline expiry expires max_age",
    r"^when\b|at what time|which days?|what time": "schedule cron at time run_at start date hour day",
    r"how (?:often|frequent(?:ly)?)|frequency|every how|how many (?:seconds|minutes) between|period(?:ic)?|cadence": "interval period frequency schedule cron every refresh poll scrape_interval",
    r"how many (?:times|attempts|tries|retries|failed|failures|errors)|retr(?:y|ies|ied)|attempts|tries|unhealthy": "retries retry attempts max_retries max_attempts tries backoff_limit",
    r"(?:how many|number of) (?:copies|instances|replicas|workers|processes|threads|connections)|scaled": "replicas scale workers threads instances processes max_connections pool_size concurrency count",
    r"initial delay|grace|before (?:the )?(?:first|checks?|health)|warm(?: |-)?up|start(?:-| )?up (?:time|period)|time to start": "start_period initial_delay initialdelayseconds delay grace_period warmup",
    r"start(?:s|ed)? with|runs? (?:when|on|at|upon|as) |command|executes?|launch(?:es|ed)?|invoke[sd]?|arguments?|what does .* run": "command cmd entrypoint exec script args run",
    r"\bimage\b|which (?:version|tag|release)|based on|pulled": "image from base_image tag version",
    r"\bcalled\b|\bnames?\b|\bnamed\b|goes by": "container_name name hostname title label id",
    r"\bbuil(?:t|d|ds) (?:from|context|in|out of)|from which (?:directory|folder|path|dir)|(?:source|build) (?:directory|folder|dir|path|context)": "build context dockerfile path dir directory",
    r"\bstage\b|build target|multi-?stage": "target stage",
    r"restart(?:s|ed|ing)?|(?:when|if|after) (?:it |the .{0,20})?(?:crash|die|stop|exit|fail)|come back|brought back": "restart restart_policy restartpolicy",
    r"\bports?\b|listen(?:s|ing)?|reachable|published|exposed?|bound to": "port ports expose listen bind published listen_port",
    r"\bvolumes?\b|mount(?:s|ed)?|persist(?:s|ed)?|where .*\b(?:stored|kept|saved|data)\b|data directory": "volumes volume mount mounts volumemounts data_dir path target source storage",
    r"depend(?:s|ed|encies)?|before it|needs? .*first|waits? for|started (?:before|after)|requires?|must .* (?:before|first)|before .* (?:starts?|can start)": "depends_on needs requires wants links dependencies condition",
    r"\busers?(?:name)?\b|log(?:s|ged)? in as|account|owner|runs? as": "user username login uid run_as account owner",
    r"\bpasswords?\b|passphrase|credentials?": "password passwd pass pwd password_file secret credentials",
    r"\blog(?:ging)? level|verbos(?:e|ity)|how much .* logs?": "log_level loglevel level verbosity logging",
    r"\bhosts?\b|address|server|endpoint|\burl\b|connect(?:s|ed)? to|points? (?:to|at)|talks? to": "host hostname address url uri endpoint server addr dsn",
    r"\bmemory\b|\bram\b|heap": "memory mem_limit mem_reservation limits xmx heap memory_limit shm_size",
    r"enabled?|disabled?|(?:turned|switched) (?:on|off)|active|allowed": "enable enabled disable disabled active allow on",
    r"health|liveness|readiness|checked|checks?\b": "healthcheck health livenessprobe readinessprobe check probe",
    r"health.{0,30}(?:command|test|run|how)|(?:command|test).{0,30}health|checked by|tested": "test",
    r"\bsize\b|how (?:big|large)|limit": "size max_size limit limits max maximum quota",
})  # fmt: skip


def words_in_logs(question: str) -> str:
    """Return synonyms of the question's words that logs use.

    People say "kicked out" where logs say `disconnecting`. These words are added to what is ranked, never to conditions
    that a line has to fulfil.
    """
    folded = question.casefold()
    return " ".join(written for said, written in _IN_LOGS if said.search(folded))


def fit(question: str, key_path: str) -> float:
    """Return how well the path of a value fits a question, 0 to 1.

    "How often is the health of db checked" contains `db`, and means `healthcheck.interval` in other words. Each name of
    the path in the question counts, the last one most.
    """
    *owners, last = [name for name in _INDEX.sub("", key_path).split(".") if name] or [""]
    asked = _names_in(question)
    found = _name_fit(last, asked)
    # A list or an environment block: the name above says what the value is.
    named = sum(_name_fit(owner, asked) for owner in owners) / len(owners) if owners else found
    return _LAST_SHARE * found + (1 - _LAST_SHARE) * named


@lru_cache(maxsize=256)
def _names_in(question: str) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """Return the names in a question as written, their word stems, and synonyms of its words."""
    written = frozenset(re.findall(r"(?<![\w.-])[\w.-]*\w", question))
    folded = question.casefold()
    meant = frozenset(name for said, names in _IN_KEYS if said.search(folded) for name in names.split())
    return written, frozenset(smallest_tokens(question)), meant


def _name_fit(name: str, asked: tuple[frozenset[str], frozenset[str], frozenset[str]]) -> float:
    written, stems, meant = asked
    plain = name.casefold()
    if name in written or (plain in meant and plain in {word.casefold() for word in written}):
        return _SPELT
    if plain in meant:
        return _MEANT
    small = smallest_tokens(name)
    held = sum(part in stems for part in small) / len(small) if small else 0.0
    return _FORMS if held == 1 else 0.5 * held
