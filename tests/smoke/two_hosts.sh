# Sourced by scripts that run in their own network and mount namespaces: makes two hosts, the network
# namespaces 1 and 2 in /run/netns, which find each other as node1 and node2. "$state" is a folder for
# files, and exists.
# shellcheck shell=bash disable=SC2154  # the caller sets state

mount --make-rprivate /
mkdir -p /run/netns
mount -t tmpfs tmpfs /run/netns
for i in 1 2; do
  ip netns add "$i"
  ip -n "$i" link set lo up
done
ip -n 1 link add eth0 type veth peer name eth0 netns 2
for i in 1 2; do
  ip -n "$i" addr add "10.79.0.$i/24" dev eth0
  ip -n "$i" link set eth0 up
done
printf '127.0.0.1 localhost\n10.79.0.1 node1\n10.79.0.2 node2\n' >"$state/hosts"
mount --bind "$state/hosts" /etc/hosts
