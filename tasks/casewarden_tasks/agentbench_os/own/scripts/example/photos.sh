cd /srv/photos
for old in *; do
  [ -f "$old" ] || continue
  new=${old// /_}
  case $new in
    *.JPG) new=${new%.JPG}.jpg ;;
    *.jpeg) new=${new%.jpeg}.jpg ;;
  esac
  [ "$old" = "$new" ] || mv -n -- "$old" "$new"
done
