"""The document tools, as part of `make eval`: see `benchmarks.documents`."""

from __future__ import annotations

import sys

from benchmarks.documents.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
