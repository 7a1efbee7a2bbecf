"""Answers from the gold data: what is right for each task, by the task's text."""

import json
import sys

GOLD = json.loads(r"""@GOLD@""")


def operation(statement):
    return "This does what is asked.\nAction: Operation\n```sql\n%s\n```" % statement


def answer(answers):
    return "This is it.\nAction: Answer\nFinal Answer: %s" % answers


def replies(gold):
    if "statement" in gold:
        yield operation(gold["statement"])
        yield answer([])
    else:
        yield answer(gold["answers"])


def main():
    said = None
    for line in sys.stdin:
        if said is None:
            task = json.loads(line)["messages"][-1]["content"]
            said = replies(GOLD[task])
        print(json.dumps({"role": "assistant", "content": next(said)}), flush=True)


main()
