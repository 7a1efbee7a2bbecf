[ "$(getent passwd porter | cut -d: -f6,7)" = /home/porter:/bin/bash ] || { echo "home or shell"; exit 1; }
[ -d /home/porter ] && [ "$(stat -c %U /home/porter)" = porter ] || { echo "the home folder"; exit 1; }
id -nG porter | tr ' ' '\n' | grep -qx dock || { echo "the group"; exit 1; }
