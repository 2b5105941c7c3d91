"""The text of errors, for pages and logs."""
import os

from .. import Error


def has_address(name):
    """False for the name of a file that no address of a page can have, because it is not UTF-8."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def shown(text):
    """The text as browsers can get it: escaped where it is not UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode()


def is_expected(error):
    """False for an error that is a defect of the studio."""
    return isinstance(error, (Error, OSError))


def text_of(error):
    """The message of an error. A defect goes by the name of its type."""
    if isinstance(error, OSError) and error.strerror:
        where = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
        return shown(f"{where}{error.strerror}")
    if is_expected(error):
        return shown(str(error))
    return shown(f"The studio has a defect ({type(error).__name__}: {error}). Its log says more; please report it.")
