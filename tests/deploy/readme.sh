#!/usr/bin/env bash
# Runs the commands of docs/how-to/deploying.md on a container engine, with a job, a killed worker, a change of our code, a backup and its restore, and
# prints what was measured. `make test-deploy` starts it, by way of engine.sh.
set -euo pipefail
source=$(cd "$(dirname "$0")/../.." && pwd)
work=$source/build/deploy
export COMPOSE_PROJECT_NAME=persona-assay-test ASSAY_VERSION=test COMPOSE_PROFILES=simulator ASSAY_PORT=${ASSAY_PORT:-8399}
url=http://127.0.0.1:$ASSAY_PORT

rm -rf "$work" && mkdir -p "$work"
git -C "$source" ls-files -z | (cd "$source" && xargs -0 cp --parents --no-dereference -t "$work")
cd "$work"
trap 'status=$?; [ $status = 0 ] || docker compose logs --tail 20; docker compose down --volumes >/dev/null 2>&1; exit $status' EXIT

fail() { echo "test-deploy: $*" >&2; exit 1; }
step() { echo "== $*" >&2; }
seconds() { local from=$SECONDS; "$@" >&2; took=$((SECONDS - from)); }
api() { curl --silent --show-error --fail --max-time 60 --header "Authorization: Bearer $key" "$url$1" "${@:2}"; }
field() { python3 -c 'import functools, json, sys; print(functools.reduce(lambda at, name: at[name], sys.argv[1:], json.load(sys.stdin)))' "$@"; }
submit() {
    api /v1/jobs --header 'Content-Type: application/json' --data '{"personas": ["big-five"], "tasks": ["questionnaire", "essay"],
        "models": ["simulated/sim-faithful"], "judges": ["simulated/sim-judge"], "iterations": '"$1"'}' | field id
}
await() { # JOB
    for _ in $(seq 300); do
        status=$(api "/v1/jobs/$1" | field status)
        case $status in completed) return ;; failed | cancelled) fail "job $1 is $status" ;; esac
        sleep 1
    done
    fail "job $1 is still $status"
}

step "a forgotten password and a forgotten pepper are said in words"
cp .env.example .env
if said=$(docker compose config 2>&1); then fail "Compose took no password"; fi
grep -q 'POSTGRES_PASSWORD.*set it in .env' <<<"$said" || fail "$said"
sed -i "s/^POSTGRES_PASSWORD=.*/POSTGRES_PASSWORD=$(head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n')/" .env
sed -i 's,^#ASSAY_SIMULATOR_URL=,ASSAY_SIMULATOR_URL=,' .env
docker compose build >&2
if docker compose up --wait >&2; then fail "it started without a pepper"; fi
docker compose logs preflight | grep -q 'ASSAY_KEY_PEPPER is not set' || fail "preflight does not name the pepper"
sed -i "s/^ASSAY_KEY_PEPPER=.*/ASSAY_KEY_PEPPER=$(head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n')/" .env
if docker compose up --wait >&2; then fail "it started without a key"; fi
docker compose logs preflight | grep -q 'Create a key first' || fail "preflight does not ask for a key"
[ -z "$(docker compose ps --quiet api worker sweeper)" ] || fail "something runs that has no key"

step "key, start"
create=$(sed -n '/^## Containers/,/^## /s/^\(docker compose run .*keys create[^#]*\).*/\1/p' docs/how-to/deploying.md)
start=$(sed -n '/^## Containers/,/^## /s/^\(docker compose up[^#]*\).*/\1/p' docs/how-to/deploying.md)
key=$($create 2>/dev/null | grep -o 'assay_[0-9A-Za-z]\{50\}')
docker compose stop >/dev/null 2>&1
seconds $start
up=$took
idle=$(docker stats --no-stream --format '{{.Name}} {{.MemUsage}}' | grep "^$COMPOSE_PROJECT_NAME")
docker compose logs worker | grep -i superuser && fail "Celery warns of the account"

step "a job, and its exports"
job=$(submit 1)
await "$job"
for format in html json csv jsonl parquet; do api "/v1/jobs/$job/report?format=$format" >"report.$format"; done
results=$(api "/v1/jobs/$job/results" | sha256sum)

step "a killed worker in mid-job, and a backup and its restore"
second=$(submit 10)
until [ "$(api "/v1/jobs/$second" | field progress judging succeeded)" -gt 0 ]; do sleep 0.2; done
docker kill "$(docker compose ps --quiet worker | head -n 1)" >/dev/null
[ "$(api "/v1/jobs/$second" | field status)" = running ] || fail "job $second was over before a worker was killed"
await "$second"
docker compose exec -T postgres pg_dump --username assay --format custom assay >backup.dump
docker compose stop api worker sweeper >/dev/null 2>&1
docker compose exec -T postgres dropdb --username assay --force assay
docker compose exec -T postgres createdb --username assay assay
docker compose exec -T postgres pg_restore --username assay --dbname assay --exit-on-error <backup.dump
docker compose up --wait --scale worker=3 >&2
[ "$(api "/v1/jobs/$job/results" | sha256sum)" = "$results" ] || fail "the results are others after the restore"

step "a change of one line"
layers() { docker image inspect --format '{{range .RootFS.Layers}}{{println .}}{{end}}' persona-assay:test | sort; }
before=$(layers)
bytes=$(docker image inspect --format '{{.Size}}' persona-assay:test)
echo '# changed' >>app/serve.py
docker compose build >&2
changed=$(comm -13 <(echo "$before") <(layers) | grep .)
docker save persona-assay:test --output image.tar
# What a push sends of a layer: the file that is named by its checksum, compressed.
pushed=$(for layer in $changed; do tar --extract --to-stdout --file image.tar "blobs/${layer/://}" | gzip; done | wc -c)
[ "$pushed" -lt 10000000 ] || fail "a line of our code pushes $pushed bytes"
docker compose up --wait --scale worker=3 >&2
[ "$(api "/v1/jobs/$job/results" | sha256sum)" = "$results" ] || fail "the results are others after the upgrade"

step "the secrets as files"
value() { sed -n "s/^$1=//p" .env; }
mkdir secrets
address() { printf 'postgresql://%s:%s@postgres:5432/assay' "$1" "$(value POSTGRES_PASSWORD)"; }
address assay_service >secrets/database_url
address assay >secrets/owner_database_url
value POSTGRES_PASSWORD >secrets/postgres_password
value ASSAY_KEY_PEPPER >secrets/key_pepper
echo sk-not-used >secrets/openai_api_key
chmod -R a+rX secrets
sed -i -e '/^ASSAY_KEY_PEPPER=/d' -e 's/^POSTGRES_PASSWORD=.*/POSTGRES_PASSWORD=not-used/' .env
with_files=(docker compose -f docker-compose.yml -f deploy/compose.secrets.yml)
docker compose stop >/dev/null 2>&1
"${with_files[@]}" up --wait >&2
await "$(submit 1)"
[ "$(api "/v1/jobs/$job/results" | sha256sum)" = "$results" ] || fail "the results are others with secrets as files"
docker inspect $("${with_files[@]}" ps --quiet) | grep -q "$(cat secrets/key_pepper)\|$(cat secrets/postgres_password)" && fail "docker inspect shows a secret"
seconds "${with_files[@]}" stop

cat <<END
image                           $((bytes / 1000000)) MB
a line of our code pushes       $((pushed / 1000)) kB
up --wait with 4 workers        $up s
stop                            $took s
idle memory
$idle
END
