#!/bin/sh
# start.sh FOLDER: make a new database in FOLDER, which has mariadb.cnf and init.sql, and serve it at FOLDER/sock.
set -eu
umask 077
folder=$1
mkdir "$folder/data" "$folder/tmp"
set -- --defaults-file="$folder/mariadb.cnf" --datadir="$folder/data" --tmpdir="$folder/tmp" --secure-file-priv="$folder/tmp"
# It refuses to be root unless it is told to; it is root where nothing but root is there.
[ "$(id -u)" != 0 ] || set -- "$@" --user=root
system=/usr/share/mysql
{
  printf 'CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket=NULL;\n'
  cat "$system/mysql_system_tables.sql" "$system/mysql_system_tables_data.sql"
} | mariadbd "$@" --bootstrap
exec mariadbd "$@" --socket="$folder/sock" --pid-file="$folder/pid" --init-file="$folder/init.sql"
