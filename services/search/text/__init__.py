"""Reads documents (Markdown, MDX, reST, HTML, plain text) into sections for search, people and models."""

# pyright: reportUnusedImport=false
from services.search.text.article import Article, Block, BlockKind, Section, SiteGenerator, anchor_by
from services.search.text.reading import is_html, read
