mkdir -p /srv/inbox/old/older
for n in 1 2 3 4 5 6; do head -c $((n * 100)) /dev/zero > "/srv/inbox/letter-$n"; done
touch /srv/inbox/.seen /srv/inbox/.draft
head -c 5000 /dev/zero > /srv/inbox/old/older/parcel
head -c 4000 /dev/zero > /srv/inbox/old/crate
ln -s letter-1 /srv/inbox/latest
ln -s ../letter-2 /srv/inbox/old/reply
ln -s nowhere /srv/inbox/old/older/lost
