task = observe()["task"]
say("TRIED to go on for ever")
while True:
    answer({"tool": "get_ticket", "arguments": {"ticket_id": task["ticket_id"]}})
    observe()
