# syntax=docker/dockerfile:1
# Cortado for CPUs on Debian 12, from its Debian packages: docs/docker.md.
#
#   docker build -f containers/cpu.Dockerfile --build-arg VERSION=$(scripts/release.sh version) -t cortado .
FROM debian:12-slim AS tools
SHELL ["/bin/bash", "-euo", "pipefail", "-c"]
WORKDIR /src
COPY scripts/install_dependencies.sh scripts/
RUN scripts/install_dependencies.sh

FROM tools AS build
COPY . .
RUN scripts/release.sh --output /packages deb

# Compiler, sources, installed library and JupyterLab:
#
#   docker build -f containers/cpu.Dockerfile --target develop -t cortado-develop .
FROM tools AS develop
ARG VERSION
ARG REVISION
LABEL org.opencontainers.image.title="Cortado, for development" \
      org.opencontainers.image.description="Caffe, compiled: training and inference of neural networks" \
      org.opencontainers.image.licenses="BSD-2-Clause" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
RUN scripts/install_dependencies.sh notebooks && rm -rf /var/lib/apt/lists/*
RUN --mount=type=bind,from=build,source=/packages,target=/packages \
    apt-get update \
    && apt-get install -y --no-install-recommends /packages/*.deb \
    && rm -rf /var/lib/apt/lists/*
# The server only. Notebooks run in the distribution's Python, with its ipykernel, NumPy, Matplotlib.
RUN python3 -m venv --system-site-packages /opt/jupyter \
    && /opt/jupyter/bin/pip install --no-cache-dir jupyterlab==4.6.6
ENV PATH=$PATH:/opt/jupyter/bin
RUN useradd --create-home --shell /bin/bash --uid 1000 caffe
USER 1000
COPY --chown=1000:1000 . /home/caffe/cortado
WORKDIR /home/caffe/cortado
EXPOSE 8888
CMD ["jupyter", "lab", "--ip=0.0.0.0", "--no-browser"]

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
