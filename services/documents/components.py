"""Which part of a system wrote a line of a log."""

from __future__ import annotations

import re

from services.documents.severities import LevelField

_REACH = 240
_LONGEST = 120

_NAME = r"[A-Za-z_][\w.$/-]{0,119}(?:::[A-Za-z_]\w{0,60}){0,6}"
_BRACKETS = r"(?:\[[^\[\]]{0,120}(?:\[[^\]]{0,60}\][^\[\]]{0,120}){0,3}\])"

_IN_BRACKETS = re.compile(r"[\s:|-]{0,6}\[[^\n]{0,200}?[:.\[]([A-Za-z][\w$]{0,80})@[0-9]{1,6}\]")
"""[QuorumPeer[myid=1]/0:0:0:0:2181:FastLeaderElection@774]"""
_BEHIND = re.compile(
    rf"[\])>]?(?:\s{{1,4}}[0-9]{{1,7}}(?=\s))?[\s:|-]{{0,6}}(?:{_BRACKETS}[\s:|-]{{0,4}}){{0,3}}({_NAME})"
    r"(?:\[[0-9]{1,10}\]|\([^()\s]{0,40}\))?(?:\s?:(?!/)|\s-\s|\s\[|[\])]|\s\|)"
)
"""INFO [main] org.apache.hadoop.ipc.Client: …"""
_SYSLOG = re.compile(
    r"(?:[A-Z]{3,5}\s)?\s{0,4}[\w.:-]{1,100}\s{1,4}([\w./-]{1,80}(?:\([\w:./-]{1,60}\))?)(?:\[[0-9]{1,10}\])?:(?:\s|$)"
)
"""Dec 10 06:55:46 host sshd[24200]: …"""
_BETWEEN = re.compile(
    r"(?:^|[\s|\[(])([A-Za-z_][\w$-]{0,60}(?:[.:/][\w$-]{1,60}){0,12})[\])]?\s{0,4}[-|:]?\s{0,4}[\[(<|]?$"
)
"""2026-02-01 12:00:00,000 - my.logger - ERROR - …"""
_NAMED = re.compile(r"(?:^|\s)(?:component|logger|service|module|target|caller)=\"?([\w.$:/@-]{1,120})")


def component(line: str, end: int, field: LevelField | None, *, timed: bool) -> str | None:
    """`end`: where the time ends; `field`: the severity field, if there is one."""
    syslog = _SYSLOG.match(line, end, end + _REACH) if timed else None
    if field is None or not field.end or (syslog and syslog.end() <= field.start):
        return syslog[1] if syslog else None
    behind = max(end, field.end)
    found = (
        _IN_BRACKETS.match(line, behind, behind + _REACH)
        or _BEHIND.match(line, behind, behind + _REACH)
        or (_NAMED.search(line, 0, 2 * _REACH) if "=" in line else None)
        or (_BETWEEN.search(line[end : field.start][-_LONGEST:]) if timed and end < field.start else None)
    )
    return found[1] if found else None
