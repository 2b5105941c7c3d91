# syntax=docker/dockerfile:1
# Cortado for NVIDIA GPUs of compute capability 7.5 and newer: docs/docker.md. The base has cuDNN 9,
# cuBLASLt and NCCL, which Cortado looks for when it starts; the driver is the host's.
#
#   docker build -f containers/cuda.Dockerfile --build-arg VERSION=$(scripts/release.sh version) -t cortado-cuda .
ARG CUDA=12.8.1
FROM nvidia/cuda:${CUDA}-cudnn-devel-ubuntu24.04 AS build
SHELL ["/bin/bash", "-euo", "pipefail", "-c"]
WORKDIR /src
COPY scripts/install_dependencies.sh scripts/
RUN scripts/install_dependencies.sh cuda
COPY . .
RUN scripts/release.sh --preset cuda-distribution --output /packages deb

FROM nvidia/cuda:${CUDA}-cudnn-runtime-ubuntu24.04
ARG VERSION
ARG REVISION
LABEL org.opencontainers.image.title="Cortado for NVIDIA GPUs" \
      org.opencontainers.image.description="Caffe, compiled: training and inference of neural networks" \
      org.opencontainers.image.licenses="BSD-2-Clause" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
RUN --mount=type=bind,from=build,source=/packages,target=/packages \
    apt-get update \
    && apt-get install -y --no-install-recommends /packages/cortado_*.deb /packages/python3-cortado_*.deb \
    && rm -rf /var/lib/apt/lists/*
# Ubuntu's base has the user ubuntu with the number 1000.
RUN useradd --create-home --uid 1001 caffe
USER 1001
WORKDIR /home/caffe
CMD ["caffe", "help"]
