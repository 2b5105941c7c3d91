"""Runs commands of `caffe` for the pages."""
import asyncio
import json
import os
import re
import sys

from .. import Error


async def answer(*words, working=None, limit=600):
    """The output of a command. Raises Error with what it prints to standard error if it fails, or takes more than `limit` seconds."""
    process = await asyncio.create_subprocess_exec(*map(str, words), cwd=working, stdin=asyncio.subprocess.DEVNULL,
                                                   stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
                                                   env={**os.environ, "PYTHON": sys.executable, "GLOG_minloglevel": "1"})
    try:
        output, errors = await asyncio.wait_for(process.communicate(), limit)
    except asyncio.TimeoutError:
        process.kill()
        await process.wait()
        raise Error(f"{os.path.basename(words[0])} {words[1]} has not ended after {limit} s") from None
    if process.returncode:
        raise Error(_complaint(errors.decode("utf-8", "replace")) or f"{os.path.basename(words[0])} {words[1]} ended with status {process.returncode}")
    return output.decode("utf-8", "replace")


_BEGIN = re.compile(r"[IWEF]\d{4} [^\]]*\] |caffe \w+: ")


def _complaint(text):
    """The last message, which may have several lines, without the prefix of logs; also those before it that it speaks of."""
    lines = text.strip().splitlines()
    begins = [index for index, line in enumerate(lines) if _BEGIN.match(line)]
    begin = begins[-1] if begins else max(0, len(lines) - 1)
    if "see above" in "\n".join(lines[begin:]):
        begin = begins[max(0, len(begins) - 4)]
    return "\n".join(_BEGIN.sub("", line, count=1) for line in lines[begin:])


async def json_answer(*words, working=None, limit=600):
    """The same, read as JSON."""
    return json.loads(await answer(*words, working=working, limit=limit))


async def look(*words):
    """The answer of inspector.py."""
    folder = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    code = f"import sys; sys.path.insert(0, {folder!r}); from caffe.studio.inspector import main; sys.exit(main(sys.argv[1:]))"
    return await json_answer(sys.executable, "-c", code, *words)
