awk '{
  n[$1]++; at[$1, n[$1]] = $2
  if (!($1 in first)) first[$1] = 1
  while ($2 - at[$1, first[$1]] > 59) first[$1]++
  now = n[$1] - first[$1] + 1
  if (now > most) most = now
} END {print most}' /var/log/access.log
