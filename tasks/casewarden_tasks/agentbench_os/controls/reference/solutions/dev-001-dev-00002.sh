touch /tmp/now; sleep 2.5; find /root -type f -newer /tmp/now -printf '%f\n' | head -1
