"""The plan of a run: its layers with time, memory and types."""
import collections
import json
import os
import re

_LARGEST = 256 << 20  # bytes of a file
_LARGEST_NUMBER = 1 << 63
_TYPES = re.compile(r"\b(double|float16|bfloat16|float|int8|uint8|int32|int64)\b")


def _json(folder, name):
    file = os.path.join(folder, name)
    try:
        if not os.path.isfile(file) or os.path.getsize(file) > _LARGEST:
            return {}
        with open(file, encoding="utf-8") as text:
            found = json.load(text)
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _objects(values):
    """The objects in a list, of what may be no list."""
    return [value for value in values if isinstance(value, dict)] if isinstance(values, list) else []


def _number(value):
    """A number that is finite, 0 for all else."""
    return value if isinstance(value, (int, float)) and abs(value) < _LARGEST_NUMBER else 0


def _milliseconds(folder):
    """{layer: ms in an iteration} from the timeline: the mean over the iterations that are in it."""
    microseconds, iterations = collections.Counter(), 0
    for event in _objects(_json(folder, "trace.json").get("traceEvents")):
        if event.get("ph") == "X" and event.get("pid") == 0 and event.get("tid") == 0:
            microseconds[str(event.get("name"))] += _number(event.get("dur"))
            iterations += event.get("name") == "backward"
    return {name: total / 1000 / iterations for name, total in microseconds.items()} if iterations else {}


def read_plan(folder):
    """{"memory": {what: bytes}, "parameters": count, "layers": [...]} of a run folder; {} if it has no plan. Damaged parts are left out.

    layers: dicts of name, steps, bytes (that they read and write), flops, types, kernels, and milliseconds if the run folder has a timeline, in
    the order of the plan. A step of several layers has their names joined by commas.
    """
    plan = _json(folder, "plan.json")
    if not isinstance(plan.get("steps"), list):
        return {}
    times, layers = _milliseconds(folder), {}
    for step in _objects(plan["steps"]):
        name = str(step.get("layers", ""))
        layer = layers.setdefault(name, {"name": name, "steps": 0, "bytes": 0, "flops": 0, "types": [], "kernels": [],
                                         "milliseconds": times.get(name)})
        layer["steps"] += 1
        layer["bytes"] += _number(step.get("bytes"))
        layer["flops"] += _number(step.get("flops"))
        for key, values in (("types", _TYPES.findall(str(step.get("operands", "")))), ("kernels", [str(step.get("kernel", ""))])):
            layer[key] += [value for value in dict.fromkeys(values) if value not in layer[key]]
    memory = plan.get("memory")
    return {"memory": {what: _number(count) for what, count in memory.items()} if isinstance(memory, dict) else {},
            "parameters": _number(plan.get("parameter_count")), "layers": list(layers.values())}
