"""Knows the truth: asks for one part of it after the other."""

import json
import sys

KEYS = {}
GIVEN = {}
QUESTION = "Is this a part of what really happened and of what makes the story less strange than it sounds: {}?"


def question(keys, given, number):
    if number >= len(keys):
        return f"Does it matter that there are {number} trees in the next street?"
    return QUESTION.format(keys[number].rstrip("."))


def main():
    for number, line in enumerate(sys.stdin):
        opening = json.loads(line)["messages"][0]["content"]
        story = next(story for story in KEYS if story in opening)
        said = question(KEYS[story], GIVEN[story], number)
        print(json.dumps({"role": "assistant", "content": said}), flush=True)


if __name__ == "__main__":
    main()
