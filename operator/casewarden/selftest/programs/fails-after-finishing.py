observe()
say("TRIED exit code 143 after the finish")
finish(code=143)
