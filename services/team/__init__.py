"""Team knowledge: the raw archive of captured conversations (tier 1), decisions about them, and the topic files that
follow from both (tier 2).

How a pair travels:

    captures        a team member's part and the messages around it, joined with earlier captures of the conversation
    pending         captures whose images cannot be described yet, each in a file of its own
    pair_links      where on Discord each stored pair comes from
    archive         the grammar of its blocks, which `sinks.team` appends, and the labels of who speaks in them;
                    `archive_files` finds, reads and repairs the files
    library         hands out the oldest undecided pair, and is the one writer of all that follows:
      decisions     the log, append-only, which is what counts
      topics        the topics that follow from archive and decisions (`fold`), each with the content of its file
      index         the team index, the cache of descriptions, and when a topic is described again
      filing        the rules for decisions: which topic file a pair goes into, what it replaces
      state         the files of the library, how far it has come, and where it began
    opening         reads all of it at a start, and repairs what a crash left undone
    rebuilding      `--regen`: new decisions for the whole archive, swapped in at the end
    removals        `--kb`: what operators see, remove and restore
    teaching        what a team member writes in a form, as a capture
    audit           what was decided by whom, about pairs, drafts and gaps

As topics are a fold of archive and decisions, recovery, rebuild and undo are one mechanism.
"""

# pyright: reportUnusedImport=false
from typing import TYPE_CHECKING

from services import lazy_exports

if TYPE_CHECKING:
    from services.team import archive, archive_files, filing, pending, rebuilding, removals
    from services.team.archive import (
        REMOVED,
        Pair,
        PairTurn,
        Speaker,
        has_several_askers,
        labelled_turns,
        may_replace,
        names_users,
        of_asker_and_team,
        utterances_of,
    )
    from services.team.archive_files import StoredBlock
    from services.team.audit import AuditEntry, AuditLog, audit_entries, read_audit
    from services.team.captures import (
        Capture,
        CapturedImage,
        CapturedMessage,
        RecentCaptures,
        Revision,
        apply_revisions,
        captured_images,
        captured_messages,
        leave_out,
        with_doubts,
    )
    from services.team.decisions import Action, Actor, Decision, DecisionLog, Remark
    from services.team.filing import (
        allowed_remarks,
        allowed_removals,
        has_team_changed,
        may_repeat,
        merge_decisions,
        pieces_by_topic,
        replaced_by,
        skipped_for,
        topic_files,
    )
    from services.team.index import DescriptionSchedule
    from services.team.library import LibraryUnwritable, TeamLibrary
    from services.team.opening import check_library, open_library
    from services.team.pair_links import PairLinks, pair_link_line
    from services.team.pending import PendingCapture, PendingFolder, revise_pending
    from services.team.rebuilding import WORDLESS, LibraryBuild, RebuildPlan, RebuildTask
    from services.team.removals import Overview, overview
    from services.team.state import LibraryUnusable, TeamPaths
    from services.team.teaching import (
        MAX_ANSWER_CHARS,
        MAX_QUESTION_CHARS,
        SAME_WORDING,
        Lesson,
        LessonForm,
        LessonRefused,
        TeachingResult,
        asker_among,
        lesson_of,
        share_of_wording,
        worded_alike,
    )
    from services.team.topics import Correction, Topic, exchanges_of, has_team_text

__getattr__ = lazy_exports(__name__)
