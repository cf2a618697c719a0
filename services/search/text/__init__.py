"""Documents as people wrote them, made into sections that can be searched, shown to people and given to a model."""

# pyright: reportUnusedImport=false
from services.search.text.reading import read
from services.search.text.sections import Article, Block, BlockKind, Section
from services.search.text.slugs import SiteGenerator, anchor_by
