#!/bin/bash
# What this project uses of the official image's entry point.
set -euo pipefail
bin=$(echo /usr/lib/postgresql/*/bin)
export PATH=$bin:$PATH PGDATA=${PGDATA:-/var/lib/postgresql/18/docker}
if [ "$(id -u)" = 0 ]; then
    mkdir -p "$PGDATA" /var/run/postgresql
    chown -R postgres /var/lib/postgresql /var/run/postgresql
    exec gosu postgres "$BASH_SOURCE" "$@"
fi
for name in POSTGRES_USER POSTGRES_PASSWORD POSTGRES_DB; do
    file=${name}_FILE
    if [ -n "${!file:-}" ]; then export "$name=$(cat "${!file}")"; fi
done
if [ ! -s "$PGDATA/PG_VERSION" ]; then
    : "${POSTGRES_USER:=postgres}" "${POSTGRES_DB:=$POSTGRES_USER}"
    initdb --username="$POSTGRES_USER" --pwfile=<(echo "$POSTGRES_PASSWORD") --auth-local=trust --auth-host=scram-sha-256
    echo "host all all all scram-sha-256" >> "$PGDATA/pg_hba.conf"
    pg_ctl -w start -o "-c listen_addresses=''"
    if [ "$POSTGRES_DB" != postgres ]; then
        psql --username "$POSTGRES_USER" --dbname postgres -c "CREATE DATABASE \"$POSTGRES_DB\""
    fi
    for script in /docker-entrypoint-initdb.d/*; do
        case $script in
            *.sh) if [ -x "$script" ]; then "$script"; else . "$script"; fi ;;
            *.sql) psql -v ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" -f "$script" ;;
        esac
    done
    pg_ctl -w -m fast stop
fi
exec "$@"
