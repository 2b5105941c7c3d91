# syntax=docker/dockerfile:1
# The image of containers/cpu.Dockerfile with Open MPI and an ssh server for the MPI Operator.
#
#   docker build -f examples/clusters/kubernetes/mpi.Dockerfile -t cortado-mpi .
ARG BASE=cortado:latest
FROM ${BASE}
USER root
RUN apt-get update \
    && apt-get install -y --no-install-recommends openmpi-bin openssh-client openssh-server \
    && rm -rf /var/lib/apt/lists/* /etc/ssh/ssh_host_*_key*
# The operator puts its key into /home/caffe/.ssh. Pods are new hosts each time, in the job's own network.
RUN printf 'Host *\n  Port 2222\n  StrictHostKeyChecking no\n  UserKnownHostsFile /dev/null\n' \
      >/etc/ssh/ssh_config.d/pods.conf \
    && printf 'Port 2222\nHostKey /home/caffe/.ssh/id_rsa\nPidFile none\nStrictModes no\nUsePAM no\nPasswordAuthentication no\n' \
      >/home/caffe/sshd_config
USER 1000
WORKDIR /home/caffe
