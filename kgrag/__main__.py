"""``python -m kgrag`` is ``kgrag``."""

from __future__ import annotations

from kgrag.cli import main

if __name__ == "__main__":
    main()
