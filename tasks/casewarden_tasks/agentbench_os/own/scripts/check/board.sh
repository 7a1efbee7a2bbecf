as_guest() { su -s /bin/bash guest -c "$1" > /dev/null 2>&1; }
as_guest 'cat /srv/board/news' || { echo "cannot read the news"; exit 1; }
as_guest 'cat /srv/board/draft' && { echo "can read the draft"; exit 1; }
as_guest 'echo x >> /srv/board/news' && { echo "can write the news"; exit 1; }
as_guest 'echo x >> /srv/board/draft' && { echo "can write the draft"; exit 1; }
as_guest 'touch /srv/board/new' && { echo "can make files"; exit 1; }
[ "$(stat -c %U:%G /srv/board /srv/board/news /srv/board/draft | sort -u)" = root:root ]
