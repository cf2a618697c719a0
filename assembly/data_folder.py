"""The data folder: its lock and its permissions, and the state that a run reads at start and saves."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import logging
import re
import unicodedata
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path

from assembly.running import in_background
from clock import DAY, HOUR, MINUTE, now, run_blocking
from model.messages import Message, Place, snowflake_time
from model.outcomes import OutcomeKind
from model.servers import Servers
from model.words import INVISIBLE, without_invisible
from services.conversations import (
    Drafts,
    OptOutFile,
    OptOutRegistry,
    Outbox,
    Posts,
    Watermarks,
    read_posts,
    read_watermarks,
    render_watermarks,
)
from services.llm import (
    SHARED_GROUP,
    Budget,
    BudgetLimits,
    Limiter,
    ObserveTokens,
    Spending,
    Spent,
    TokenDays,
    Usage,
    read_spent,
    read_token_days,
    render_spent,
    render_token_days,
)
from services.privacy import limits_pseudonym, new_pseudonym_key, pseudonym_key
from services.redaction import Redactor
from services.storage import DataFolder, files, lock, make_private
from services.team import AuditLog, CapturedMessage
from services.telemetry import number_of
from settings import GuildLimitSettings, LimitSettings, Settings
from sinks.results import OutcomeRecord

log = logging.getLogger(__name__)


@contextlib.contextmanager
def lock_data_folder(settings: Settings, command: str) -> Generator[None]:
    """Lock the data folder for as long as the block runs, and close it to other users. `command`, such as
    `app.py --regen`, is shown to a person who finds it locked.

    Files that an earlier version or a copy has left open are closed as well. What is none of the program's keeps its
    permissions, and so do the operator's documents and the folders above them: others may have to write there. Raises
    as `services.storage.lock`.
    """
    with lock(settings.app.data_dir, command):
        for guild_id, server in settings.servers.own.items():
            if settings.guilds[guild_id].kb.sources_dir is None:
                server.kb.sources_dir.mkdir(parents=True, exist_ok=True)  # where its documents are put
        kbs = [each.kb for each in settings.servers.values()]
        documents = {path for kb in kbs for path in (*kb.document_folders, kb.links_file_path)}
        closed = make_private(private_paths(settings), documents)
        if closed:
            what = number_of(closed, "file or folder", "files and folders")
            log.info("%s: %s could be read by other users, and cannot any more", settings.app.data_dir, what)
        yield


MADE_KB_PATHS = ("index_path", "index_cache_path", "web_fetch_cache_dir")
LEARNED_KB_PATHS = ("team_raw_dir", "team_topics_dir", "team_index_path", "team_index_cache_path", "team_state_path")
KB_PATHS = ("sources_dir", "links_file_path", *MADE_KB_PATHS, *LEARNED_KB_PATHS)
"""The keys of `kb` that say where something is: what is made of documents and links, what the bot learns, and all."""

_OPERATORS_FOLDERS = frozenset({"backups", "logs", "recordings"})
"""Folders of an operator, with which a data folder is still the bot's alone."""


def private_paths(settings: Settings) -> set[Path]:
    """Return the paths that must be closed to other users of the machine: all of the data folder, or what belongs to
    its layout if it holds other things too, such as a folder of web pages.
    """
    kb, log_file, folder = settings.kb, settings.logging.file.path, DataFolder(settings.app.data_dir)
    inside = list(folder.root.iterdir()) if folder.root.is_dir() else []
    owned = {path for path in inside if folder.is_own(path)}
    others = [path for path in inside if path not in owned and path.name not in _OPERATORS_FOLDERS]
    places = owned if others else {folder.root}
    places |= {getattr(kb, key) for key in (*MADE_KB_PATHS, *LEARNED_KB_PATHS)}
    if log_file is not None:
        places |= {log_file, *log_file.parent.glob(f"{log_file.name}.*")}
    return places


