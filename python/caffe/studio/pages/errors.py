"""Turns errors into messages, in one way for all pages: the pages themselves, what users ask for, and what is refreshed."""
import contextlib
import logging

from nicegui import ui
from nicegui.client import ClientConnectionTimeout

from ..messages import is_expected, text_of

_LOG = logging.getLogger(__name__)


def failure(text):
    """Shows an error on the page. Returns its element."""
    with ui.row().classes("failure items-start no-wrap").props('role="alert"') as row:
        ui.icon("error_outline")
        ui.label(text).classes("code" if "\n" in text else "")
    return row


@contextlib.contextmanager
def shown_here():
    """Shows an error of the block where the block would have shown its result."""
    try:
        yield
    except ClientConnectionTimeout:  # nobody is there to read it
        raise
    except Exception as error:  # pylint: disable=broad-exception-caught  # a part of a page must not take the others with it
        failure(_logged(error))


def every(seconds, refresh):
    """Calls refresh(), which may be a coroutine, every so many seconds while the page is open, until its first error. That one is
    shown above what it concerns."""
    async def call():
        try:
            result = refresh()
            if result is not None:
                await result
        except Exception as error:  # pylint: disable=broad-exception-caught  # the page stays as it is
            timer.cancel()
            failure(f"{_logged(error)}\nThis page is no longer updated. Load it again.").move(target_index=0)

    timer = ui.timer(seconds, call)


def _logged(error):
    if not is_expected(error):
        _LOG.error("a page has failed", exc_info=error)
    return text_of(error)


def notify_of_handlers():
    """Shows the errors of this page's event handlers as notifications, which stay until they are closed."""
    ui.on_exception(lambda error: ui.notify(text_of(error), type="negative", timeout=0, close_button="Close", multi_line=True))
    log = logging.getLogger("nicegui")
    if _is_defect not in log.filters:
        log.addFilter(_is_defect)


def _is_defect(record):
    """Keeps what users have been told from the log of NiceGUI, which has a traceback for each error."""
    return not isinstance(record.msg, Exception) or not is_expected(record.msg)
