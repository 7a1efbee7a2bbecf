"""Fails at its start."""

raise SystemExit(3)
