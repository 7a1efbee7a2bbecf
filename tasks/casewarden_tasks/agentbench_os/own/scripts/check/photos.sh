cd /srv/photos || exit 1
want='a_beach.jpg=a beach.JPG
a_beach.png=a_beach.png
no_end=no end
plain.jpg=plain.jpg
tree.jpg=tree.JPG
two__blanks.jpg=two  blanks.jpeg'
have=$(for name in $(LC_ALL=C ls -p | grep -v /); do echo "$name=$(cat "$name")"; done)
[ "$have" = "$want" ] || { echo "there is: $have"; exit 1; }
[ "$(cat 'old/in here.JPG')" = 'left alone' ]
