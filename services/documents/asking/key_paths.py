"""Which value of a configuration file a question means, by the names on its path (DOCUMENT_QA 5.3).

"How often is the health of db checked" names `db`, and says in other words `healthcheck.interval`. Each name on a path
that the question holds counts, the last one most; what people call usual settings is in a small dictionary.
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

# What is asked, and the names that settings of that meaning have. Patterns are tried on the lower-case question.
_MEANINGS = tuple(
    (re.compile(pattern), frozenset(names.split()))
    for pattern, names in (
        (r"how long (?:may|can|must|does|do|is|are|will|should|before)|time ?limit|gives? up|times? out|maximum (?:time|duration)|wait(?:s|ed|ing)? (?:at most|for)|max(?:imum)? wait", "timeout ttl max_wait wait duration lifetime deadline expiry expires max_age"),
        (r"^when\b|at what time|which days?|what time", "schedule cron at time run_at start date hour day"),
        (r"how (?:often|frequent(?:ly)?)|frequency|every how|how many (?:seconds|minutes) between|period(?:ic)?|cadence", "interval period frequency schedule cron every refresh poll scrape_interval"),
        (r"how many times|how many (?:attempts|tries|retries)|retr(?:y|ies|ied)|attempts|tries|how many (?:failed|failures|errors)|unhealthy", "retries retry attempts max_retries max_attempts tries backoff_limit"),
        (r"how many (?:copies|instances|replicas|workers|processes|threads|connections)|scaled|number of (?:copies|instances|replicas|workers|threads)", "replicas scale workers threads instances processes max_connections pool_size concurrency count"),
        (r"initial delay|grace|before (?:the )?(?:first|checks?|health)|warm(?: |-)?up|start(?:-| )?up (?:time|period)|time to start", "start_period initial_delay initialdelayseconds delay grace_period warmup"),
        (r"start(?:s|ed)? with|runs? (?:when|on|at|upon|as) |command|executes?|launch(?:es|ed)?|invoke[sd]?|arguments?|what does .* run|runs? at start", "command cmd entrypoint exec script args run"),
        (r"\b(?:docker|container|base)? ?image\b|which (?:version|tag)|based on|pulled", "image from base_image tag version"),
        (r"\bcalled\b|\bnames?\b|\bnamed\b|goes by|container name", "container_name name hostname title label id"),
        (r"\bbuil(?:t|d|ds) (?:from|context|in|out of)|from which (?:directory|folder|path|dir)|source (?:directory|folder|dir|path)|build (?:directory|folder|context)|what (?:directory|folder) .*\bbuil", "build context dockerfile path dir directory"),
        (r"\bstage\b|build target|multi-?stage", "target stage"),
        (r"restart(?:s|ed|ing)?|(?:when|if|after) (?:it |the .{0,20})?(?:crash|die|stop|exit|fail)|come back|brought back", "restart restart_policy restartpolicy"),
        (r"\bports?\b|listen(?:s|ing)?(?: on)?|reachable|published|exposed?|bound to", "port ports expose listen bind published listen_port"),
        (r"\bvolumes?\b|mount(?:s|ed)?|persist(?:s|ed)?|where .*\b(?:stored|kept|saved|data)\b|data directory", "volumes volume mount mounts volumemounts data_dir path target source storage"),
        (r"depend(?:s|ed|encies)?|before it|needs? .*first|waits? for|started (?:before|after)|requires?|must .* (?:before|first)|before .* (?:starts?|can start)", "depends_on needs requires wants links dependencies condition"),
        (r"\bnetworks?\b", "networks network network_mode"),
        (r"\busers?(?:name)?\b|log(?:s|ged)? in as|account|owner|runs? as", "user username login uid run_as account owner"),
        (r"\bpasswords?\b|passphrase|credentials?", "password passwd pass pwd password_file secret credentials"),
        (r"\blog(?:ging)? level|verbos(?:e|ity)|how much .* logs?", "log_level loglevel level verbosity logging"),
        (r"\bhosts?\b|address|server|endpoint|\burl\b|connect(?:s|ed)? to|points? (?:to|at)|talks? to", "host hostname address url uri endpoint server addr dsn"),
        (r"\bmemory\b|\bram\b|heap", "memory mem_limit mem_reservation limits xmx heap memory_limit shm_size"),
        (r"\bcpus?\b|cores", "cpu cpus cpu_shares limits cores"),
        (r"enabled?|disabled?|turned (?:on|off)|switched (?:on|off)|active|allowed", "enable enabled disable disabled active allow on"),
        (r"\bversion\b|which release", "version image tag apiversion schema_version"),
        (r"health|healthy|liveness|readiness|checked|checks?\b", "healthcheck health livenessprobe readinessprobe check probe"),
        (r"health.{0,30}(?:command|test|run|how)|(?:command|test).{0,30}health|checked by|tested", "test"),
        (r"\bsize\b|how (?:big|large)|maximum size|limit", "size max_size limit limits max maximum quota"),
        (r"\bdatabases?\b|\bdb\b|schema", "database db dbname database_name schema"),
        (r"\bcapabilit(?:y|ies)|privileges?", "cap_add cap_drop privileged capabilities"),
        (r"architecture|platform", "platform arch architecture"),
        (r"\benvironment\b|env(?:ironment)? var", "environment env env_file"),
        (r"\btime ?zone\b", "tz timezone"),
        (r"\blabels?\b|annotat", "labels label annotations"),
        (r"\bsecrets?\b", "secrets secret"),
    )
)  # fmt: skip


def fit(question: str, key_path: str) -> float:
    """How well a path fits, 0 to 1."""
    names = tuple(name for name in _INDEX.sub("", key_path).split(".") if name)
    if not names:
        return 0.0
    asked = _asked(question)
    *owners, last = names
    found = _of(last, asked)
    # A list or an environment block: the name above says what the value is.
    owner_fits = [_of(owner, asked) for owner in owners]
    named = sum(owner_fits) / len(owner_fits) if owner_fits else found
    return _LAST_SHARE * found + (1 - _LAST_SHARE) * named


@lru_cache(maxsize=256)
def _asked(question: str) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """Names as written, their word stems, and the names of what is meant."""
    written = frozenset(re.findall(r"[\w.-]*\w", question))
    folded = question.casefold()
    meant = frozenset(name for pattern, names in _MEANINGS if pattern.search(folded) for name in names)
    return written, frozenset(parts(question)), meant


def _of(name: str, asked: tuple[frozenset[str], frozenset[str], frozenset[str]]) -> float:
    written, stems, meant = asked
    if name in written:
        return _SPELT
    plain = name.casefold()
    if plain in meant:
        return _MEANT if plain not in {word.casefold() for word in written} else _SPELT
    small = parts(name)
    held = sum(part in stems for part in small)
    if small and held == len(small):
        return _FORMS
    return 0.5 * held / len(small) if small else 0.0
