"""Reads tests/proofs.toml: all proofs, the tests that each runs, and the changes that require it.

Proofs of part `gate` run at each change. Proofs of part `depth` take longer; as many run as the given time allows: first
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
# Names of test files, wherever they are. A test file that no proof claims is an error.
TEST = re.compile(r"(?:^|/)(?:test_[^/]*\.py|[^/]*_test\.(?:py|cpp)|[^/]*_fuzz\.cpp)$"
                  r"|^tests/soak/[^/]*\.py$|^tests/stranger/run\.sh$")
# Folders directly in one of these, except those of tests/, must be named by a proof; otherwise changes would require none.
PARENTS = ("", "src/", "src/caffe/", "tools/", "python/", "include/")
# These files affect everything below their folder, like a conftest.py affects all Python tests there.
BUILD_FILES = ("CMakeLists.txt", "CMakePresets.json")


class Mistake(Exception):
    """Something in tests/proofs.toml or tests/proofs.passed is wrong; says where."""


@dataclasses.dataclass
class Proof:
    """A row of tests/proofs.toml. Folders and file patterns are relative to the root of the sources."""
    name: str
    part: str  # gate or depth
    minutes: float  # on two idle cores without a compiler cache, including builds for this proof only
    folders: list  # their changes require the proof
    cpp: list = dataclasses.field(default_factory=list)  # folders of tests/, each one program
    only: str = ""  # a regular expression that selects cases of `cpp` by name
    excluded: str = ""  # a regular expression that excludes cases by name
    preset: str = "cpu-release"
    python: list = dataclasses.field(default_factory=list)  # patterns of pytest files, or names of tests
    not_python: list = dataclasses.field(default_factory=list)  # patterns of files that another proof runs
    interpreter: str = ""  # "onnx" or "studio": the interpreter of build/<name>-venv
    builds: list = dataclasses.field(default_factory=list)  # targets that Python tests need
    command: list = dataclasses.field(default_factory=list)
    holds: list = dataclasses.field(default_factory=list)  # patterns of test files that the others run
    timing: bool = False  # runs one test at a time; failed tests may run again
    slow: bool = False  # with CAFFE_SLOW_TESTS; only scripts/test.sh --all has the time

    def python_files(self):
        named = [pattern for pattern in self.python if "::" in pattern]
        return named + sorted({path for pattern in self.python if "::" not in pattern for path in matching(pattern)} -
                              {path for pattern in self.not_python for path in matching(pattern)})

    def cases(self):
        """A regular expression for the names of its C++ tests, which begin with their folder."""
        return re.compile(f"^({'|'.join(map(re.escape, self.cpp))})/.*(?:{self.only})")

    def claims(self, path):
        """True if the proof runs a test. CMake takes C++ tests directly from tests/<folder>/, not from its subfolders."""
        if path.endswith(".cpp") and any(path.startswith(f"tests/{folder}/") and path.count("/") == 2 for folder in self.cpp):
            return True
        return path in self.python_files() or path in self.command or any(path in matching(pattern) for pattern in self.holds)

    def own(self):
        """Folders, files and patterns whose changes require the proof."""
        return [*self.folders, *(f"tests/{folder}" for folder in self.cpp), *self.holds, *self.command,
                *(pattern.split("::")[0] for pattern in self.python), f"tests/{self.preset}.*"]

    def called_by(self, path):
        """The reason why a change of a file requires the proof: its own file, a helper in its tests' folder, or a build file."""
        own = self.own()
        folder, _, name = path.rpartition("/")
        is_of_build = name in BUILD_FILES or (name == "conftest.py" and self.python)
        if is_of_build and (not folder or any(known.startswith(folder + "/") for known in own)):
            return path
        homes = {known.rpartition("/")[0] for known in own if known.startswith("tests/") and "." in known} - {"tests"}
        helped = not TEST.search(path) and any(is_below(path, home) for home in homes)
        return next((known for known in own if is_below(path, known)), path if helped else "")


@dataclasses.dataclass
class Pass:
    """The last time that a proof passed."""
    commit: str
    date: datetime.date


@dataclasses.dataclass
class Choice:
    """A proof of the depth, and the reason for its place in the order."""
    proof: Proof
    why: str
    fits: bool = False


@functools.cache
def matching(pattern, root=ROOT):
    return [str(path.relative_to(root)) for path in root.glob(pattern) if "__pycache__" not in path.parts]


def git(*command):
    """Runs git in this repository, even if variables of a hook or of `git rebase -x` name another one."""
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


def known_files():
    """Files that git tracks or would track; without a repository, all files that are not built."""
    known = git("ls-files", "-z", "--cached", "--others", "--exclude-standard")
    if known.returncode == 0:
        return [path for path in known.stdout.split("\0") if path and (ROOT / path).exists()]
    files = []
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in ("build", "data", "__pycache__") and not name.startswith(".")]
        files += [str((pathlib.Path(folder) / name).relative_to(ROOT)) for name in names]
    return files


def unclaimed(proofs):
    """Test files and folders of sources that no proof names."""
    files = known_files()
    for path in sorted(filter(TEST.search, files)):
        if not any(proof.claims(path) for proof in proofs):
            yield f"{path} is run by no proof of tests/proofs.toml; a row's cpp, python or holds has to name it"
    below = {(parent, path.removeprefix(parent)) for path in files for parent in PARENTS if path.startswith(parent)}
    folders = {parent + rest.split("/")[0] for parent, rest in below if "/" in rest}
    for folder in sorted(folders - {"tests"}):
        if not any(is_below(known, folder) for proof in proofs for known in proof.folders):  # a parent folder does not count
            yield f"a change of {folder}/ calls for no proof of tests/proofs.toml; a row's folders have to name it"


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
    """Files that differ from those of a commit, or None if the commit is unknown here."""
    # A moved file also counts as a change at its old place. With -z names are not quoted.
    names = git("diff", "--name-only", "--no-renames", "-z", commit, "--")
    if names.returncode:
        return None
    untracked = git("ls-files", "--others", "--exclude-standard", "-z")
    return [path for path in (names.stdout + untracked.stdout).split("\0") if path not in ("", RECORD)]


def reason(proof, passes, changed=changed_since):
    """Why a proof has to run again; empty if nothing that it depends on has changed."""
    last = passes.get(proof.name)
    if last is None:
        return "has not passed yet"
    paths = changed(last.commit)
    if paths is None:
        return f"passed at {last.commit[:10]}, which is not in this clone"
    what = next(filter(None, map(proof.called_by, paths)), None)
    return f"{what} has changed since {last.commit[:10]}" if what else ""


def order_of_depth(proofs, passes, minutes, changed=changed_since):
    """Choices for the depth: first those required by a change, then the others, the oldest first in both; slow ones last."""
    oldest = datetime.date.min
    choices = []
    for proof in (proof for proof in proofs if proof.part == "depth"):
        why = reason(proof, passes, changed)
        last = passes[proof.name].date if proof.name in passes else oldest
        choices.append(((proof.slow, not why, last), Choice(proof, why or f"is unchanged since it passed on {last}")))
    choices.sort(key=lambda pair: pair[0])
    left = minutes
    for _, choice in choices:
        if choice.proof.minutes <= left and not choice.proof.slow:
            choice.fits = True
            left -= choice.proof.minutes
    return [choice for _, choice in choices]
