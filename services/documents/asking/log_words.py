"""What programs write where people say something else: "kicked out" is `disconnecting`, "crashed" is `exception`.

Added to the words that logs are searched for; never to conditions that a line has to fulfil.
"""

from __future__ import annotations

import re

_SAID = (
    (r"manag\w* to (?:log|sign|get) ?in|(?:log|sign)\w* ?in .*success|success\w* (?:log|sign|auth)|\bgot in\b|let in",
     "accepted opened session authenticated"),
    (r"log(?:ged|s)? ?(?:out|off)|\bleft\b|\bleave\b|sign(?:ed)? (?:out|off)|hung up", "disconnected closed logout session"),
    (r"kicked|thrown out|lock(?:ed)? out|banned|cut off", "disconnecting disconnect denied blocked too many"),
    (r"(?:wrong|bad|incorrect|mistyped) (?:pass|cred|login|pin)", "failed invalid authentication failure"),
    (r"dropp?(?:ed)?\b|\blost\b|went away|interrupt|broke", "closed reset broken lost disconnected terminated"),
    (r"crash|\bdied?\b|went down|fell over|blew up", "exception fatal panic killed exiting aborted terminated died"),
    (r"give(?:n|s)? up|gave up|abandon", "timed timeout giving aborted aborting"),
    (r"too long|slow|waited|never answered|no (?:answer|reply|response)|not respond|hang|hung|stuck",
     "timed timeout expired slow unresponsive"),
    (r"came (?:back )?up|come (?:back )?up|boot|launch|went live|go live", "started starting startup succeeded listening ready"),
    (r"shut|stopp|turned off|switched off|went offline", "shutdown stopping stopped disabled exiting disabling"),
    (r"ran out|\bfull\b|no (?:more )?(?:space|memory|room)", "memory space exhausted exceeded left"),
    (r"turned away|not allowed|no permission|forbid", "refused denied rejected unauthorized forbidden"),
    (r"delet|remov|clean|purg|got rid", "delete deleted removing removed cleanup"),
    (r"how (?:big|large)|\bsize\b", "size bytes length"),
    (r"how long did|duration|how much time", "took elapsed ms seconds"),
    (r"again|another (?:try|attempt)|once more", "retry retrying attempt"),
    (r"upper|at most|largest|highest|longest|maximum", "max maximum limit"),
    (r"lower|at least|smallest|lowest|shortest|minimum", "min minimum"),
    (r"misconfigur|not (?:been )?(?:set|configured)|unset", "undefined missing unset not defined"),
    (r"chosen|elect|vote", "election elected leader leading following"),
    (r"super ?user|administrator", "root admin"),
    (r"not reach|unreach|no (?:connection|route)|could not connect", "cannot open connect route host refused unreachable"),
    (r"outdated|no longer (?:used|supported)|old[- ]fashioned", "deprecated old obsolete"),
    (r"\bkill", "kill killing killed"),
    (r"throw\w* away|destroy|\bend(?:ed)? (?:the|a)\b", "terminating terminated destroyed deleting"),
    (r"nobody knows|not known|not recogni[sz]e", "unknown unrecognized invalid"),
    (r"how far|percent|halfway", "progress"),
    (r"options|parameters|flags|switches", "command line arguments parameters options"),
    (r"hang(?:s|ed)? up|said goodbye|farewell", "disconnect bye goodbye closed"),
    (r"run(?:s)? out of|no (?:more|further)", "exhausted available more"),
    (r"went away|go away|other (?:end|side)|far end", "peer remote endpoint stream end closed"),
)  # fmt: skip
_COMPILED = tuple((re.compile(said), written) for said, written in _SAID)


def written_for(question: str) -> str:
    """More words to look for; none where the question says it in the words of logs already."""
    folded = question.casefold()
    return " ".join(written for said, written in _COMPILED if said.search(folded))
