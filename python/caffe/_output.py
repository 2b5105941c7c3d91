"""Output of commands: the exit status, the log, and checks of output files before long work begins."""
import contextlib
import os
import secrets
import shutil
import signal
import sys
import threading

from ._caffe import Error, InvalidArgument, IoError, init_log
from ._packages import is_missing_package, missing

_BEGINNING = 1024  # bytes of a file that are searched for a mark


def run_command(name, work, also=()):
    """Runs work(), which does all that `caffe NAME` does, and returns the exit status. Our errors, those of the types `also`,
    OSErrors and missing packages are printed as one line. Ctrl-C, a closed pipe for the output, and Ended end the process by the signal, as in
    other programs."""
    try:
        work()
        sys.stdout.flush()
    except (Error, *also) as error:
        print(f"caffe {name}: {error}", file=sys.stderr)
        return 1
    except ImportError as error:
        if not is_missing_package(error):
            raise
        print(f"caffe {name}: {missing(error)}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        _end_by(signal.SIGPIPE)
    except OSError as error:
        where = "" if error.filename is None else f"{os.fsdecode(error.filename).removesuffix('.partial')}: "
        print(f"caffe {name}: {where}{error.strerror or error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"caffe {name}: interrupted", file=sys.stderr)
        _end_by(signal.SIGINT)
    except Ended as ended:
        _end_by(ended.number)
    return 0


class Ended(BaseException):
    """Raised by signals under raising_signals()."""

    def __init__(self, number):
        super().__init__(signal.Signals(number).name)
        self.number = number


@contextlib.contextmanager
def raising_signals():
    """SIGTERM and SIGHUP (a closed terminal) raise Ended, so that what was begun is removed. Further ones do not disturb this.
    A signal that is ignored, as by nohup, stays so. For the main thread."""
    numbers = [number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) == signal.SIG_DFL]

    def end(number, _frame):
        for other in numbers:
            signal.signal(other, signal.SIG_IGN)
        raise Ended(number)

    for number in numbers:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


@contextlib.contextmanager
def holding_signals():
    """SIGINT, SIGTERM and SIGHUP that come meanwhile take effect at the end, for what must not be left half done: a program that
    is being started could not be ended. A signal that is ignored stays so. In threads other than the main one, where no signal
    takes effect, this does nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held = []
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
                if signal.getsignal(number) != signal.SIG_IGN}
    for number in handlers:
        signal.signal(number, lambda number, _frame: held.append(number))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for number in held:
            signal.raise_signal(number)


def _end_by(number):
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def start_log():
    """For commands: without this, glog warns about early log lines. The caller of a command may have started the log already."""
    try:
        init_log()
    except InvalidArgument:
        pass


def require_place(file):
    """Raises IoError if no file of this name can be written: it is a folder, or its folder is missing or read-only."""
    file = os.fspath(file)
    folder = os.path.dirname(file) or "."
    if os.path.isdir(file):
        raise IoError(f"{file}: is a folder; name a file in it")
    if not os.path.isdir(folder):
        raise IoError(f"{file}: there is no folder {folder}; make it first")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise IoError(f"{file}: no file can be made in the folder {folder} (no permission to write); name another one")


def require_other(file, *read):
    """Raises InvalidArgument if the output file is one of the input files; "" and None are ignored."""
    for other in filter(None, read):
        if os.path.exists(file) and os.path.exists(other) and os.path.samefile(file, other):
            raise InvalidArgument(f"{file}: would be written over {other}, which is read; give another --output")


def require_own(file, marks, command, flag="--output"):
    """Raises IoError if the file cannot be written, InvalidArgument if it exists and `command` did not write it. marks: bytes of
    which one is near the beginning of all files that the command writes. flag: the option that named the file."""
    require_place(file)
    if not os.path.lexists(file):
        return
    try:
        with open(file, "rb") as there:
            beginning = there.read(_BEGINNING)
    except OSError as error:
        raise IoError(f"{file}: {error.strerror}") from None
    if not any(mark in beginning for mark in marks):
        raise InvalidArgument(f"{file}: already exists, and {command} has not written it; give another {flag}, or remove it")


def require_own_net(prototxt, command):
    """The same for a prototxt that begins with mark_of(command), and for the .caffemodel next to it, which has no mark."""
    require_own(prototxt, [mark_of(command)], command)
    weights = weights_beside(prototxt)
    require_own(weights, [b""] if os.path.exists(prototxt) else [], command)


def mark_of(command):
    """The line at the beginning of a prototxt that a command writes."""
    return f"# Written by {command}.\n".encode()


def with_extension(file, extension):
    """Adds an extension to the name of an output file without one. A folder's name stays unchanged, so that it is refused."""
    return file if os.path.splitext(file)[1] or os.path.isdir(file) else file + extension


def weights_beside(prototxt):
    """The name of the .caffemodel next to a prototxt. Raises InvalidArgument if it would overwrite the prototxt."""
    weights = os.path.splitext(prototxt)[0] + ".caffemodel"
    if weights == prototxt:
        raise InvalidArgument(f"{prototxt} would be the weights next to the net; name the net's file, as in "
                              f"{os.path.splitext(prototxt)[0]}.prototxt")
    return weights


def write_whole(file, text):
    """Writes text or bytes to a temporary file in the same folder and renames it. A file that is replaced keeps its mode. Raises
    IoError."""
    content = text if isinstance(text, bytes) else text.encode("utf-8")
    # Random, so that what a killed process with our number has left does not block it. Not mkstemp: its files ignore the umask.
    partial = os.path.join(os.path.dirname(file), f".{os.path.basename(file)}.{secrets.token_hex(8)}.partial")
    try:
        with open(partial, "xb") as out:
            try:
                out.write(content)
                out.flush()
                os.fsync(out.fileno())
                if os.path.exists(file):
                    shutil.copymode(file, partial)
                os.replace(partial, file)
            except BaseException:
                os.unlink(partial)
                raise
    except OSError as error:
        raise IoError(f"{file}: cannot be written: {error.strerror}") from None
