# syntax=docker/dockerfile:1
# Cortado for CPUs on Debian 12, from its Debian packages: docs/docker.md.
#
#   docker build -f containers/cpu.Dockerfile --build-arg VERSION=$(scripts/release.sh version) -t cortado .
FROM debian:12-slim AS build
SHELL ["/bin/bash", "-euo", "pipefail", "-c"]
WORKDIR /src
COPY scripts/install_dependencies.sh scripts/
RUN scripts/install_dependencies.sh
COPY . .
RUN scripts/release.sh --output /packages deb

FROM debian:12-slim
ARG VERSION
ARG REVISION
LABEL org.opencontainers.image.title="Cortado" \
      org.opencontainers.image.description="Caffe, compiled: training and inference of neural networks" \
      org.opencontainers.image.licenses="BSD-2-Clause" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
RUN --mount=type=bind,from=build,source=/packages,target=/packages \
    apt-get update \
    && apt-get install -y --no-install-recommends /packages/cortado_*.deb /packages/python3-cortado_*.deb \
    && rm -rf /var/lib/apt/lists/*
RUN useradd --create-home --uid 1000 caffe
USER 1000
WORKDIR /home/caffe
CMD ["caffe", "help"]
