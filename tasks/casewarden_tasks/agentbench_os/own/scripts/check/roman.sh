while read -r number want; do
  [ "$(roman "$number")" = "$want" ] || { echo "roman $number: not $want"; exit 1; }
done <<'END'
1 I
4 IV
9 IX
14 XIV
40 XL
49 XLIX
90 XC
400 CD
888 DCCCLXXXVIII
1994 MCMXCIV
2026 MMXXVI
3999 MMMCMXCIX
END
