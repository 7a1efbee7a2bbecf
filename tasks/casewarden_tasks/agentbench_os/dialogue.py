"""What the agent is told before its first turn: the rules, and one problem that is solved before its eyes."""

from __future__ import annotations

from typing import Final

__all__ = ["opening"]

_RULES: Final = """\
You work in a shell of a Linux system, as its user root, and are given one problem to solve in it.

In each turn say what you think and then do exactly one thing, in this form:

Think: <why you do what you do next>

Act: bash

```bash
# one or more lines for the shell
```

The shell stays the same for all turns: folders, variables and background programs are kept. You will be shown what it
wrote; what is longer than 800 characters is cut. When you know what is asked for, say

Think: <how you know>

Act: answer(<the answer and nothing else>)

and when the problem wants something done, and nothing told, say after it is done

Think: <how you know that it is done>

Act: finish

"Act:" begins a line. You have 8 turns, the last one included. Give an answer in the form that the problem asks for: a
number is told in digits, without words around it.

The first problem is: how many entries are in the folder /etc, hidden ones left out?"""

_EXAMPLE: Final = (
    ("agent", "Think: I look at the folder first.\n\nAct: bash\n\n```bash\nls /etc\n```"),
    (
        "user",
        "The output of the OS:\n\nadduser.conf\nalternatives\napt\nbash.bashrc\nbindresvport.blacklist\n"
        "ca-certificates\nca-certificates.conf\n[the rest is left out: the output is too long]",
    ),
    (
        "agent",
        "Think: That was cut, so I cannot count by reading. I let the shell count.\n\n"
        "Act: bash\n\n```bash\nls /etc | wc -l\n```",
    ),
    ("user", "The output of the OS:\n\n220\n"),
    ("agent", "Think: The shell counted 220 entries, and ls leaves the hidden ones out.\n\nAct: answer(220)"),
)


def opening(description: str) -> list[dict[str, str]]:
    """Return the history that a sample begins with; the last message is the problem."""
    problem = f"Right. Here is a new problem, in a new system that knows nothing of the first one:\n\n{description}"
    turns = [("user", _RULES), *_EXAMPLE, ("user", problem)]
    return [{"role": role, "content": content} for role, content in turns]
