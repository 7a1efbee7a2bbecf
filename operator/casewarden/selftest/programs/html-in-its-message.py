observe()
say("TRIED markup")
finish("<script>alert(document.cookie)</script><img src=x onerror=alert(1)>\x1b[2J\u202e")
