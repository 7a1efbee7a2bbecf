cat > /usr/local/bin/roman <<'END'
#!/bin/bash
n=$1
values=(1000 900 500 400 100 90 50 40 10 9 5 4 1)
signs=(M CM D CD C XC L XL X IX V IV I)
for i in "${!values[@]}"; do
  while ((n >= values[i])); do
    printf %s "${signs[i]}"
    ((n -= values[i]))
  done
done
echo
END
chmod 755 /usr/local/bin/roman
