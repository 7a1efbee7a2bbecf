"""Solves each problem by the command that is known to solve it, and answers with what that wrote."""

import json
import sys

# Problem to [what to run (null: nothing), what to answer (null: what it wrote; "": nothing, it was a deed)].
KNOWN = {}


def shell(command):
    return f"Think: This should tell.\n\nAct: bash\n\n```bash\n{command}\n```"


def finish(answer):
    return "Think: That is it.\n\nAct: finish" if answer is None else f"Think: That is it.\n\nAct: answer({answer})"


def written(message):
    head, _, text = message.partition("\n\n")
    return text.strip() if head == "The output of the OS:" else ""


def first(command):
    return shell(command)


def answered(text):
    return finish(text)


waits = 0
begun = False
for line in sys.stdin:
    messages = json.loads(line)["messages"]
    command, answer = next(
        known for problem, known in KNOWN.items() if any(m["content"].endswith(problem) for m in messages)
    )
    text = written(messages[-1]["content"])
    if command is None:
        said = answered(answer)
    elif not begun:
        # In a shell of its own, so that what it does to its folder or its variables stays there.
        said, begun = first(f"(\n{command}\n)" if answer == "" else f"(\n{command}\n) 2> /dev/null"), True
    elif answer == "":
        said = finish(None)
    elif not text and waits < 5:
        # A slow machine: the output comes with a later observation.
        said, waits = shell("sleep 1"), waits + 1
    else:
        said = answered(text)
    print(json.dumps({"role": "assistant", "content": said}), flush=True)
