cd /
while read -r want numbers; do
  [ "$(median $numbers < /dev/null)" = "$want" ] || { echo "median $numbers: not $want"; exit 1; }
done <<'END'
5 9 1 5
7 7
-3 -9 -3 40
10 2 100 10 9 11
0 0 0 0
END
[ "$(cd /var && su -s /bin/bash nobody -c 'median 30 4 200')" = 30 ] || { echo "not for every user"; exit 1; }
