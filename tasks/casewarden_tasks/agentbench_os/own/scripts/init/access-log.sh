awk 'BEGIN {
  x = 777; t = 100
  for (n = 0; n < 900; n++) {
    x = (x * 1103515 + 12345) % 2147483; t += x % 9
    x = (x * 1103515 + 12345) % 2147483; address = "10.0.0." (1 + x % 7)
    if (n > 400 && n < 440 && n % 2) address = "10.0.0.9"
    printf "%s %d /page/%d\n", address, t, x % 40
  }
}' > /var/log/access.log