SAVE_SECONDS = 2.0
"""A crash loses the watermarks of this time: catch-up repeats the messages, and finds in the threads which were
answered."""
WATERMARKS_KEPT_SECONDS = 30.0 * DAY
"""How long a place is quiet before its watermark is dropped; at least twice as long as catch-up looks back."""


_BETWEEN = f"[{INVISIBLE}\x1c-\x1e\x85\u200c\u200d\ufe00-\ufe0f\U000e0080-\U000e01ef]{{0,20}}"
"""Nothing that is seen. Joiners, variants of signs and odd line breaks hide a marker as well."""
_STYLED = (*range(0x2070, 0x2150), *range(0x2460, 0x2500), *range(0xFF01, 0xFF5F), *range(0x1D400, 0x1D800))
"""Letters, digits and signs of other widths and styles, such as full-width and bold ones."""


@lru_cache(maxsize=4)
def marker_pattern(marker: str) -> re.Pattern[str]:
    """Return the pattern of a marker in any case, width and style, with invisible characters in it.

    To normalise each text instead takes a hundred times as long: each new message has this asked of a hundred others.
    """
    plain = without_invisible(unicodedata.normalize("NFKC", marker)).casefold() or marker
    styled = defaultdict[str, list[str]](list)
    for each in map(chr, _STYLED):
        styled[unicodedata.normalize("NFKC", each).casefold()].append(each)
    forms = (re.escape("".join([each, each.upper(), *styled[each]])) for each in plain)
    return re.compile(_BETWEEN.join(f"[{each}]" for each in forms))  # ignoring case takes twice as long


@dataclass(frozen=True, slots=True)
class _BudgetGroup:
    """Those who are counted against the same budgets: a server with limits of its own, or all others.

    Attributes:
        guild_id: of that server; None for all others.
        key: of the section that sets the limits.
        path: of the counts, if they are kept in the data folder.
    """

    guild_id: int | None
    limits: BudgetLimits
    key: str
    path: Path

    @property
    def name(self) -> str:
        return SHARED_GROUP if self.guild_id is None else str(self.guild_id)


