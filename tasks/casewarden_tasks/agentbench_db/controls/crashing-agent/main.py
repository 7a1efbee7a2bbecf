"""Crashes when it is first asked."""

import sys

sys.stdin.readline()
raise RuntimeError("a control that crashes")
