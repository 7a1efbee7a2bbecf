"""A correct policy for support-routing: look, route, note, close if resolved, finish.

A call that reports a passing outage is repeated word for word, request id included, so that it takes effect once
whether or not it already had.
"""

import json
import sys

ATTEMPTS = 3


def read():
    return json.loads(sys.stdin.readline())


def say(action):
    print(json.dumps(action), flush=True)


class GaveUp(Exception):
    """The service does not do what was asked."""


def call(tool, **arguments):
    for attempt in range(ATTEMPTS):
        say({"tool": tool, "arguments": arguments})
        result = read()["result"]
        if result["ok"]:
            return result
        if not result["error"]["retryable"]:
            break
    raise GaveUp(f"{tool}: {result['error']['code']}")


def work(task):
    ticket_id = task["ticket_id"]
    ticket = call("get_ticket", ticket_id=ticket_id)["ticket"]
    queue = task["routing_rules"][ticket["category"]]
    call("assign_queue", ticket_id=ticket_id, queue=queue)
    call("add_note", ticket_id=ticket_id, body=task["note"], request_id="note-of-the-review")
    if ticket["resolved"]:
        call("close_ticket", ticket_id=ticket_id)


def main():
    task = read()["task"]
    try:
        work(task)
        message = "done"
    except GaveUp as reason:
        message = f"gave up: {reason}"
    say({"finish": True, "message": message})


if __name__ == "__main__":
    main()
