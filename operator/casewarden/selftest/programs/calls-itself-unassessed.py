observe()
say("TRIED an environment failure")
answer({"status": "environment_error", "error": {"party": "environment", "reason": "StoreUnavailable", "message": "x"}})
finish()
