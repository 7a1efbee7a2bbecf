printf 'Ann\nAnn Lee\nBob\n' > /opt/names
printf 'Ann\nAnn Lee\nBob\nAnn\nAnn Lee\nAnn\nBobby\n' > /opt/visits
cat > /opt/report.sh <<'END'
#!/bin/bash
for name in $(cat /opt/names); do
  echo "$name: $(grep $name /opt/visits | wc -l)"
done
END
chmod 755 /opt/report.sh
