mkdir -p /srv/photos/old
for name in 'a beach.JPG' 'two  blanks.jpeg' 'plain.jpg' 'a_beach.png' 'no end' 'tree.JPG'; do echo "$name" > "/srv/photos/$name"; done
echo 'left alone' > '/srv/photos/old/in here.JPG'
