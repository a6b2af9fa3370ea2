#!/usr/bin/env bash
# engine.sh COMMAND…: runs a command that needs Docker with Compose and buildx. Where an engine answers, with that one. Elsewhere root gets
# one from Debian: it runs in namespaces of its own, with base images under the official names made from Debian's packages, so that no
# registry of images is needed. It ends with the command. What was downloaded stays in ASSAY_ENGINE_DIR (build/engine) for the next time.
set -euo pipefail

if docker info >/dev/null 2>&1 && docker compose version >/dev/null 2>&1; then exec "$@"; fi

source=$(cd "$(dirname "$0")/../.." && pwd)
engine=${ASSAY_ENGINE_DIR:-$source/build/engine}
root=$engine/root

for tool in mmdebstrap slirp4netns unshare nsenter; do
    if [ "$(id -u)" != 0 ] || ! command -v "$tool" >/dev/null; then
        echo "engine.sh: no container engine answers; to make one takes root (apt install mmdebstrap slirp4netns)" >&2
        exit 69 # EX_UNAVAILABLE
    fi
done
mkdir -p "$engine/data" "$engine/bin"

bootstrap() { # SUITE TARGET PACKAGES [OPTIONS…]
    local suite=$1 target=$2 packages=$3
    shift 3
    [ -e "$target" ] && return
    echo "engine.sh: making $target" >&2
    # A mirror may be a copy of some weeks ago.
    mmdebstrap --quiet --variant=minbase --aptopt='Acquire::Check-Valid-Until "false"' --include="$packages" \
        --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/doc/*' \
        --dpkgopt='path-exclude=/usr/share/locale/*' "$@" "$suite" "$target.new" ${DEBIAN_MIRROR:+"$DEBIAN_MIRROR"}
    mv "$target.new" "$target"
}

bootstrap trixie "$root" ca-certificates,docker.io,docker-cli,docker-compose,docker-buildx,iptables,iproute2 --format=directory
bootstrap trixie "$engine/python.tar" ca-certificates,python3.13,python3-pip,netbase,tzdata --format=tar \
    --customize-hook="cp /usr/local/share/ca-certificates/*.crt \$1/usr/local/share/ca-certificates/ 2>/dev/null || true" \
    --customize-hook='chroot $1 update-ca-certificates' \
    --customize-hook='ln -s /usr/bin/python3.13 $1/usr/local/bin/python' \
    --customize-hook='rm -rf $1/usr/lib/python3.13/EXTERNALLY-MANAGED $1/var/cache/apt/*.bin $1/var/lib/apt/lists/*'
# Debian trixie has an older Postgres and Valkey than the Compose file names.
bootstrap forky "$engine/databases.tar" postgresql-18,valkey-server,valkey-tools,gosu --format=tar \
    --customize-hook='mkdir -p $1/docker-entrypoint-initdb.d && rm -rf $1/var/lib/postgresql/*' \
    --customize-hook="install -m 755 '$source/tests/deploy/postgres-entrypoint.sh' \$1/usr/local/bin/docker-entrypoint.sh"

# Everything that the engine starts ends with its process namespace.
unshare --mount --pid --net --uts --ipc --fork --kill-child --propagation private bash -euc '
    root=$1 engine=$2 source=$3
    ip link set lo up
    mount --bind "$root" "$root"
    mount -t proc proc "$root/proc"
    mount --rbind /sys "$root/sys"
    mount --rbind /dev "$root/dev"
    mount -t tmpfs tmpfs "$root/run"
    mount -t tmpfs tmpfs "$root/tmp"
    for path in "$source" "$engine"; do
        mkdir -p "$root$path"
        mount --rbind "$path" "$root$path"
    done
    echo nameserver 10.0.2.3 > "$root/etc/resolv.conf"
    cd "$root"
    mkdir -p .host
    pivot_root . .host
    umount --lazy /.host
    until ip link show tap0 >/dev/null 2>&1; do sleep 0.1; done
    exec dockerd --data-root "$engine/data" --exec-opt native.cgroupdriver=cgroupfs --log-level warn
' engine.sh "$root" "$engine" "$source" >"$engine/dockerd.log" 2>&1 &
holder=$!
trap 'kill "$holder" 2>/dev/null; wait' EXIT
until inside=$(pgrep --parent "$holder"); do
    kill -0 "$holder" 2>/dev/null || { tail "$engine/dockerd.log" >&2; exit 1; }
    sleep 0.1
done
# The first process of the namespace: with it ends all that the engine started. unshare itself heeds no SIGTERM.
trap 'kill -KILL "$inside"; kill ${slirp:+"$slirp"} 2>/dev/null; wait' EXIT
slirp4netns --configure --disable-host-loopback "$inside" tap0 >"$engine/network.log" 2>&1 &
slirp=$!

cat >"$engine/bin/docker" <<END
#!/bin/sh
# By its path: the folder of this script is on PATH inside, too.
exec nsenter --target $inside --mount --root -- sh -c 'cd "\$0" && exec /usr/bin/docker "\$@"' "\$PWD" "\$@"
END
chmod +x "$engine/bin/docker"
export PATH="$engine/bin:$PATH"
unset DOCKER_HOST
for _ in $(seq 300); do docker info >/dev/null 2>&1 && break; sleep 0.2; done
docker info >/dev/null || { tail "$engine/dockerd.log" >&2; exit 1; }

image() { # NAME ARCHIVE CHANGES…
    local name=$1 archive=$2
    shift 2
    docker image inspect "$name" >/dev/null 2>&1 || docker import "${@/#/--change=}" - "$name" <"$archive" >/dev/null
}
certificates=/etc/ssl/certs/ca-certificates.crt
image python:3.13-slim-trixie "$engine/python.tar" "ENV SSL_CERT_FILE=$certificates PIP_CERT=$certificates" 'CMD ["python"]'
image postgres:18-trixie "$engine/databases.tar" 'ENV LANG=C.UTF-8' 'VOLUME /var/lib/postgresql' 'ENTRYPOINT ["docker-entrypoint.sh"]' 'CMD ["postgres", "-c", "listen_addresses=*"]'
# The official image lets other hosts in, as this does.
image valkey/valkey:9-alpine "$engine/databases.tar" 'ENTRYPOINT ["sh", "-c", "exec \"$@\" --protected-mode no", "sh"]' 'CMD ["valkey-server"]'

nsenter --target "$inside" --net -- "$@"
