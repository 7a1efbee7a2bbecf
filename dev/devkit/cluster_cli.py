"""The command `dev/cluster`."""

from __future__ import annotations

import argparse
import sys

from devkit import cluster, kwok, programs
from devkit.errors import DevError
from devkit.images import PRODUCT
from devkit.settings import Cluster
from devkit.shell import say

DESCRIPTION = """\
A one-node Kubernetes on this machine, from source, without Docker (Linux, root).
CLUSTER_NAME (default: dev) names it; clusters of different names can run at the same time."""


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dev/cluster", description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    verbs.add_parser("up", help="bring it up, from whatever state it is in; returns when it works")
    down = verbs.add_parser("down", help="end it and clear away all that it had, but its image store")
    down.add_argument("--purge", action="store_true", help="its image store, certificates and logs, too")
    verbs.add_parser("status", help="how each part does, and where its log is; exits 1 when not all is well")
    load = verbs.add_parser("load", help="build the images that have changed, and bring the node's up to date")
    load.add_argument("image", nargs="*", default=list(PRODUCT), help="names, or archives (default: the product's)")
    verbs.add_parser("kubeconfig", help="print the path of its kubeconfig")
    verbs.add_parser("programs", help="build its programs, and print the folder that has them (kubectl and helm, too)")
    fake = verbs.add_parser("kwok", help="nodes that only pretend to run pods, for tests of scale")
    fake.add_argument("state", choices=("up", "down"))
    fake.add_argument("nodes", nargs="?", type=int, default=2, help="how many (default: 2)")
    return parser


def act(given: argparse.Namespace) -> int:
    named = Cluster.from_environ()
    if given.verb == "up":
        cluster.up(named)
    elif given.verb == "down":
        cluster.down(named, purge=given.purge)
    elif given.verb == "status":
        return 0 if cluster.status(named) else 1
    elif given.verb == "kubeconfig":
        if cluster.running(named) is None:
            raise DevError(f"cluster {named.name} is not up: dev/cluster up")
        print(named.kubeconfig)
    elif given.verb == "programs":
        print(programs.ensure(programs.CLUSTER))
    elif given.verb == "kwok":
        kwok.up(named, given.nodes) if given.state == "up" else kwok.down(named)
    else:
        changed = cluster.load(named, given.image)
        say(f"{named.name}: loaded {', '.join(changed)}" if changed else f"{named.name}: has them all")
    return 0


def main() -> int:
    given = arguments().parse_args()
    try:
        return act(given)
    except DevError as error:
        say(f"dev/cluster: {error}")
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
