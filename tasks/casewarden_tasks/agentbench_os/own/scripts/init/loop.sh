mkdir -p /srv/loop/start/in /srv/loop/aside/deep /srv/loop/never
touch /srv/loop/start/a /srv/loop/start/in/b /srv/loop/aside/c /srv/loop/aside/deep/d /srv/loop/never/e /srv/loop/alone
ln -s ../../aside /srv/loop/start/in/out
ln -s ../../start /srv/loop/aside/deep/back
ln -s ../alone /srv/loop/start/file
ln -s a /srv/loop/start/again
ln -s nothing /srv/loop/start/broken
