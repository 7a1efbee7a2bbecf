"""Breaks before it has looked at anything."""

raise SystemExit("broken on purpose")
