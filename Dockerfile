# Millrace in a container: `docker compose up -d` (docs/operating.md says how, and how to choose extras). The packages hold the
# model that search uses, so that the image needs no network of its own, but for Discord and what is configured.

# Extras of pyproject.toml, with spaces between them. Those here are small; `browser` brings Chromium.
ARG EXTRAS="chroma mcp nats pdf"

# By digest, so that a build of today and one of tomorrow begin alike; .github/dependabot.yml has it renewed.
FROM python:3.13-slim@sha256:9662417aace5ae7b8e2609cce472b72a8958e134ba372808abe9cc1a0c0125e6 AS base
WORKDIR /app

FROM base AS packages
COPY requirements/runtime.txt requirements/development.txt requirements/
# As `make` installs them.
RUN python3 -m venv .venv && .venv/bin/python -m pip install -qq --disable-pip-version-check -r requirements/runtime.txt
# As `make extra-…` does, each of them.
ARG EXTRAS
COPY pyproject.toml ./
COPY deploy/extras.py deploy/
RUN python3 deploy/extras.py $EXTRAS > extras.txt \
    && .venv/bin/python -m pip install -qq --disable-pip-version-check -c requirements/development.txt -r extras.txt

FROM base
# A number of its own, so that files in volumes keep their owner from image to image.
RUN useradd --uid 10001 --no-create-home --home-dir /app --shell /usr/sbin/nologin millrace \
    && install --directory --mode 700 --owner millrace /data /backups
ARG EXTRAS
RUN case " $EXTRAS " in *" browser "*) \
    apt-get update -qq && apt-get install -qq -y --no-install-recommends chromium libatomic1 && rm -rf /var/lib/apt/lists/*;; esac
COPY --from=packages /app/.venv .venv
# What .dockerignore lets through.
COPY . .
# Readable, whatever the umask of who builds it; and compiled, as nothing can be written here later. `./*` is all but .venv.
RUN chmod -R a+rX ./* && .venv/bin/python -m compileall -q ./*
ENV PATH=/app/.venv/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    APP__APP__DATA_DIR=/data \
    APP__METRICS__PORT=9090
VOLUME ["/data", "/backups"]
USER millrace
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s --retries=3 CMD ["python", "deploy/health.py"]
ENTRYPOINT ["python", "app.py"]
