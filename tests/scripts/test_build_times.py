"""scripts/build_times.py on a literal ninja log."""
import pathlib
import subprocess
import sys

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "build_times.py"
# The first line of net_test's object comes from an earlier build. One command made two files.
LOG = """# ninja log v5
0\t90000\t1\ttests/CMakeFiles/net_test.dir/unity/net_test_0.cpp.o\taa
0\t4000\t2\ttests/CMakeFiles/net_test.dir/unity/net_test_0.cpp.o\tbb
1000\t3000\t2\ttests/CMakeFiles/net_test.dir/unity/net_test_1.cpp.o\tcc
0\t1500\t2\tproto/a.pb.h\tdd
0\t1500\t2\tproto/a.pb.cc\tdd
0\t2000\t2\tsrc/caffe/CMakeFiles/caffe_io.dir/io/text.cpp.o\tee
9000\t9500\t2\tbin/net_test\tff
"""


def run(*arguments):
    return subprocess.run([sys.executable, SCRIPT, *arguments], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def tables(output):
    """The rows of each table: [name, seconds, share]."""
    found = {}
    for line in output.splitlines():
        if line.startswith("  "):
            rows.append(line.rsplit(maxsplit=2))
        elif line:
            found[line.rsplit(maxsplit=2)[0].strip()] = rows = []
    return {title: [[name.strip(), *rest] for name, *rest in rows] for title, rows in found.items()}


def test_says_where_the_time_went(tmp_path):
    (tmp_path / ".ninja_log").write_text(LOG, encoding="utf-8")
    done = run(tmp_path)
    assert done.returncode == 0, done.stderr
    found = tables(done.stdout)
    assert found["folder"] == [["tests", "6.0", "60%"], ["src/caffe", "2.0", "20%"], ["proto", "1.5", "15%"],
                               ["bin", "0.5", "5%"]]
    assert found["objects of target"] == [["tests: net_test", "6.0", "60%"], ["src/caffe: caffe_io", "2.0", "20%"]]
    assert found["output"][0] == ["tests/CMakeFiles/net_test.dir/unity/net_test_0.cpp.o", "4.0", "40%"]
    assert done.stdout.splitlines()[-1].split() == ["all", "5", "commands", "10.0"]


def test_keeps_to_the_slowest(tmp_path):
    (tmp_path / ".ninja_log").write_text(LOG, encoding="utf-8")
    assert [len(rows) for rows in tables(run(tmp_path, "--top", "1").stdout).values()][:3] == [1, 1, 1]


def test_asks_for_a_build(tmp_path):
    done = run(tmp_path)
    assert done.returncode == 1
    assert "build there first" in done.stderr
