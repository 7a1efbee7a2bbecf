"""Runs one tiny EvalRun to its score, with nothing but the standard library. `helm test` starts it in a pod.

Arguments: namespace, task, seconds to wait at most. Exit 0 when the pack's reference came to the score 1.
"""

import json
import os
import ssl
import sys
import time
import urllib.error
import urllib.request

ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
NAME = "casewarden-helm-test"


def call(method, path, body=None):
    """Ask the API server; return its answer, None for 404."""
    with open(f"{ACCOUNT}/token") as token:
        headers = {"Authorization": f"Bearer {token.read()}", "Content-Type": "application/json"}
    host = os.environ["KUBERNETES_SERVICE_HOST"]
    if ":" in host:
        host = f"[{host}]"
    url = f"https://{host}:{os.environ['KUBERNETES_SERVICE_PORT']}{path}"
    data = json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(url, data, headers, method=method)
    try:
        context = ssl.create_default_context(cafile=f"{ACCOUNT}/ca.crt")
        with urllib.request.urlopen(request, context=context, timeout=20) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return None
        sys.exit(f"{method} {path}: {error.code}: {error.read().decode(errors='replace')[:500]}")


def main():
    namespace, task, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    runs = f"/apis/casewarden.dev/v1alpha1/namespaces/{namespace}/evalruns"
    until = time.monotonic() + seconds
    while call("DELETE", f"{runs}/{NAME}") is not None:
        if time.monotonic() > until:
            sys.exit(f"EvalRun {namespace}/{NAME} of an earlier test does not go; delete it")
        time.sleep(1)
    run = {
        "apiVersion": "casewarden.dev/v1alpha1",
        "kind": "EvalRun",
        "metadata": {"name": NAME},
        "spec": {
            "task": {"name": task},
            "candidate": {"control": "reference"},
            "seeds": {"values": [1]},
            "parallelism": 4,
            "activeDeadlineSeconds": max(1, int(seconds)),
            "ttlSecondsAfterFinished": 3600,
        },
    }
    if call("POST", runs, run) is None:
        sys.exit("the API server knows no EvalRun: install the CRDs (crds.install=true), or apply crds/ by hand")
    shown = None
    while time.monotonic() < until:
        status = (call("GET", f"{runs}/{NAME}") or {}).get("status") or {}
        conditions = {item["type"]: item for item in status.get("conditions") or []}
        if status.get("progress") != shown:
            shown = status.get("progress")
            print(f"{namespace}/{NAME}: {shown}", flush=True)
        if conditions.get("Finished", {}).get("status") == "True":
            print(f"score {status.get('score')}, valid {status.get('valid')}", flush=True)
            if status.get("score") == "1":
                call("DELETE", f"{runs}/{NAME}")
                return
            failed = conditions.get("Failed") or {}
            sys.exit(f"no score of 1: {failed.get('reason')}: {failed.get('message')}; {status.get('failures')}")
        time.sleep(1)
    sys.exit(f"not over after {seconds:g} s: {json.dumps([c for c in conditions.values() if c['status'] != 'True'])}")


if __name__ == "__main__":
    main()
