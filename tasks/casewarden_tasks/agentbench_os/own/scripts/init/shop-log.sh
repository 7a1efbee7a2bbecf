# The same lines everywhere: a simple generator of numbers, and no clock.
awk 'BEGIN {
  split("Nora Omar Pia Quin Rosa", names, " "); split("order pay cancel pay order return", acts, " ")
  x = 12345
  for (n = 0; n < 480; n++) {
    x = (x * 1103515 + 12345) % 2147483; who = names[1 + x % 5]
    x = (x * 1103515 + 12345) % 2147483; act = acts[1 + x % 6]
    x = (x * 1103515 + 12345) % 2147483
    printf "2026-%02d-%02d | %s | %s | %d\n", 1 + int(n / 40), 1 + n % 28, who, act, 1 + x % 90
    if (n % 7 == 0) printf "2026-%02d-%02d | Omara | pay | %d\n", 1 + int(n / 40), 1 + n % 28, 1 + x % 50
  }
}' > /var/log/shop.log
