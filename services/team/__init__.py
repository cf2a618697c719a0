"""What the team has taught: the raw archive (tier 1), the decisions about it, and the topics that follow (tier 2).

Topics are a fold of archive and decisions, so that a crash, a rebuild and an undo are one mechanism.
"""

# pyright: reportUnusedImport=false
from services.team import archive, corrections, qa_ids, rebuilding, state, week_files
from services.team.archive import MARKER, REMOVED, Pair, PairTurn, Speaker
from services.team.archive_reader import Written
from services.team.captures import REPLY, Capture, Captures, Picture, Said, pictures_of, said_in
from services.team.decisions import Action, By, Decision, DecisionLog
from services.team.library import TeamLibrary
from services.team.opening import adopt, open_library
from services.team.pending import PendingFolder, Waiting
from services.team.places import LibraryUnusable, LibraryUnwritable, TeamPlaces
from services.team.reading import Overview, overview
from services.team.rebuilding import Build, RebuildPlan, Task
from services.team.state import begins_after
from services.team.superseding import allowed_removals, replaced_by
from services.team.topics import Topic, block_of
from services.team.week_files import all_pairs
