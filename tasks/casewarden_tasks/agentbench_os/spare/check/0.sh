# A command "calc" that evaluates the expression of its arguments.
close() { awk -v a="$1" -v b="$2" 'BEGIN { d = a - b; exit !(a ~ /^-?[0-9.]+(e-?[0-9]+)?$/ && d < 1e-5 && -d < 1e-5) }'; }
while IFS='=' read -r expression want; do
  got=$(calc "$expression" < /dev/null) || { echo "calc '$expression' failed"; exit 1; }
  close "$got" "$want" || { echo "calc '$expression' is '$got', not $want"; exit 1; }
done <<'END'
2 * (9 / 3)=6
2 * 1=2
1 + 2 - 3 + 4=4
7 / 8=0.875
(1 + 2) * (3 - 10) / 4=-5.25
-3 * -(4 + 2)=18
10 / 3=3.3333333
2 * (3 + (4 - (5 - 6)))=16
END
