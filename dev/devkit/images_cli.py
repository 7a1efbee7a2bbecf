"""The command `dev/images`."""

from __future__ import annotations

import argparse
import sys

from devkit import builds, cluster, engines
from devkit.errors import DevError
from devkit.images import IMAGES, PRODUCT
from devkit.settings import Cluster
from devkit.shell import say

DESCRIPTION = """\
The project's images. Built by Docker where it answers, else by buildah (root); IMAGE_ENGINE=docker|buildah decides.
An image is built only when what it is made of has changed."""


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dev/images", description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    build = verbs.add_parser("build", help="build those that have changed, and print each with its digest")
    build.add_argument("image", nargs="*", default=list(PRODUCT), help=f"of {', '.join(IMAGES)} (default: product)")
    load = verbs.add_parser("load", help="as dev/cluster load: bring CLUSTER_NAME's images up to date")
    load.add_argument("image", nargs="*", default=list(PRODUCT))
    verbs.add_parser("list", help="print each build that there is, with its digest")
    push = verbs.add_parser("push", help="build those that have changed, push the product's, and print their names")
    push.add_argument("registry", help="host[:port][/path]; you are logged in to it")
    return parser


def act(given: argparse.Namespace) -> int:
    if given.verb == "load":
        changed = cluster.load(Cluster.from_environ(), given.image)
        say(f"loaded {', '.join(changed)}" if changed else "the node has them all")
        return 0
    engine = engines.choose()
    if given.verb == "list":
        for name, built in builds.recorded(engine).items():
            print(f"{IMAGES[name].tag} {built['digest']}")
        return 0
    made = builds.build(list(PRODUCT) if given.verb == "push" else given.image, engine)
    for name, built in made.items():
        image = IMAGES[name]
        if given.verb == "build":
            print(f"{image.tag} {built['digest'] or 'pulled'}")
        elif name in PRODUCT:
            # Named by what it is made of: a node never takes an older build for this one.
            target = f"{given.registry.rstrip('/')}/casewarden-{name}:{built['key']}"
            engine.push(image, target)
            print(target)
    return 0


def main() -> int:
    given = arguments().parse_args()
    try:
        return act(given)
    except DevError as error:
        say(f"dev/images: {error}")
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
