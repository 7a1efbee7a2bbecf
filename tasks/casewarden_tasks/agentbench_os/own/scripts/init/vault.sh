mkdir -p /srv/vault/b/x /srv/vault/c
for n in 1 2 3 4 5 6 7 8 9; do echo "nothing to see" > "/srv/vault/c/paper-$n"; done
echo "hint: see the file whose name is deep" > /srv/vault/c/paper-5
echo "hint: see the hidden file beside paper-1" > /srv/vault/b/x/deep
echo "hint: see the file that begins with a dash, in b" > /srv/vault/c/.hidden
echo "gold-aurora" > "/srv/vault/b/-last one"
