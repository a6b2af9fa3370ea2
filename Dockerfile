# One image for the API, the workers, the sweeper, the migrations and the simulator; docker-compose.yml has their commands.

# To pin it: --build-arg PYTHON_IMAGE=python:3.13-slim-trixie@sha256:…
ARG PYTHON_IMAGE=python:3.13-slim-trixie

# Nothing of ours is in this stage but the lock, so that its layer stays as it is while only our code changes.
FROM ${PYTHON_IMAGE} AS dependencies
# hadolint ignore=DL3008
RUN apt-get update && apt-get install --yes --no-install-recommends binutils && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY requirements-bootstrap.lock requirements-service.lock ./
RUN python -m pip install --no-cache-dir --require-hashes -r requirements-bootstrap.lock \
 && python -m venv --without-pip /opt/assay \
 && uv pip sync --python /opt/assay/bin/python --no-cache --require-hashes --only-binary :all: requirements-service.lock
# What no process reads: tests, C sources and debugging symbols, and what pyarrow brings for remote file systems and for its own servers.
RUN find /opt/assay -type d -name tests -prune -exec rm -rf {} + \
 && find /opt/assay -type f -regex '.*\.\(pyi\|pyx\|pxd\|pxi\|c\|cc\|cpp\|h\|hpp\|a\|f90\)' -delete \
 && find /opt/assay -path '*/pyarrow/*' -regex '.*\(_flight\|_s3\|_gcsfs\|_azurefs\|_hdfs\|_orc\|cpp_tests\).*' -delete \
 && find /opt/assay -name '*.so*' -type f -exec strip --strip-unneeded {} +
# The disk is read-only, so what is not compiled here would be compiled at each start. All of it would be 100 MB: this is what is imported,
# of the standard library too.
RUN PYTHONPYCACHEPREFIX=/opt/bytecode /opt/assay/bin/python -c '\
import alembic.command, alembic.config, celery.apps.worker, celery.bin.celery, celery.concurrency.thread, kombu.transport.redis; \
import fastapi, uvicorn.main, uvicorn.lifespan.on, uvicorn.protocols.http.httptools_impl, uvloop, anyio._backends._asyncio; \
import csv, statistics, click, pydantic.v1, pydantic_settings, prometheus_client.core, structlog, redis.asyncio, yaml; \
import psycopg, sqlalchemy.ext.asyncio, sqlalchemy.dialects.postgresql.psycopg, cryptography.hazmat.primitives.ciphers.aead; \
import httpx2, openai, anthropic, genai_prices, jinja2, nltk, numpy, scipy.special, pyarrow.parquet; \
import matplotlib.backends.backend_agg, matplotlib.backends.backend_svg, matplotlib.figure'

FROM dependencies AS code
COPY app app
COPY persona_assay persona_assay
COPY workers workers
COPY migrations migrations
COPY embedded embedded
COPY simulator simulator
COPY generators generators
COPY docs/reference/openapi.json docs/reference/openapi.json
# The folders stand as they are in the repository.
RUN python generators/client_types.py \
 && mkdir -p /opt/persona-assay/bin \
 && printf '#!/bin/sh\nexec python -P -m app.cli "$@"\n' > /opt/persona-assay/bin/assay && chmod 755 /opt/persona-assay/bin/assay \
 && mv app persona_assay workers migrations embedded simulator /opt/persona-assay \
 && rm -rf /opt/bytecode && PYTHONPYCACHEPREFIX=/opt/bytecode /opt/assay/bin/python -m compileall -q /opt/persona-assay

FROM ${PYTHON_IMAGE}
RUN groupadd --gid 10001 assay \
 && useradd --uid 10001 --gid 10001 --no-log-init --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin assay
COPY --from=dependencies /opt/assay /opt/assay
COPY --from=dependencies /opt/bytecode /opt/bytecode
COPY --from=code /opt/bytecode /opt/bytecode
COPY --from=code /opt/persona-assay /opt/persona-assay
ENV PATH=/opt/persona-assay/bin:/opt/assay/bin:$PATH \
    PYTHONPATH=/opt/persona-assay \
    PYTHONPYCACHEPREFIX=/opt/bytecode \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    OPENBLAS_NUM_THREADS=1 \
    MPLCONFIGDIR=/tmp/matplotlib \
    ASSAY_HEARTBEAT_FILE=/tmp/heartbeat \
    ASSAY_HOST=0.0.0.0
# ASSAY_HOST says where the API listens: it does not start there as long as there is no API key. Matplotlib keeps a list of fonts.
# By number, so that an orchestrator can see that it is not root. Nothing is written but to /tmp.
USER 10001:10001
WORKDIR /tmp
EXPOSE 8321
HEALTHCHECK --interval=10s --timeout=5s --start-period=120s --start-interval=1s --retries=3 \
    CMD ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/8321 && printf 'GET /healthz HTTP/1.0\\r\\nHost: localhost\\r\\n\\r\\n' >&3 && read -r line <&3 && [[ $line == *' 200 '* ]]"]
CMD ["python", "-P", "-m", "app.serve", "--factory", "app.main:create_app", "--host", "0.0.0.0", "--port", "8321", \
     "--timeout-graceful-shutdown", "3", "--no-access-log"]
ARG VERSION=local
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Persona Assay" \
      org.opencontainers.image.description="Measures persona fidelity of language models" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
