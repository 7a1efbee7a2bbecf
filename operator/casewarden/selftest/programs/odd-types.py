observe()
say("TRIED odd types")
for tool in ('[]', '{}', 'null', '1', '"__class__"', '"get_ticket"'):
    for arguments in ('[]', 'null', '{"ticket_id": []}', '{"ticket_id": {"__class__": 1}}'):
        raw(('{"tool": %s, "arguments": %s}\n' % (tool, arguments)).encode())
        observe()
finish()
