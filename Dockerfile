# One image for the API, the workers, the sweeper, the migrations and the simulator; docker-compose.yml has their commands.

FROM python:3.13-slim-trixie AS build
WORKDIR /source
COPY requirements-bootstrap.lock requirements-service.lock requirements.lock ./
RUN python -m pip install --no-cache-dir --require-hashes -r requirements-bootstrap.lock \
 && python -m venv --without-pip /opt/assay \
 && uv pip sync --python /opt/assay/bin/python --no-cache --require-hashes --only-binary :all: --compile-bytecode \
    requirements-service.lock
COPY pyproject.toml README.md LICENSE ./
COPY app app
COPY persona_assay persona_assay
COPY workers workers
COPY migrations migrations
COPY embedded embedded
COPY simulator simulator
RUN uv pip install --python /opt/assay/bin/python --no-cache --no-deps --compile-bytecode \
    --build-constraints requirements.lock .

FROM python:3.13-slim-trixie
RUN useradd --system --uid 10001 --user-group --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin assay
COPY --from=build /opt/assay /opt/assay
ENV PATH=/opt/assay/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    OPENBLAS_NUM_THREADS=1 \
    MPLCONFIGDIR=/tmp/matplotlib \
    ASSAY_HOST=0.0.0.0
# ASSAY_HOST says where the API listens: it does not start there as long as there is no API key. Matplotlib keeps a list of fonts.
# By number, so that an orchestrator can see that it is not root. Nothing is written but to /tmp.
USER 10001:10001
WORKDIR /tmp
EXPOSE 8321
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s --retries=3 \
    CMD ["python", "-P", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8321/healthz', timeout=4)"]
CMD ["python", "-P", "-m", "app.serve", "--factory", "app.main:create_app", "--host", "0.0.0.0", "--port", "8321", \
     "--timeout-graceful-shutdown", "3", "--no-access-log"]
