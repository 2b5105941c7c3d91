#!/usr/bin/env python3
"""Shows where the time of a build went, from ninja's log.

    scripts/build_times.py BUILD [--top N]     e.g. scripts/build_times.py build/cpu-release --top 20

Prints the seconds of folders, targets and single outputs, the slowest first. Times are wall-clock seconds: commands that
run at the same time each count fully, and objects from ccache take almost none. The log keeps the last time of each
output, so build into an empty folder with CCACHE_DISABLE=1 to see the times of a cold build.
"""
import argparse
import collections
import pathlib
import sys


def read_log(text):
    """Seconds by output; a command with several outputs counts once, under its first one."""
    commands = {}
    for line in text.splitlines():
        fields = line.split("\t")
        if len(fields) == 5:
            start, end, _, output, command = fields
            commands[output] = (int(start), int(end), command)
    seconds = {}
    known = set()
    for output, run in commands.items():
        if run not in known:
            known.add(run)
            seconds[output] = (run[1] - run[0]) / 1000
    return seconds


def folder_and_target(output):
    """tests/CMakeFiles/net_test.dir/a.cpp.o: tests, net_test. For outputs that are not a target's objects, only the folder."""
    folder, found, rest = output.partition("CMakeFiles/")
    name = rest.split("/")[0]
    if found and name.endswith(".dir"):
        return folder.rstrip("/") or ".", name[:-len(".dir")]
    return str(pathlib.PurePosixPath(output).parent), ""


def print_table(title, rows, total, top):
    print(f"{title:60} seconds  share")
    for name, seconds in sorted(rows.items(), key=lambda row: (-row[1], row[0]))[:top]:
        print(f"  {name:58} {seconds:7.1f}  {seconds / total:4.0%}")
    print()


def report(seconds, top):
    total = sum(seconds.values())
    folders, targets = collections.Counter(), collections.Counter()
    for output, time in seconds.items():
        folder, target = folder_and_target(output)
        folders[folder] += time
        if target:
            targets[f"{folder}: {target}"] += time
    print_table("folder", folders, total, top)
    print_table("objects of target", targets, total, top)
    print_table("output", seconds, total, top)
    print(f"{f'all {len(seconds)} commands':60} {total:7.1f}")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path, help="folder of a build by ninja")
    parser.add_argument("--top", type=int, default=12, help="rows of each table (%(default)s)")
    options = parser.parse_args(arguments)
    log = options.build / ".ninja_log"
    if not log.exists():
        sys.exit(f"{log} does not exist; build there first: cmake --build {options.build}")
    seconds = read_log(log.read_text(encoding="utf-8"))
    if not any(seconds.values()):
        sys.exit(f"{log} has no times of a build")
    report(seconds, options.top)


if __name__ == "__main__":
    main()
