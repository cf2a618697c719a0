"""Reads documents (Markdown, MDX, reST, HTML, plain text) into sections for search, people and models."""

# pyright: reportUnusedImport=false
from services.search.text.reading import read
from services.search.text.sections import Article, Block, BlockKind, Section
from services.search.text.slugs import SiteGenerator, anchor_by