MakeLimiter = Callable[[str, BudgetLimits, str], Limiter]
"""Makes the limiter of a group, from its name, its limits, and the key of the section that sets them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """State that a run reads from the data folder at start and saves after changes.

    Attributes:
        is_durable: True if the run adds to the files; not so in replays and dry runs, whose answers nobody sees.
        watermarks: of all places, for catch-up. Those of places that are quiet for `watermarks_kept_seconds` are
            dropped.
        watermarks_at_start: a copy of those that were read at the start.
        outbox: replies of several pieces that are being posted.
        drafts: answers that wait for a person's approval.
        audit: what was decided by whom.
        budgets, usages: of each server with limits of its own, and of all others. `usages` hold LLM calls and tokens of
            the run; they count against `budgets`, and for reports (`token_days`).
        spent: the counts of budgets that are kept in the data folder, by their files.
        record: the outcomes, for reports.
        changed: set whenever there is something new to save.
    """

    folder: DataFolder
    is_durable: bool
    watermarks: Watermarks
    watermarks_at_start: Watermarks
    posts: Posts
    outbox: Outbox
    drafts: Drafts
    audit: AuditLog
    budgets: Servers[Limiter]
    usages: Servers[Usage]
    token_days: TokenDays
    record: OutcomeRecord
    opt_outs: OptOutRegistry
    opt_out_marker: str
    changed: asyncio.Event
    watermarks_kept_seconds: float
    spent: Mapping[Path, Spent]
    _forgotten: dict[int, int] = field(default_factory=dict[int, int], init=False)

    def forget_messages(self, author_id: int, until: int) -> None:
        """Withhold a person's messages with ids up to `until`, also in captures that still wait."""
        self._forgotten[author_id] = until

    def is_opted_out(self, author_id: int, text: str) -> bool:
        """Return True if a text must be neither recorded nor shown to a model: its author has opted out, or it contains
        the opt-out marker in any case, width and style, and whatever invisible stands in it.
        """
        return author_id in self.opt_outs or marker_pattern(self.opt_out_marker).search(text) is not None

    def is_withheld(self, message: Message) -> bool:
        """Like `is_opted_out`, for a message; also True for the messages of `forget_messages`."""
        return self._is_forgotten(message.author.id, message.id) or self.is_opted_out(message.author.id, message.text)

    def is_title_withheld(self, thread: Place) -> bool:
        """Like `is_withheld`, for the name of a thread: of whoever opened it, or for whom the bot opened it."""
        owner_id = self.posts.opener_of(thread.id) or thread.owner_id or 0
        return self._is_forgotten(owner_id, thread.id) or self.is_opted_out(owner_id, thread.name)

    def is_withheld_in_capture(self, message: CapturedMessage) -> bool:
        """Like `is_withheld`, for a message in a capture."""
        author_id = message.author_id
        return self._is_forgotten(author_id, message.message_id) or self.is_opted_out(author_id, message.turn.text)

    def _is_forgotten(self, author_id: int, message_id: int) -> bool:
        return message_id <= self._forgotten.get(author_id, -1)

    async def save(self) -> None:
        """Save watermarks, usage, tokens and outcomes. Raises OSError: the data folder cannot be written."""
        self.watermarks.forget_quiet(self.watermarks_kept_seconds)
        for each in self.spent.values():
            each.keep_recent(now())
        # All are rendered on the loop: in a thread, they could change meanwhile.
        watermarks = render_watermarks(self.watermarks.marks())
        spent = {path: render_spent(each) for path, each in self.spent.items()}
        tokens = render_token_days(self.token_days)
        # A cancelled save is still finished: it must not overwrite a later one afterwards.
        await run_blocking(files.replace, self.folder.watermarks, watermarks)
        for path, counted in spent.items():
            await run_blocking(files.replace, path, counted)
        await run_blocking(files.replace, self.folder.token_days, tokens)
        written = await self.record.save()
        await self.drafts.note_recorded(each.message_ids[-1] for each in written if each.result is not OutcomeKind.HELD)


def read_state(
    settings: Settings,
    *,
    is_durable: bool = True,
    is_replay: bool = False,
    keeps_reports: bool = False,
    on_tokens: ObserveTokens | None = None,
    make_limiter: MakeLimiter | None = None,
    opt_outs: OptOutRegistry | None = None,
) -> RunState:
    """Read the data folder. Blocking.

    `is_durable`: earlier runs' messages count as seen, and posts are written as they are made. Not so for replays and
    dry runs, which may get the same messages again. `is_replay`: posts from after its time are not read.
    `keeps_reports`: its outcomes and posts are written, for reports, even if it is not durable. `on_tokens`: called
    with the tokens of each LLM call. `make_limiter`: its limiters count together with other processes; None: budgets
    are counted here, and kept in the data folder. `opt_outs`: the registry that processes share; None: that of the data
    folder. Raises OSError: something in the data folder cannot be read.
    """
    folder = DataFolder(settings.app.data_dir)
    is_kept = is_durable or keeps_reports
    posts = read_posts(folder.posts)
    if is_replay:  # an earlier replay of the same messages has answered nothing
        posts = [post for post in posts if snowflake_time(post.last_asked_id) < now()]
    watermarks = read_watermarks(folder.watermarks) if is_durable else {}
    groups, spent = list(_budget_groups(settings)), dict[Path, Spent]()
    limiters: dict[int | None, Limiter]
    if make_limiter is not None:
        limiters = {each.guild_id: make_limiter(each.name, each.limits, each.key) for each in groups}
    else:
        pseudonym = _lazy_limits_pseudonym(folder, is_durable=is_durable)
        spent = {each.path: read_spent(each.path) for each in groups}
        limiters = {each.guild_id: Budget(each.limits, spent[each.path], each.key, pseudonym) for each in groups}
    budgets, token_days, changed = Servers(limiters), read_token_days(folder.token_days), asyncio.Event()
    return RunState(
        folder=folder,
        is_durable=is_durable,
        watermarks=Watermarks(watermarks, on_change=changed.set),
        watermarks_at_start=Watermarks(copy.deepcopy(watermarks)),
        posts=Posts(posts, folder.posts if is_kept else None),
        outbox=Outbox(folder.outbox if is_durable else None),
        drafts=Drafts(folder.drafts if is_durable else None),
        audit=AuditLog(folder.audit if is_durable else None),
        budgets=budgets,
        usages=budgets.map(lambda budget: Usage(Spending(budget, on_tokens, token_days))),
        token_days=token_days,
        record=OutcomeRecord(
            folder.outcomes if is_kept else None,
            Redactor(settings.secrets).text,
            keep_days=settings.report.keep_days,
            on_change=changed.set,
        ),
        opt_outs=OptOutFile(folder.opt_outs) if opt_outs is None else opt_outs,
        opt_out_marker=settings.discord.opt_out_marker,
        changed=changed,
        spent=spent,
        watermarks_kept_seconds=max(WATERMARKS_KEPT_SECONDS, 2 * MINUTE * settings.discord.catch_up_minutes),
    )


