"""What an exception becomes before it crosses to the host: text, with the author's lines in it."""

from __future__ import annotations

import linecache
import os
import sys
import traceback
from dataclasses import dataclass

from .errors import GUEST_MEMORY, USER_CODE, Error
from .host import ApplyFault

#: Source that is kept for tracebacks; a module that is larger than what is left goes without.
SOURCE_BYTES_MAX = 1 << 20

_SDK = os.path.dirname(__file__) + os.sep
_STDLIB = os.path.dirname(traceback.__file__) + os.sep


@dataclass(frozen=True)
class Failure:
    """Why an export gave up."""

    group: int | None
    code: str
    message: str
    stack: str


def failure_of(error: BaseException, group: int | None) -> Failure:
    """The failure that an exception means, when it came out of the handler of a group or of none."""
    if isinstance(error, ApplyFault):
        group = error.group
    if isinstance(error, Error):
        code, message = error.code, error.message
    elif isinstance(error, MemoryError):
        code, message = GUEST_MEMORY, f"{_words(error)}; raise limits.sandbox.memory_bytes, or keep less"
    else:
        code, message = USER_CODE, _words(error)
    return Failure(group, text_of(code), text_of(message), text_of(_stack(error)))


def text_of(value: object) -> str:
    """A text that may cross to the host: a ``str`` without halves of surrogate pairs."""
    return str(value).encode("utf-8", "backslashreplace").decode()


def keep_sources() -> None:
    """Keeps the source of the author's modules, for tracebacks: a component has no files to read it from."""
    room = SOURCE_BYTES_MAX
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if not isinstance(file, str) or not file.endswith(".py") or file.startswith((_SDK, _STDLIB)):
            continue
        lines = linecache.getlines(file)
        size = sum(map(len, lines))
        if size <= room:
            room -= size
            # Without a time of change it is never compared with the file.
            linecache.cache[file] = (size, None, lines, file)


def _words(error: BaseException) -> str:
    name = type(error).__name__
    try:
        text = str(error)
    except Exception:
        return name
    return f"{name}: {text}" if text else name


def _stack(error: BaseException) -> str:
    """The traceback without the SDK's own frames."""
    try:
        whole = traceback.TracebackException.from_exception(error)
        shown: traceback.TracebackException | None = whole
        while shown is not None:
            frames = [frame for frame in shown.stack if not frame.filename.startswith((_SDK, "<tidemill "))]
            for frame in frames:
                _shorten(frame)
            shown.stack = traceback.StackSummary.from_list(frames)
            shown = shown.__cause__ or shown.__context__
        return "".join(whole.format())
    except Exception:
        return ""


def _shorten(frame: traceback.FrameSummary) -> None:
    """Names a file as its module is imported: a build mounts its folders under numbers."""
    for folder in sys.path:
        if folder and frame.filename.startswith(folder + os.sep):
            # Its line is looked up under the whole name, so now.
            frame.line  # noqa: B018
            frame.filename = frame.filename[len(folder) + 1 :]
