"""An installation between files and NATS: `adopt` tells the servers of a data folder, `export` makes one.

    knowledge-base, guilds/*/knowledge-base       the log, scope `knowledge`
    team-knowledge, guilds/*/team-knowledge       the log, scope `team`
    state, feedback.jsonl                         the log, the scopes of the partitions of their channels
    who opted out, shown runbooks, the key of
    votes, files that must not be read again      the bucket `people`
    budgets, marks of servers                     the buckets `budgets` and `seen`
    evidence, runbooks                            the bucket `evidence`

Recordings of models and collections that are made from knowledge are left where they are.
"""

# pyright: reportUnusedImport=false
from transport.moving.adopting import Installation, MigrationProgress, adopt
from transport.moving.exporting import export, gather
from transport.moving.splitting import NO_CHANNEL_PARTITION
from transport.partitions import partition_of
