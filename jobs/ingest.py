"""``ray job submit -- python jobs/ingest.py SOURCES...``: ``kgrag ingest`` with its stages on the cluster that the job runs on.

Sources are those that this node sees, and the embedded stores are opened on it.
"""

from __future__ import annotations

import sys

from kgrag.cli.app import app

if __name__ == "__main__":
    app(["ingest", "--address", "auto", *sys.argv[1:]], prog_name="kgrag")
