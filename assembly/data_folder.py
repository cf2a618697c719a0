"""The data folder: its lock, the state that a run reads at start and saves, and the order of copying in a backup."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import logging
import os
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
from model.words import without_invisible
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
from services.storage.backups import CopyOrder
from services.team import AuditLog, CapturedMessage
from services.telemetry import number_of
from settings import GuildLimitSettings, KnowledgeSettings, LimitSettings, Settings
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


_OPERATORS_FOLDERS = frozenset({"backups", "logs", "recordings"})
"""Folders that operators add to a data folder that is the bot's alone."""


def private_paths(settings: Settings) -> set[Path]:
    """Return the paths that must be closed to other users of the machine: all of the data folder, or what belongs to
    its layout if it holds other things too, such as a folder of web pages.
    """
    kb, log_file, folder = settings.kb, settings.logging.file.path, DataFolder(settings.app.data_dir)
    inside = list(folder.root.iterdir()) if folder.root.is_dir() else []
    own = {path for path in inside if folder.is_own(path)}
    others = [path for path in inside if path not in own and path.name not in _OPERATORS_FOLDERS]
    places = own if others else {folder.root}
    places |= {kb.index_path, kb.index_cache_path, kb.web_fetch_cache_dir, kb.team_raw_dir}
    places |= {kb.team_topics_dir, kb.team_index_path, kb.team_index_cache_path, kb.team_state_path}
    if log_file is not None:
        places |= {log_file, *log_file.parent.glob(f"{log_file.name}.*")}
    return places


_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
"""The ending of earlier log files."""


def copy_order(settings: Settings) -> CopyOrder:
    """Give the order in which a backup copies the data folder: the reverse of the order in which the files are written.

    First the watermarks, which say that messages are done. Then answers: those being posted or waiting for
    approval, before recorded ones, which they become. Then team knowledge: topics, the decisions that they are made
    of, pending captures, and the archive that all of these are about. Likewise the index, its cache, and the pages.
    Last the lists that keep data from being used (deleted files, runbooks that are not shown, people who opted
    out): their newest state counts.
    """
    folder = DataFolder(settings.app.data_dir)
    first, last = [folder.watermarks, folder.outbox, folder.drafts, folder.posts, folder.feedback], list[Path]()
    for each in settings.servers.values():
        own, kb = DataFolder(each.app.data_dir), each.kb
        first += (kb.team_state_path, kb.team_index_path, kb.team_index_cache_path, kb.team_topics_dir, own.decisions)
        first += (own.pending, kb.index_path, kb.index_cache_path)
        # The places of captures are noted after these.
        last += (kb.team_raw_dir, own.places, kb.web_fetch_cache_dir, kb.links_file_path, *kb.document_folders)
    last += (folder.feedback_key, folder.tombstones, folder.shown_runbooks, folder.opt_outs)
    return CopyOrder(first=_plain(*first), last=_plain(*last), excluded=_plain(*_logs(settings), *_secrets(settings)))


_SECRETS = re.compile(r"\.env(?:rc|\..*)?~?|.*\.env~?", re.IGNORECASE | re.DOTALL)
"""Names of files with variables: `.env`, `.env.local`, `.envrc`, `prod.env`, and an editor's copies."""


def _secrets(settings: Settings) -> Iterator[Path]:
    """Return the paths of the token and the keys: a backup goes to places where these must not be."""
    paths = settings.app.data_dir.rglob("*")
    yield from sorted(path for path in paths if not path.is_dir() and _is_secret(path))


def _is_secret(path: Path) -> bool:
    # Not `resolve()`: before Python 3.13 it raises where a link leads to itself.
    leads_to = Path(os.path.realpath(path)).name
    return bool(_SECRETS.fullmatch(path.name) or _SECRETS.fullmatch(leads_to))


KB_PATHS = (
    "sources_dir",
    "links_file_path",
    "index_path",
    "index_cache_path",
    "web_fetch_cache_dir",
    "team_raw_dir",
    "team_topics_dir",
    "team_index_path",
    "team_index_cache_path",
    "team_state_path",
)
"""The keys of `kb` that say where something is."""


def files_not_in_backup(settings: Settings) -> Iterator[str]:
    """Name the bot's files that a backup does not contain, each with the reason in brackets."""
    for path in _secrets(settings):
        yield f"{path} (it holds secrets; keep it apart)"
    root = os.path.realpath(settings.app.data_dir)
    for guild_id, each in settings.servers.items():
        yield from _outside(root, each.kb, "" if guild_id is None else f"guilds.{guild_id}.")
    if settings.documents.store != "embedded":
        yield f"documents.store (what the server at {settings.documents.store} keeps)"


def _outside(root: str, kb: KnowledgeSettings, above: str) -> Iterator[str]:
    for key in KB_PATHS:
        (place,) = _plain(getattr(kb, key))
        if not place.is_relative_to(root):
            yield f"{above}kb.{key} ({place} lies outside of app.data_dir)"


def _logs(settings: Settings) -> Iterator[Path]:
    path = settings.logging.file.path
    if path is not None:
        yield path
        there = path.parent.iterdir() if path.parent.is_dir() else ()
        for each in there:
            base, _, tail = each.name.rpartition(".")
            if base == path.name and _DAY.fullmatch(tail):
                yield each


def _plain(*places: Path) -> tuple[Path, ...]:
    """Make paths absolute, and resolve links in their folders, so that they can be compared; links themselves stay."""
    plain = (Path(os.path.abspath(place)) for place in places)  # noqa: PTH100 (as said)
    return tuple(Path(os.path.realpath(place.parent), place.name) for place in plain)


