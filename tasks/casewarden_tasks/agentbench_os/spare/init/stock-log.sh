# The same lines everywhere: time | name | action | index | count
awk 'BEGIN {
  split("Alice Bob Carol Dave", names, " "); split("Purchase Sell", acts, " "); x = 4321
  for (n = 0; n < 300; n++) {
    x = (x * 1103515 + 12345) % 2147483; who = names[1 + x % 4]
    x = (x * 1103515 + 12345) % 2147483; act = acts[1 + x % 2]
    x = (x * 1103515 + 12345) % 2147483
    printf "2023-%02d-%02d | %s | %s | %d | %d\n", 1 + int(n / 25), 1 + n % 25, who, act, x % 20, 1 + x % 100
  }
}' > /usr/stock.log
