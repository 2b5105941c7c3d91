# syntax=docker/dockerfile:1
# Cortado for NVIDIA GPUs of compute capability 7.5 and newer: docs/docker.md. The base has cuDNN 9,
# cuBLASLt and NCCL, which Cortado looks for when it starts; the driver is the host's.
#
#   docker build -f containers/cuda.Dockerfile --build-arg VERSION=$(scripts/release.sh version) -t cortado-cuda .
ARG CUDA=12.8.1
FROM nvidia/cuda:${CUDA}-cudnn-devel-ubuntu24.04 AS tools
SHELL ["/bin/bash", "-euo", "pipefail", "-c"]
WORKDIR /src
COPY scripts/install_dependencies.sh scripts/
RUN scripts/install_dependencies.sh cuda

FROM tools AS build
COPY . .
RUN scripts/release.sh --preset cuda-distribution --output /packages deb

# Compiler, sources, installed library and JupyterLab:
#
#   docker build -f containers/cuda.Dockerfile --target develop -t cortado-cuda-develop .
FROM tools AS develop
ARG VERSION
ARG REVISION
LABEL org.opencontainers.image.title="Cortado for NVIDIA GPUs, for development" \
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
# Ubuntu's base has the user ubuntu with the number 1000.
RUN useradd --create-home --shell /bin/bash --uid 1001 caffe
USER 1001
COPY --chown=1001:1001 . /home/caffe/cortado
WORKDIR /home/caffe/cortado
EXPOSE 8888
CMD ["jupyter", "lab", "--ip=0.0.0.0", "--no-browser"]

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
