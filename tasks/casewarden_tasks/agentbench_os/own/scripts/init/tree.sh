mkdir -p /opt/tree/one/two /opt/tree/three
echo 'the original' > /opt/tree/original
cp /opt/tree/original /opt/tree/one/copy
cp /opt/tree/original /opt/tree/one/two/second
cp /opt/tree/original /opt/tree/three/third
echo 'the originaL' > /opt/tree/three/fourth
printf 'the original' > /opt/tree/one/fifth
for name in one/a.sh one/two/b.sh three/c.sh; do echo 'echo hi' > "/opt/tree/$name"; done
echo text > /opt/tree/three/sh
chmod -R u=rwX,go=rX /opt/tree
chmod 666 /opt/tree/one/copy
chmod 777 /opt/tree/three/c.sh
chmod 642 /opt/tree/three/fourth
chmod 700 /opt/tree/one/a.sh
