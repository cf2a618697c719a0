"""A knowledge base in a folder, with a web server for its pages, and what `--init-kb` makes of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml

from app import main
from services.knowledge import cache
from services.knowledge.cache import Record
from services.knowledge.source_kinds import stored_name
from services.knowledge.source_pages import UrlRecord
from tests.loopback.web_server import Play, WebServer
from tests.shelves import RECORDS

SOON_HOURS = 1e-6
"""A page counts as fresh for less than a run takes, so that the next one asks again."""
MAX_BYTES = 100_000


def html(words: str) -> str:
    return f"<html><head><title>{words}</title></head><body><article><p>{words}</p></article></body></html>"


@dataclass
class Base:
    """A knowledge base below `root`, and what a run over it says."""

    root: Path
    server: WebServer
    capsys: pytest.CaptureFixture[str]
    out: str = ""
    err: str = ""
    settings: dict[str, object] = field(default_factory=dict[str, object])

    def __post_init__(self) -> None:
        (self.folder / "sources").mkdir(parents=True)
        self.settings = {
            "web_fetch_private_hosts": ["127.0.0.1"],
            "url_requests_per_second": 1000,
            "url_download_concurrency": 20,
            "url_refresh_min_interval_hours": SOON_HOURS,
            "max_source_bytes": MAX_BYTES,
        }

    @property
    def folder(self) -> Path:
        return self.root / "data" / "knowledge-base"

    @property
    def index(self) -> str:
        return (self.folder / "index.txt").read_text()

    def link(self, *urls: str) -> None:
        (self.folder / "links.txt").write_text("".join(f"{url}\n" for url in urls))

    def serve(self, path: str, play: Play) -> str:
        self.server.paths[path] = play
        return f"{self.server.origin}{path}"

    def run(self) -> int:
        (self.root / "config.yaml").write_text(yaml.safe_dump({"kb": self.settings}))
        self.server.seen.clear()
        self.server.body_bytes = 0
        code = main(["--config", str(self.root / "config.yaml"), "--init-kb"])
        self.out, self.err = self.capsys.readouterr()
        return code

    def record(self, url: str) -> Record:
        return cache.parse((self.folder / "index-cache.json").read_bytes(), RECORDS)[url]

    def status(self, url: str) -> str:
        record = self.record(url)
        assert isinstance(record, UrlRecord)
        return record.url.fetch_status

    def text(self, url: str) -> str:
        return (self.folder / "web-cache" / stored_name(url)).read_text()

    def stamps(self) -> set[int]:
        return {path.stat().st_mtime_ns for path in (self.folder / "web-cache").iterdir()}