def _budget_groups(settings: Settings) -> Iterator[_BudgetGroup]:
    yield _BudgetGroup(None, _limits(settings.limits), "limits", DataFolder(settings.app.data_dir).usage)
    for guild_id, server in settings.servers.own.items():
        if settings.guilds[guild_id].limits != GuildLimitSettings():
            path = DataFolder(server.app.data_dir).usage
            yield _BudgetGroup(guild_id, _limits(server.limits), f"guilds.{guild_id}.limits", path)


def _lazy_limits_pseudonym(folder: DataFolder, *, is_durable: bool) -> Callable[[int], str]:
    """Return a function that gives a person's pseudonym in the counts of budgets. The key is made when it is called."""

    @cache
    def key() -> bytes:
        try:
            return run_pseudonym_key(folder, is_durable=is_durable)
        except OSError:  # a disk that fails keeps nobody from being answered: a key for this run
            return new_pseudonym_key()

    return lambda user_id: limits_pseudonym(key(), user_id)


REPLAY_KEY = b"replay"


def run_pseudonym_key(folder: DataFolder, *, is_durable: bool) -> bytes:
    """Return the key of pseudonyms; a fixed one if none may be written, as in a replay. Blocking. Raises OSError."""
    if is_durable:
        return pseudonym_key(folder.feedback_key)
    return folder.feedback_key.read_bytes() if folder.feedback_key.exists() else REPLAY_KEY


def _limits(limits: LimitSettings) -> BudgetLimits:
    return BudgetLimits(limits.chains_per_user_per_hour, limits.answers_per_day, limits.tokens_per_day)


@asynccontextmanager
async def autosave(saved: RunState) -> AsyncGenerator[None]:
    """Save soon after each change while the block runs, and once more at its end. Without changes, save each hour:
    older start times of chains must not stay in the files.

    A failed write is logged, and tried again at the next change.
    """

    async def save() -> None:
        try:
            await saved.save()
        except OSError as error:
            log.error("state was not saved: %s", error)  # noqa: TRY400 (one line for the operator)

    async def keep_saving() -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(HOUR):
                    await saved.changed.wait()
            await asyncio.sleep(SAVE_SECONDS)
            saved.changed.clear()
            await save()

    try:
        async with in_background(keep_saving()):
            yield
    finally:
        await save()


@asynccontextmanager
async def count_tokens(settings: Settings) -> AsyncGenerator[Usage]:
    """Count the tokens of a command for reports, against no budget. The caller must hold the data folder's lock."""
    path = DataFolder(settings.app.data_dir).token_days
    days = read_token_days(path)
    usage = Usage(Spending(Budget(BudgetLimits()), days=days))
    try:
        yield usage
    finally:
        if usage.calls:
            await run_blocking(files.replace, path, render_token_days(days))
