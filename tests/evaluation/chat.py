"""A chat of nine messages, annotated, for tests of the figures.

 1  0:00 ann          Why does it not start?          }
 2  0:05 ann          It says E7.                     } the first capture, with 4
 3  0:10 ben          Good morning!
 4  0:20 sue → 2      E7 is a missing key.            }
 5  1:40 ann          Ah, thanks                      } the second, of the same conversation
 6  3:20 sue → 5      You are welcome.                }
 7  5:00 ben          Where do keys go?
 8  5:10 sue          Good question.                    the third: it follows what ann has said to her
 9  5:11 sue → 7      Into keys.txt.                    the fourth, with 3 and 7: ben's conversation

Annotated as one: 1, 2, 4, 5, 8; and 3, 7, 9.
"""

from __future__ import annotations

import json
from pathlib import Path

from clock import rfc3339
from tests.talk import ANN, BEN, BOT, CHANNEL, GUILD, STAFF, START, snowflake

SAID = (
    (0, ANN, "Why does it not start?", None),
    (5, ANN, "It says E7.", None),
    (10, BEN, "Good morning!", None),
    (20, STAFF, "E7 is a missing key.", 2),
    (100, ANN, "Ah, thanks", None),
    (200, STAFF, "You are welcome.", 5),
    (300, BEN, "Where do keys go?", None),
    (310, STAFF, "Good question.", None),
    (311, STAFF, "Into keys.txt.", 7),
)
ANNOTATED = ((1, 2, 4, 5, 8), (3, 7, 9))


def id_of(number: int) -> int:
    return snowflake(SAID[number - 1][0])


def write_chat(folder: Path) -> Path:
    """The recording, with its annotations beside it."""
    channel = {"id": str(CHANNEL.id), "type": 0, "name": "help", "guild_id": str(GUILD)}
    lines: list[dict[str, object]] = [
        {"at": rfc3339(START), "t": "READY", "d": {"user": {"id": str(BOT.id), "username": "bot", "bot": True}}},
        {"at": rfc3339(START), "t": "GUILD_CREATE", "d": {"id": str(GUILD), "name": "g", "channels": [channel]}},
    ]
    for second, author, text, to in SAID:
        reference = {} if to is None else {"message_reference": {"message_id": str(id_of(to))}}
        message = {
            "id": str(snowflake(second)),
            "type": 0 if to is None else 19,
            "guild_id": str(GUILD),
            "channel_id": str(CHANNEL.id),
            "author": {"id": str(author.id), "username": author.name},
            "content": text,
            **reference,
        }
        lines.append({"at": rfc3339(START + second), "t": "MESSAGE_CREATE", "d": message})
    path = folder / "chat.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    gold = {"staff": {"sue": str(STAFF.id)}, "conversations": [[str(id_of(n)) for n in each] for each in ANNOTATED]}
    path.with_suffix(".gold.json").write_text(json.dumps(gold))
    return path
