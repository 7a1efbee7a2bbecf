"""Answers every question with nothing."""

import sys

for _ in sys.stdin:
    print('{"role": "assistant", "content": ""}', flush=True)