SAVE_SECONDS = 2.0
"""A crash loses the marks of this time: catch-up repeats the messages, and finds in the threads which were answered."""
MARKS_KEPT_SECONDS = 30.0 * DAY
"""How long a place is quiet before its mark is dropped; at least twice as long as catch-up looks back."""


_INVISIBLE = (
    r"[\x00-\x08\x0e-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
    r"\U000e0000-\U000e01ef]"
)
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
    return re.compile(f"{_INVISIBLE}{{0,20}}".join(f"[{each}]" for each in forms))  # ignoring case takes twice as long


LimiterOf = Callable[[str, BudgetLimits, str], Limiter]
"""Makes the limiter of a group, from its name (`SHARED`, or the id of a server with limits of its own), its limits, and
the key of the section that sets them."""
SHARED = "shared"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """State that a run reads from the data folder at start and saves after changes.

    Attributes:
        is_durable: True if the run adds to the files; not so in replays and dry runs, whose answers nobody sees.
        watermarks: of all places, for catch-up; `watermarks_at_start`: a copy of those that were read at the start.
            Those of places that are quiet for `marks_kept_seconds` are dropped.
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
    marks_kept_seconds: float
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
        """Save marks, usage, tokens and outcomes. Raises OSError: the data folder cannot be written."""
        self.watermarks.forget_quiet(self.marks_kept_seconds)
        for each in self.spent.values():
            each.keep_recent(now())
        # Rendered on the loop: in a thread, marks could change meanwhile.
        marks, spent = (
            render_watermarks(self.watermarks.marks()),
            {path: render_spent(each) for path, each in self.spent.items()},
        )
        tokens = render_token_days(self.token_days)
        # A cancelled save is still finished: it must not overwrite a later one afterwards.
        await run_blocking(files.replace, self.folder.watermarks, marks)
        for path, counted in spent.items():
            await run_blocking(files.replace, path, counted)
        await run_blocking(files.replace, self.folder.token_days, tokens)
        written = await self.record.save()
        await self.drafts.note_recorded(each.message_ids[-1] for each in written if each.result is not OutcomeKind.HELD)


def read_state(
    settings: Settings,
    *,
    is_durable: bool = True,
    recorded: bool | None = None,
    on_tokens: ObserveTokens | None = None,
    limiter_of: LimiterOf | None = None,
    opt_outs: OptOutRegistry | None = None,
) -> RunState:
    """Read the data folder. Blocking.

    `is_durable`: earlier runs' messages count as seen, and posts are written as they are made. Not so for replays and
    dry runs, which may get the same messages again. `recorded`: of a replay, if outcomes and posts are kept for reports
    of it; None: it is no replay. `on_tokens`: called with the tokens of each LLM call. `limiter_of`: counts together
    with other processes; None: budgets are counted here, and kept in the data folder. `opt_outs`: the registry that
    processes share; None: that of the data folder. Raises OSError: something in the data folder cannot be read.
    """
    folder = DataFolder(settings.app.data_dir)
    kept = is_durable if recorded is None else recorded
    posts = read_posts(folder.posts)
    if recorded is not None:  # an earlier replay of the same messages has answered nothing
        posts = [post for post in posts if snowflake_time(post.last_asked_id) < now()]
    marks = read_watermarks(folder.watermarks) if is_durable else {}
    changed, spent = asyncio.Event(), dict[Path, Spent]()

    @cache
    def key_of_pseudonyms() -> bytes:  # made only when somebody asks
        try:
            return run_pseudonym_key(folder, is_durable=is_durable)
        except OSError:  # a disk that fails keeps nobody from being answered: a key for this run
            return new_pseudonym_key()

    def pseudonym_in_limits(user_id: int) -> str:
        return limits_pseudonym(key_of_pseudonyms(), user_id)

    def limiter(group: str, limits: LimitSettings, key: str, path: Path) -> Limiter:
        if limiter_of is not None:
            return limiter_of(group, _limits(limits), key)
        budget = Budget(_limits(limits), read_spent(path), key, pseudonym_in_limits)
        spent[path] = budget.spent
        return budget

    counted: dict[int | None, Limiter] = {None: limiter(SHARED, settings.limits, "limits", folder.usage)}
    for guild_id, server in settings.servers.own.items():
        if settings.guilds[guild_id].limits != GuildLimitSettings():
            path = DataFolder(server.app.data_dir).usage
            counted[guild_id] = limiter(str(guild_id), server.limits, f"guilds.{guild_id}.limits", path)
    budgets, token_days = Servers(counted), read_token_days(folder.token_days)
    return RunState(
        folder=folder,
        is_durable=is_durable,
        watermarks=Watermarks(marks, on_change=changed.set),
        watermarks_at_start=Watermarks(copy.deepcopy(marks)),
        posts=Posts(posts, folder.posts if kept else None),
        outbox=Outbox(folder.outbox if is_durable else None),
        drafts=Drafts(folder.drafts if is_durable else None),
        audit=AuditLog(folder.audit if is_durable else None),
        budgets=budgets,
        usages=budgets.map(lambda budget: Usage(Spending(budget, on_tokens, token_days))),
        token_days=token_days,
        record=OutcomeRecord(
            folder.outcomes if kept else None,
            Redactor(settings.secrets).text,
            keep_days=settings.report.keep_days,
            on_change=changed.set,
        ),
        opt_outs=OptOutFile(folder.opt_outs) if opt_outs is None else opt_outs,
        opt_out_marker=settings.discord.opt_out_marker,
        changed=changed,
        spent=spent,
        marks_kept_seconds=max(MARKS_KEPT_SECONDS, 2 * MINUTE * settings.discord.catch_up_minutes),
    )


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
