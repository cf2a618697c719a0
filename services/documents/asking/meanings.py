# ruff: noqa: E501 (tables of patterns, one meaning a line)
"""What people say where files have other words: "kicked out" is `disconnecting`, "how often" is `interval`.

Added to what is ranked; never to conditions that a line has to fulfil.
"""

from __future__ import annotations

import re
from functools import lru_cache

from services.search import parts

BONUS = 2.0
"""How much a path that fits in every part adds to a rank score, which is between 0 and 1 without identifiers: more than
everything else, so that the same setting of another owner, which holds the same words, comes after it."""

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
    """More words to look for in logs."""
    folded = question.casefold()
    return " ".join(written for said, written in _IN_LOGS if said.search(folded))


def fit(question: str, key_path: str) -> float:
    """How well the path of a value fits a question, 0 to 1.

    "How often is the health of db checked" names `db`, and says in other words `healthcheck.interval`. Each name on a
    path that the question holds counts, the last one most.
    """
    *owners, last = [name for name in _INDEX.sub("", key_path).split(".") if name] or [""]
    asked = _asked(question)
    found = _of(last, asked)
    # A list or an environment block: the name above says what the value is.
    named = sum(_of(owner, asked) for owner in owners) / len(owners) if owners else found
    return _LAST_SHARE * found + (1 - _LAST_SHARE) * named


@lru_cache(maxsize=256)
def _asked(question: str) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """Names as written, their word stems, and the names of what is meant."""
    written = frozenset(re.findall(r"(?<![\w.-])[\w.-]*\w", question))
    folded = question.casefold()
    meant = frozenset(name for said, names in _IN_KEYS if said.search(folded) for name in names.split())
    return written, frozenset(parts(question)), meant


def _of(name: str, asked: tuple[frozenset[str], frozenset[str], frozenset[str]]) -> float:
    written, stems, meant = asked
    plain = name.casefold()
    if name in written or (plain in meant and plain in {word.casefold() for word in written}):
        return _SPELT
    if plain in meant:
        return _MEANT
    small = parts(name)
    held = sum(part in stems for part in small) / len(small) if small else 0.0
    return _FORMS if held == 1 else 0.5 * held
