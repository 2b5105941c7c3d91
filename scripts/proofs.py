"""What tests/proofs.toml says: every proof there is, which tests it runs, and what calls for it.

A proof of part `gate` runs at each change. Those of part `depth` take longer; as many as a time allows run, first
those that depend on a folder that has changed since they last passed, then those whose last pass is the oldest.
tests/proofs.passed has a line for each proof: its name, the commit at which it last passed, and the date.
"""
import dataclasses
import datetime
import fnmatch
import functools
import os
import pathlib
import re
import subprocess
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[1]
RECORD = "tests/proofs.passed"
# Whatever has a test or is tested. A file of these kinds that no proof claims is an error.
TEST_FILES = ("tests/*/*_test.cpp", "tests/**/test_*.py", "tests/fuzz/*_fuzz.cpp", "tests/fuzz/*/*_fuzz.cpp",
              "tests/soak/*.py", "tests/stranger/run.sh")
FOLDERS = ("src/caffe/*/", "src/cortado/", "tools/*/", "python/*/", "include/*/", "proto/", "models/", "examples/",
           "benchmarks/", "cmake/", "scripts/", "docs/", "containers/", ".github/")


class Mistake(Exception):
    """Something in tests/proofs.toml or tests/proofs.passed is wrong; says where."""


@dataclasses.dataclass
class Proof:
    """A row of tests/proofs.toml. Folders and patterns of files are named from the root of the sources."""
    name: str
    part: str  # gate or depth
    minutes: float  # on two idle cores without a compiler cache, with what has to be built for it alone
    folders: list  # whose changes call for it
    cpp: list = dataclasses.field(default_factory=list)  # folders of tests/, each one program
    only: str = ""  # a regular expression: of the cases of `cpp`, those in whose name it is found
    excluded: str = ""  # and not those in whose name this is found
    preset: str = "cpu-release"
    python: list = dataclasses.field(default_factory=list)  # patterns of pytest's files, or names of its tests
    not_python: list = dataclasses.field(default_factory=list)  # patterns of those that another proof runs
    interpreter: str = ""  # "onnx": that of build/onnx-venv
    builds: list = dataclasses.field(default_factory=list)  # targets that tests of Python need
    command: list = dataclasses.field(default_factory=list)
    holds: list = dataclasses.field(default_factory=list)  # patterns of test files that run inside of the others
    timing: bool = False  # tests one at a time; what fails may run again
    slow: bool = False  # with CAFFE_SLOW_TESTS; only scripts/test.sh --all has the time

    def python_files(self):
        named = [pattern for pattern in self.python if "::" in pattern]
        return named + sorted({path for pattern in self.python if "::" not in pattern for path in matching(pattern)} -
                              {path for pattern in self.not_python for path in matching(pattern)})

    def cases(self):
        """A regular expression for the names of its C++ tests, which begin with their folder."""
        return re.compile(f"^({'|'.join(map(re.escape, self.cpp))})/.*(?:{self.only})")

    def claims(self, path):
        if path.endswith(".cpp") and path.split("/")[1] in self.cpp:
            return True
        return path in self.python_files() or path in self.command or any(path in matching(pattern) for pattern in self.holds)


@dataclasses.dataclass
class Pass:
    """When a proof passed last."""
    commit: str
    date: datetime.date


@dataclasses.dataclass
class Choice:
    """A proof of the depth, and why it stands where it does in the order."""
    proof: Proof
    why: str
    fits: bool = False


@functools.cache
def matching(pattern, root=ROOT):
    return [str(path.relative_to(root)) for path in root.glob(pattern) if "__pycache__" not in path.parts]


