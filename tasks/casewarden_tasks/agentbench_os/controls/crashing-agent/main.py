"""Breaks before it has answered anything."""

raise SystemExit("broken on purpose")
