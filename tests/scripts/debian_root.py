"""A Debian system without this project's libraries, in which tests install the files of a release.

CAFFE_TEST_ROOT names a folder made by debootstrap: debootstrap --variant=minbase bookworm FOLDER. It is not
changed: commands see a copy-on-write overlay of it, in their own mount namespace.
"""
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ENTER = """
set -e
mount --make-rprivate /
mount -t overlay overlay -o "lowerdir=$1,upperdir=$2/changes,workdir=$2/work" "$2/root"
mount -t proc proc "$2/root/proc"
mount --rbind /dev "$2/root/dev"
mkdir -p "$2/root/packages" "$2/root/checkout"
mount --bind "$3" "$2/root/packages"
mount --bind -o ro "$5" "$2/root/checkout"
cp /etc/resolv.conf "$2/root/etc/"
exec chroot "$2/root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \\
  DEBIAN_FRONTEND=noninteractive bash -euo pipefail -c "export HOME=~root; $4"
"""


class DebianRoot:
    def __init__(self, folder, packages):
        if not os.environ.get("CAFFE_SLOW_TESTS"):
            pytest.skip("slow: runs with CAFFE_SLOW_TESTS=1 (scripts/test.sh --all)")
        self.lower, self.folder, self.packages = os.environ.get("CAFFE_TEST_ROOT"), folder, packages
        if not self.lower:
            pytest.skip("CAFFE_TEST_ROOT names no root that debootstrap has made")
        if os.geteuid() != 0:
            pytest.skip("only root can mount the overlay")
        for name in ("changes", "work", "root"):
            pathlib.Path(folder, name).mkdir()

    def run(self, script, status=0):
        """Runs a script with the packages in /packages and this checkout in /checkout; returns its output. Its changes persist."""
        done = subprocess.run(["unshare", "--mount", "bash", "-c", ENTER, "enter", self.lower, self.folder, self.packages, script, ROOT],
                              text=True, check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=3000)
        assert done.returncode == status, done.stdout[-4000:]
        return done.stdout
