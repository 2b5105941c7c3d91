"""What commands write: the log, and files that long work ends in, whose wrong places are said before it begins."""
import os
import signal
import sys

from ._caffe import Error, InvalidArgument, IoError, init_log


def run_command(name, work, also=()):
    """Runs work(), all that `caffe NAME` does, and returns the exit status. Our errors, those of the types `also` and files
    that the system refuses end in one line. Ctrl-C, and a reader of the output that is gone, end the process as they end
    other programs."""
    try:
        work()
        sys.stdout.flush()
    except (Error, *also) as error:
        print(f"caffe {name}: {error}", file=sys.stderr)
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
    return 0


def _end_by(number):
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def start_log():
    """Of a command: glog warns of lines that come before. Programs that call a command may have started it."""
    try:
        init_log()
    except InvalidArgument:
        pass


def require_place(file):
    """Raises IoError where no file of this name can be written: a folder, or in a folder that is not there."""
    file = os.fspath(file)
    folder = os.path.dirname(file) or "."
    if os.path.isdir(file):
        raise IoError(f"{file}: is a folder; name a file in it")
    if not os.path.isdir(folder):
        raise IoError(f"{file}: there is no folder {folder}; make it first")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise IoError(f"{file}: no file can be made in the folder {folder} (no permission to write); name another one")


def require_other(file, *read):
    """Raises InvalidArgument where the file to write is one of those that are read; "" and None are none."""
    for other in filter(None, read):
        if os.path.exists(file) and os.path.exists(other) and os.path.samefile(file, other):
            raise InvalidArgument(f"{file}: would be written over {other}, which is read; give another --output")


def with_extension(file, extension):
    """The name of a file that a command writes; one without an extension gets this one. A folder's stays, to be refused."""
    return file if os.path.splitext(file)[1] or os.path.isdir(file) else file + extension


def weights_beside(prototxt):
    """The .caffemodel that goes with a prototxt. Raises InvalidArgument where one would overwrite the other."""
    weights = os.path.splitext(prototxt)[0] + ".caffemodel"
    if weights == prototxt:
        raise InvalidArgument(f"{prototxt} would be the weights beside the net; name the net's file, as in "
                              f"{os.path.splitext(prototxt)[0]}.prototxt")
    return weights
