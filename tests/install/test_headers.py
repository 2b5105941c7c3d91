"""Each installed header compiles by itself, and the library exports exactly what they declare."""
import concurrent.futures
import os
import re
import subprocess

INSIDE = re.compile(r"^caffe::(cpu|cuda|onednn|passes|conv)::|^caffe::(Executor|Graph|ActivePlan|AppendedWork|Verifier|NetMemory)::")


def headers(tree):
    return sorted(path for path in (tree.prefix / "include" / "caffe").rglob("*.hpp") if "compat" not in path.parts)


def test_each_header_compiles_alone(tree, tmp_path):
    def errors_of(number, header):
        source = tmp_path / f"{number}.cpp"
        source.write_text(f'#include "{header.relative_to(tree.prefix / "include")}"\n')
        done = subprocess.run([tree.compiler, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror",
                               f"-I{tree.prefix / 'include'}", source], check=False, text=True, stderr=subprocess.PIPE)
        return f"{header.name}: {done.stderr[:1500]}" if done.returncode else ""

    found = headers(tree)
    assert len(found) > 40
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        failed = [error for error in pool.map(errors_of, range(len(found)), found) if error]
    assert not failed, "\n".join(failed)


def test_only_what_users_include_is_installed(tree):
    folders = {str(path.parent.relative_to(tree.prefix / "include")) for path in headers(tree)}
    assert folders == {"caffe", "caffe/core", "caffe/ops", "caffe/tensor", "caffe/device"}
    assert {path.name for path in (tree.prefix / "include/caffe/core").iterdir()} == {"philox.hpp"}
    assert {path.name for path in (tree.prefix / "include/caffe/device").iterdir()} == {"device.hpp", "host_memory.hpp", "stream.hpp"}
    assert {path.name for path in (tree.prefix / "include/caffe/tensor").iterdir()} == {"tensor_view.hpp"}


def test_the_library_has_a_version(tree):
    libraries = sorted(path.name for path in (tree.prefix / "lib").glob("libcaffe.so*"))
    assert len(libraries) == 2 and libraries[0] == "libcaffe.so"
    named = tree.run("readelf", "-d", tree.prefix / "lib" / libraries[1])
    assert f"Library soname: [{libraries[1]}]" in named
    assert re.fullmatch(r"libcaffe\.so\.\d+\.\d+", libraries[1])


def test_the_library_hides_what_is_inside(tree):
    shown = tree.run("bash", "-c", f"nm -D --defined-only {tree.prefix / 'lib' / 'libcaffe.so'} | cut -d' ' -f3 | c++filt")
    names = [line for line in shown.splitlines() if line.startswith("caffe::")]
    assert any(name.startswith("caffe::Net::Forward") for name in names)
    inside = [name for name in names if INSIDE.search(name)]
    assert not inside, inside[:10]
