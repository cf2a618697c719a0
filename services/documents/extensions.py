"""Which files are taken, by the endings of their names (DOCUMENT_QA 4.2, 4.3)."""

from __future__ import annotations

import re

from services.documents.units import DocumentKind

_KINDS: dict[DocumentKind | None, str] = {
    DocumentKind.LOG: ".log",
    DocumentKind.CONFIG: ".json .yaml .yml .toml .ini .cfg .conf .env .properties .xml",
    DocumentKind.METRICS: ".csv .tsv",
    DocumentKind.MARKDOWN: ".md .rst .adoc",
    DocumentKind.CODE: ".py .js .ts .jsx .tsx .java .go .rs .c .cpp .h .rb .php .swift .kt .scala .sh .bash .sql",
    None: ".txt .out .err .jsonl",
}
KINDS = {ending: kind for kind, endings in _KINDS.items() for ending in endings.split()}
"""None where the content decides."""

_EXECUTABLE = "a program, and only text is read. Send its log or its configuration"
_ARCHIVE = "an archive, and those are not opened. Unpack it and send the text files in it"
_PICTURE = "a picture, and pictures are not read yet. Copy the text into a .txt file and send that"
_PAGES = "a formatted document, and those are not read yet. Save it as text (.txt or .md) and send that"
_DATA = "binary data, and only text is read. Send an export as text (.txt, .csv or .json)"

_BINARY = {
    _EXECUTABLE: ".exe .dll .so .dylib .msi .apk .class .jar .pyc .wasm",
    _ARCHIVE: ".zip .gz .tgz .bz2 .xz .7z .rar .tar .zst .evtx",
    _PICTURE: ".png .jpg .jpeg .gif .webp .bmp .tiff .svg .heic .ico",
    _PAGES: ".pdf .doc .docx .odt .rtf .xls .xlsx .ods .ppt .pptx",
    _DATA: ".bin .dat .db .sqlite .sqlite3 .pcap .dmp .core .mp3 .mp4 .mov .wav .parquet .pickle .pkl",
}
BINARY = {ending: reason for reason, endings in _BINARY.items() for ending in endings.split()}
"""Endings of files that are never text, and what users read about them."""

_ROTATED = re.compile(r"\.log(?:[.-][0-9][0-9_.-]*)$")
_ENVIRONMENT = re.compile(r"(?:^|[/\\])\.env(?:\.[a-z]+)?$")


def extension(filename: str) -> str:
    """`.yaml` of `a/B.YAML`; of `.env.local` it is `.env`, of `app.log.1` `.log`; empty when there is none."""
    name = filename.strip().lower()
    if _ENVIRONMENT.search(name):
        return ".env"
    if _ROTATED.search(name):
        return ".log"
    base = re.split(r"[/\\]", name)[-1]
    stem, dot, ending = base.rpartition(".")
    return f".{ending}" if dot and stem else ""


def accepted(filename: str) -> bool:
    return extension(filename) in KINDS
