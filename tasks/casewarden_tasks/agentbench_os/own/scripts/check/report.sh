check() {
  [ "$(bash /opt/report.sh)" = "$1" ] || { echo "not: $1"; exit 1; }
}
check $'Ann: 3\nAnn Lee: 2\nBob: 1'
# Other data: what was written for the one cannot know it.
printf 'Zoe\nB.b\nAnn Lee\nMia\n' > /opt/names
printf 'Bob\nB.b\nMia\nMia\nZoe Zoe\n' > /opt/visits
check $'Zoe: 0\nB.b: 1\nAnn Lee: 0\nMia: 2'
