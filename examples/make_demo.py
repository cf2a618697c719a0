"""Turns the screenplay into `demo.jsonl`, its attachments and the table in README.md; and the pages in
`knowledge-base/web-cache` into `knowledge-base/fetched.json`, which says that they were fetched and need not be again.

python examples/make_demo.py            writes them
python examples/make_demo.py --check    exits 1 when one of them is stale
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from screenplay import GUILD, SCREENPLAY
from scripting import Channel, Post, Say
from stage import Stage

HERE = Path(__file__).parent
RECORDING = HERE / "demo.jsonl"
ATTACHMENTS = HERE / "demo.jsonl.attachments"
README = HERE / "README.md"
KNOWLEDGE = HERE / "knowledge-base"
FETCHED = KNOWLEDGE / "fetched.json"
FETCHED_AT, CHECKED_AGAIN_AT = "2026-03-11T00:00:00.000Z", "2126-03-11T00:00:00.000Z"
"""Their hosts do not exist, so that nobody is to ask them."""
TABLE_BEGINS = "<!-- The table is written by make_demo.py -->\n"
TABLE_ENDS = "<!-- Here it ends -->\n"


def table() -> str:
    rows = ["| time | place | what happens | what Millrace should do |", "|---|---|---|---|"]
    for line in SCREENPLAY:
        if isinstance(line, Say | Post) and line.note:
            if isinstance(line, Post):
                place = f"#{line.forum.name} (post)"
            elif isinstance(line.where, Channel):
                place = f"#{line.where.name}"
            else:
                place = f"#{line.where.channel.name} (thread)"
            rows.append(f"| {line.at} | {place} | {line.note} | {line.expect} |")
    return "\n".join(rows) + "\n"


def readme_with_table() -> str:
    text = README.read_text(encoding="utf-8")
    before, _, rest = text.partition(TABLE_BEGINS)
    _, _, after = rest.partition(TABLE_ENDS)
    return f"{before}{TABLE_BEGINS}\n{table()}\n{TABLE_ENDS}{after}"


def fetched() -> bytes:
    """What `--init-kb` would know of the pages, had it fetched them: their text, and no descriptions yet."""
    sys.path.insert(0, str(HERE.parent))
    from services.knowledge import cache  # noqa: PLC0415 - found only once the path is set
    from services.knowledge.links_file import parse_links  # noqa: PLC0415 - as above
    from services.knowledge.source_kinds import stored_name  # noqa: PLC0415 - as above
    from services.knowledge.source_pages import UrlFacts, UrlRecord  # noqa: PLC0415 - as above

    records: list[cache.Record] = []
    for url in parse_links((KNOWLEDGE / "links.txt").read_bytes()).pages:
        facts = UrlFacts(url, FETCHED_AT, None, None, "success", CHECKED_AGAIN_AT)
        text = (KNOWLEDGE / "web-cache" / stored_name(url)).read_bytes().decode()
        records.append(UrlRecord.new(FETCHED_AT, url=facts).with_content(cache.hash_text(text)))
    return cache.render(map(cache.render_line, records), FETCHED_AT)


def produce() -> dict[Path, bytes]:
    """Every file that follows from others."""
    stage = Stage(GUILD)
    lines = [json.dumps(dispatch, ensure_ascii=False) + "\n" for dispatch in stage.play(SCREENPLAY)]
    files = {RECORDING: "".join(lines).encode(), README: readme_with_table().encode(), FETCHED: fetched()}
    return files | {ATTACHMENTS / id_: content for id_, content in stage.files.items()}


def main() -> int:
    files = produce()
    left_over = {path for path in ATTACHMENTS.glob("*") if path not in files}
    if "--check" in sys.argv[1:]:
        stale = {path for path, content in files.items() if not path.is_file() or path.read_bytes() != content}
        for path in sorted(stale | left_over):
            print(f"{path.relative_to(HERE)} is stale: run python examples/make_demo.py", file=sys.stderr)
        return 1 if stale | left_over else 0
    ATTACHMENTS.mkdir(exist_ok=True)
    for path, content in files.items():
        path.write_bytes(content)
    for path in left_over:
        path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
