"""Hostile candidates and what must come of each: the same programs for the project's tests and for a user's cluster."""
