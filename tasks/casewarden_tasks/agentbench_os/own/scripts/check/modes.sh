want='/opt/tree 755
/opt/tree/one 755
/opt/tree/one/a.sh 750
/opt/tree/one/copy 666
/opt/tree/one/fifth 644
/opt/tree/one/two 755
/opt/tree/one/two/b.sh 750
/opt/tree/one/two/second 644
/opt/tree/original 644
/opt/tree/three 755
/opt/tree/three/c.sh 750
/opt/tree/three/fourth 642
/opt/tree/three/sh 644
/opt/tree/three/third 644'
have=$(find /opt/tree -printf '%p %m\n' | LC_ALL=C sort)
[ "$have" = "$want" ] || { echo "$have"; exit 1; }
