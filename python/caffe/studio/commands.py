"""Runs commands of `caffe` for the pages."""
import asyncio
import json
import os
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
        lines = errors.decode("utf-8", "replace").strip().splitlines()
        raise Error(lines[-1].partition("] ")[2] or lines[-1] if lines else f"{os.path.basename(words[0])} {words[1]} ended with status {process.returncode}")
    return output.decode("utf-8", "replace")


async def json_answer(*words, working=None, limit=600):
    """The same, read as JSON."""
    return json.loads(await answer(*words, working=working, limit=limit))


async def look(*words):
    """The answer of inspector.py."""
    folder = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    code = f"import sys; sys.path.insert(0, {folder!r}); from caffe.studio.inspector import main; sys.exit(main(sys.argv[1:]))"
    return await json_answer(sys.executable, "-c", code, *words)
