cat > /usr/local/bin/median <<'END'
#!/bin/bash
printf '%s\n' "$@" | sort -n | sed -n "$((($# + 1) / 2))p"
END
chmod 755 /usr/local/bin/median
