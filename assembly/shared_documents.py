"""Files and runbooks that other processes keep as well: what they change is noticed here."""

from __future__ import annotations

import logging
from collections.abc import Callable

from assembly.background import Background
from services.documents import Cases, Runbooks
from services.documents.store import StoreUnavailable, Together, naming

log = logging.getLogger(__name__)


async def follow_other_processes(
    shared: Together,
    cases: Cases,
    runbooks: Runbooks,
    background: Background,
    forget_answers: Callable[[str], object],
) -> None:
    """Keep the lists of files, deleted files and runbooks current when other processes change them.

    Raises StoreUnavailable.
    """

    def heard(name: str, there: bool) -> None:
        if name.startswith(naming.CASE_PREFIX):
            (cases.know if there else cases.forget)(int(name.removeprefix(naming.CASE_PREFIX)))
            if not there:
                forget_answers(name)
        else:
            background.start(look_again(name))

    async def look_again(name: str) -> None:
        try:
            await runbooks.look_again(name)
        except StoreUnavailable as error:
            log.warning("%s: what another process has changed is not known yet: %s", name, error)

    await cases.share(shared.notes)
    await shared.store.follow(heard)


async def flush_shared_store(shared: Together) -> None:
    """Write pending documents to where other processes read them; log an error where that fails."""
    try:
        await shared.store.flush()
    except StoreUnavailable as error:
        log.error("documents: what was written last is not kept: %s", error)  # noqa: TRY400 (a line for the operator)
