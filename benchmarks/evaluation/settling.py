"""What closing finished batches early does to recorded chats, with the typing that they do not hold made up.

`python -m benchmarks.evaluation.settling FILE…`
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from reactivex.subject import Subject

from clock import VirtualLoop
from dataflow import Keep
from model.events import Posted, Typing
from model.messages import Batch, Key
from model.servers import Servers
from services.conversations import TYPING_SECONDS, ConversationTracker, People, TeamIds, TypingTracker
from services.discord.recordings import read
from services.discord.wire import Decoder
from streams.conversations import WindowRules, batches

CHARS_A_SECOND = (3.0, 5.0)
REPEATED_SECONDS = 10.0


def posted(recording: Path) -> list[Posted]:
    decoder = Decoder()
    return [event for each in read(recording) for event in decoder.decode(each) if isinstance(event, Posted)]


def typed(messages: Sequence[Posted], chars_a_second: float) -> Iterator[Posted | Typing]:
    """The messages, and typing before each: every ten seconds, for as long as it takes, from the author's last on."""
    last: dict[Key, float] = {}
    for each in messages:
        message = each.message
        key = Key(message.channel_id, message.author.id)
        began = max(each.at - len(message.text) / chars_a_second, last.get(key, 0.0) + 1)
        while began < each.at:
            yield Typing(began, message.channel_id, message.author)
            began += REPEATED_SECONDS
        last[key] = each.at
        yield each


def batched(events: Iterable[Posted | Typing], rules: WindowRules) -> list[Batch]:
    """What the window makes of them."""
    in_order = sorted(events, key=lambda event: event.at)

    async def main() -> list[Batch]:
        source, got, typists = (
            Subject[Posted | Keep[Key]](),
            list[Batch](),
            TypingTracker(People(Servers({None: TeamIds()}), None)),
        )
        batches(source, ConversationTracker(), typists, rules, None).subscribe(got.append)
        for event in in_order:
            await asyncio.sleep(event.at - asyncio.get_running_loop().time())
            if isinstance(event, Typing):
                typists.note(event)
                source.on_next(Keep(Key(event.channel_id, event.author.id), event.at, TYPING_SECONDS))
            else:
                source.on_next(event)
        source.on_completed()
        return got

    with asyncio.Runner(loop_factory=lambda: VirtualLoop(in_order[0].at)) as runner:
        return runner.run(main())


def main() -> None:
    cli = argparse.ArgumentParser(description=__doc__)
    cli.add_argument("recordings", nargs="+", type=Path)
    for recording in cli.parse_args().recordings:
        messages = posted(recording)
        whole = batched(messages, WindowRules())
        for pace in CHARS_A_SECOND:
            now = {batch.messages: batch.closed_at for batch in batched(typed(messages, pace), WindowRules())}
            late = {b.messages: b.closed_at for b in batched(typed(messages, pace), WindowRules(settle=60))}
            pieces = sum(batch not in now for batch in late)
            sooner = sum(now.get(batch, at) < at - 1 for batch, at in late.items())
            batched_so = f"{len(whole)} batches without typing, {len(late)} with it"
            print(f"{recording.name}, {pace:g} characters/s: {batched_so}; {sooner} close early, {pieces} are cut")


if __name__ == "__main__":
    main()
