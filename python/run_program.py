#!python
"""Installed by a wheel as a script with a program's name; runs that program.

The program itself is in package caffe, because only there its libraries are in a fixed place relative to it.
"""
import os
import sys

name = os.path.basename(__file__)
for folder in sys.path:
    program = os.path.join(folder, "caffe", "bin", name)
    if os.access(program, os.X_OK):
        os.execv(program, sys.argv)
sys.exit(f"{name}: no folder of sys.path has caffe/bin/{name}; install the wheel again")
