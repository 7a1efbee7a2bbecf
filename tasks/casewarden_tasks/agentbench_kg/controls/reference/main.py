"""Knows what to say to every question: one reply after another, the last one again and again."""

import json
import sys

PLANS = {}
ASKED = "A new question: "


def main():
    for line in sys.stdin:
        messages = json.loads(line)["messages"]
        asked = max(n for n, message in enumerate(messages) if message["content"].startswith(ASKED))
        question = messages[asked]["content"][len(ASKED) :].rpartition("\nEntities: ")[0]
        replies = PLANS[question]
        turn = sum(message["role"] == "assistant" for message in messages[asked:])
        said = replies[min(turn, len(replies) - 1)]
        print(json.dumps({"role": "assistant", "content": said}), flush=True)


if __name__ == "__main__":
    main()
