"""Takes `docs/dashboard.png`: the page "Flow" of the dashboard while the demo is replayed. Durations differ each time.

python examples/dashboard.py          takes it; needs the extra `browser` and a Chromium
"""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml
from playwright.sync_api import expect, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "dashboard.png"
SPEED = 2400
"""The day takes 36 seconds."""
WAITED_MS = 120_000
WIDTH, HEIGHT = 680, 1170
PATHS = ("sources_dir", "links_file_path", "web_fetch_cache_dir")


def configuration(folder: Path) -> Path:
    """The demo's, with a dashboard at a port that is free."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    chosen = yaml.safe_load((ROOT / "examples" / "demo.yaml").read_text("utf-8"))
    chosen["kb"] |= {name: str(ROOT / "examples" / chosen["kb"][name]) for name in PATHS}
    chosen |= {"metrics": {"port": port}, "dashboard": {"enabled": True}}
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(chosen), "utf-8")
    return path


def told_in(lines: list[str]) -> str:
    """The address that the replay prints. Raises ValueError: it does not."""
    found = re.search(r"dashboard at (http://\S+/)", "".join(lines))
    if found is None:
        raise ValueError(f"no address in {lines}")
    return found[1]


def take(address: str) -> None:
    """Look until the afternoon, when every lane has had something to do."""
    sys.path.insert(0, str(ROOT))
    from services.knowledge.web.browser import chromium  # noqa: PLC0415 - found only once the path is set

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        page.goto(f"{address}flow")
        # The file of 20:10 is read after all that a picture should show.
        expect(page.locator('[data-op="chunk"] [data-cell="line"]')).to_contain_text("done", timeout=WAITED_MS)
        page.screenshot(path=PICTURE)
        browser.close()


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        arguments = ("--config", configuration(Path(folder)), "--replay", ROOT / "examples" / "demo.jsonl")
        command = [sys.executable, "-u", ROOT / "app.py", *arguments, "--speed", str(SPEED)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as replay:  # noqa: S603 (our own program)
            said = replay.stdout
            try:
                take(told_in([] if said is None else [said.readline(), said.readline()]))
            finally:
                replay.terminate()
                replay.communicate()
    return 0


if __name__ == "__main__":
    sys.exit(main())
