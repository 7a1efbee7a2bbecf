cat > /opt/report.sh <<'END'
#!/bin/bash
while IFS= read -r name; do
  echo "$name: $(grep -cxF -- "$name" /opt/visits)"
done < /opt/names
END
