"""Settings of every test."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# How long an example takes says how loaded the machine is, not whether the code is right: speed is measured elsewhere.
settings.register_profile("casewarden", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("casewarden")
