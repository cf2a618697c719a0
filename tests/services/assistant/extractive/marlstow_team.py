"""What maintainers of Marlstow, the product of the demo, might answer on one day: invented, about a few subjects."""

from __future__ import annotations

ANSWERED = (
    ("How do I skip a run while my usb disk is not mounted?", "Set require_mount to the disk's path in agent.toml."),
    ("Does require_mount take the label of a usb disk too?", "Only mount paths; give the disk one in /etc/fstab."),
    ("Can the agent wait until the usb disk is mounted?", "No, the run is skipped; a mounted disk is seen next time."),
    ("thanks, that did it!", "You are welcome."),
    ("Which port must the firewall open for agents?", "Port 8443 for agents; the firewall may block all the others."),
    ("Can I change the port that agents connect to?", "Yes, listen_port in server.toml; open it in the firewall too."),
    ("Is port 8080 needed from outside of the firewall?", "Only if people use the web interface from there."),
    ("How do I reset the admin password of the web interface?", "Run marlstow admin reset-password on the server."),
    ("I forgot the vault password, can it be reset?", "A vault password cannot be reset, it is the encryption key."),
    ("Where is the admin password of a new server shown?", "In the log of its first start, look for admin password."),
    ("Why does restoring a large vault take hours?", "Restoring reads chunks one by one; raise restore_workers to 8."),
    ("Can I restore a single folder out of a vault?", "Yes: marlstow restore --path FOLDER takes any folder."),
    ("Does a restore overwrite files that are newer?", "Not unless you pass --overwrite; restore keeps newer files."),
    ("it broke again", "What does the log say?"),
    ("How many monthly snapshots does retention keep?", "Twelve; the first snapshot of a month is kept."),
    ("Can retention keep snapshots of one machine longer?", "Yes, set keep_monthly for that machine's retention."),
)
