# syntax=docker/dockerfile:1
# The image of the service: `plaudit serve` as an ordinary user, on a root file system that may be read-only.
# docs/guide/deploy.md says how to run it. `make test-image` builds the last stage and runs it.

ARG RUST=1.95
ARG DEBIAN=trixie

FROM rust:${RUST}-slim-${DEBIAN} AS build
WORKDIR /src
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    cargo build --locked --profile dist -p plaudit-cli \
    && install -D target/dist/plaudit /out/plaudit

FROM debian:${DEBIAN}-slim
LABEL org.opencontainers.image.title="plaudit" \
      org.opencontainers.image.description="A reward engine for LLM post-training" \
      org.opencontainers.image.source="https://github.com/plaudit/plaudit" \
      org.opencontainers.image.licenses="Apache-2.0"
# Python runs the programs of responses (docs/guide/code.md) and the health check; the certificates are for judges behind TLS.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates python3 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --user-group --no-create-home --home-dir /var/lib/plaudit --shell /usr/sbin/nologin plaudit \
    && install -d -o plaudit -g plaudit -m 0700 /var/lib/plaudit
COPY --from=build /out/plaudit /usr/local/bin/plaudit
COPY --chmod=0755 deploy/health.py /usr/local/bin/plaudit-health
# By number, so that Kubernetes can tell that it is not root.
USER 10001:10001
WORKDIR /var/lib/plaudit
VOLUME /var/lib/plaudit
EXPOSE 7717
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s --retries=3 CMD ["plaudit-health"]
ENTRYPOINT ["plaudit"]
CMD ["serve", "--bind", "0.0.0.0:7717", "--state", "/var/lib/plaudit/state", "--token-file", "/var/lib/plaudit/tokens.json"]