def git(*command):
    """Runs git in this repository, whatever repository the variables of a hook or of `git rebase -x` name."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return subprocess.run(["git", "-C", ROOT, *command], check=False, text=True, capture_output=True, env=environment)


def load(path=ROOT / "tests" / "proofs.toml"):
    """The proofs, in the order in which they run."""
    try:
        rows = tomllib.loads(path.read_text(encoding="utf-8"))["proof"]
        proofs = [Proof(**row) for row in rows]
    except (TypeError, KeyError, tomllib.TOMLDecodeError) as error:
        raise Mistake(f"{path}: {error}") from error
    for proof in proofs:
        if proof.part not in ("gate", "depth"):
            raise Mistake(f"{path}: proof {proof.name} is of part '{proof.part}'; there are gate and depth")
        if [other.name for other in proofs].count(proof.name) > 1:
            raise Mistake(f"{path}: two proofs are called {proof.name}")
        for pattern in [*proof.python, *proof.not_python, *proof.holds, *(f"tests/{folder}" for folder in proof.cpp), *proof.folders]:
            if not matching(pattern.split("::")[0]):
                raise Mistake(f"{path}: proof {proof.name} names {pattern}, which is not there")
    return proofs


def unclaimed(proofs, root=ROOT):
    """Test files and folders of sources that no proof names."""
    files = {path for pattern in TEST_FILES for path in matching(pattern, root)}
    for path in sorted(files):
        if not any(proof.claims(path) for proof in proofs):
            yield f"{path} is run by no proof of tests/proofs.toml"
    folders = {path for pattern in FOLDERS for path in matching(pattern, root) if (root / path).is_dir()}
    for folder in sorted(folders):
        if not any(is_below(known, folder) for proof in proofs for known in proof.folders):  # not by one above it
            yield f"a change of {folder}/ calls for no proof of tests/proofs.toml"


def is_below(path, folder):
    return path == folder or path.startswith(folder + "/") or fnmatch.fnmatch(path, folder)


def load_record(path=ROOT / RECORD):
    passes = {}
    if path.exists():
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            words = line.split()
            if not words or line.startswith("#"):
                continue
            try:
                name, commit, date = words
                passes[name] = Pass(commit, datetime.date.fromisoformat(date))
            except ValueError as error:
                raise Mistake(f"{path}:{number}: a line has a proof, a commit and a date, but this is: {line}") from error
    return passes


def save_record(passes, proofs, path=ROOT / RECORD):
    lines = ["# Where each proof of tests/proofs.toml last passed; scripts/test.sh --record writes this.\n"]
    lines += [f"{proof.name} {passes[proof.name].commit} {passes[proof.name].date}\n"
              for proof in proofs if proof.name in passes]
    path.write_text("".join(lines), encoding="utf-8")


def changed_since(commit):
    """Files that differ from those of a commit, or nothing where the commit is unknown here."""
    names = git("diff", "--name-only", commit, "--")
    if names.returncode:
        return None
    untracked = git("ls-files", "--others", "--exclude-standard")
    return [path for path in (names.stdout + untracked.stdout).splitlines() if path != RECORD]


def reason(proof, passes, changed=changed_since):
    """Why a proof has to run anew; empty where nothing that it depends on has changed."""
    last = passes.get(proof.name)
    if last is None:
        return "has not passed yet"
    paths = changed(last.commit)
    if paths is None:
        return f"passed at {last.commit[:10]}, which is not in this clone"
    own = [*proof.folders, *(f"tests/{folder}" for folder in proof.cpp), *proof.python]
    folder = next((folder for folder in own for path in paths if is_below(path, folder)), None)
    return f"{folder} has changed since {last.commit[:10]}" if folder else ""


def order_of_depth(proofs, passes, minutes, changed=changed_since):
    """Choices for the depth: those called for by a change, then the others, the oldest first in both."""
    oldest = datetime.date.min
    choices = []
    for proof in (proof for proof in proofs if proof.part == "depth"):
        why = reason(proof, passes, changed)
        last = passes[proof.name].date if proof.name in passes else oldest
        choices.append(((not why, last), Choice(proof, why or f"is unchanged since it passed on {last}")))
    choices.sort(key=lambda pair: pair[0])
    left = minutes
    for _, choice in choices:
        if choice.proof.minutes <= left and not choice.proof.slow:
            choice.fits = True
            left -= choice.proof.minutes
    return [choice for _, choice in choices]
