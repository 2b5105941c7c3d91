#!python
"""Stands in a wheel's folder of scripts under a program's name and runs that program.

The program itself is in package caffe, because only there its libraries have a fixed place beside it.
"""
import os
import sys

name = os.path.basename(__file__)
for folder in sys.path:
    program = os.path.join(folder, "caffe", "bin", name)
    if os.access(program, os.X_OK):
        os.execv(program, sys.argv)
sys.exit(f"{name}: no folder of sys.path has caffe/bin/{name}; install the wheel again")
