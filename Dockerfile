# Millrace in a container: `docker compose up -d` (docs/operating.md says how). The packages hold the model that search
# uses, so that the image needs no network of its own, but for Discord and what is configured.

FROM python:3.13-slim AS packages
WORKDIR /app
COPY requirements/runtime.txt requirements/development.txt requirements/
# As `make` installs them.
RUN python3 -m venv .venv && .venv/bin/python -m pip install -qq --disable-pip-version-check -r requirements/runtime.txt
# As `make extra-nats` does: the client alone, for `transport: nats://…`.
RUN .venv/bin/python -m pip install -qq --disable-pip-version-check -c requirements/development.txt "nats-py[nkeys]>=2.16,<3"

FROM python:3.13-slim
# A number of its own, so that files in volumes keep their owner from image to image.
RUN useradd --uid 10001 --no-create-home --home-dir /app --shell /usr/sbin/nologin millrace \
    && install --directory --mode 700 --owner millrace /data /backups
WORKDIR /app
COPY --from=packages /app/.venv .venv
COPY LICENSE app.py config.yaml ./
COPY assembly assembly
COPY clock clock
COPY commands commands
COPY dashboard dashboard
COPY deploy/health.py deploy/
COPY model model
COPY dataflow dataflow
COPY operators operators
COPY reporting reporting
COPY services services
COPY settings settings
COPY sinks sinks
COPY streams streams
COPY transport transport
# Readable, whatever the umask of who builds it; and compiled, as nothing can be written here later.
RUN chmod -R a+rX app.py config.yaml assembly clock commands dashboard dataflow deploy model operators reporting services settings sinks streams transport \
    && .venv/bin/python -m compileall -q app.py assembly clock commands dashboard dataflow model operators reporting services settings sinks streams transport
ENV PATH=/app/.venv/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    APP__APP__DATA_DIR=/data \
    APP__METRICS__PORT=9090
VOLUME ["/data", "/backups"]
USER millrace
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s --retries=3 CMD ["python", "deploy/health.py"]
ENTRYPOINT ["python", "app.py"]
