"""``python -m casewarden.cli`` is the ``casewarden`` command."""

from __future__ import annotations

import sys

from casewarden.cli import main

if __name__ == "__main__":
    sys.exit(main())
