"""The plan of a run: its layers with time, memory and types."""
import collections
import json
import os
import re

_LARGEST = 256 << 20
_TYPES = re.compile(r"\b(double|float16|bfloat16|float|int8|uint8|int32|int64)\b")


def _json(folder, name):
    file = os.path.join(folder, name)
    try:
        if os.path.getsize(file) > _LARGEST:
            return {}
        with open(file, encoding="utf-8") as text:
            found = json.load(text)
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _milliseconds(folder):
    """{layer: ms in an iteration} from the timeline: the mean over the iterations that are in it."""
    microseconds, iterations = collections.Counter(), 0
    for event in _json(folder, "trace.json").get("traceEvents", []):
        if event.get("ph") == "X" and event.get("pid") == 0 and event.get("tid") == 0:
            microseconds[event.get("name")] += event.get("dur", 0)
            iterations += event.get("name") == "backward"
    return {name: total / 1000 / iterations for name, total in microseconds.items()} if iterations else {}


def read_plan(folder):
    """{"memory": {what: bytes}, "parameters": count, "layers": [...]} of a run folder; {} if it has no plan.

    layers: dicts of name, steps, bytes (that they read and write), flops, types, kernels, and milliseconds if the run folder has a timeline, in
    the order of the plan. A step of several layers has their names joined by commas.
    """
    plan = _json(folder, "plan.json")
    if not isinstance(plan.get("steps"), list):
        return {}
    times, layers = _milliseconds(folder), {}
    for step in plan["steps"]:
        name = str(step.get("layers", ""))
        layer = layers.setdefault(name, {"name": name, "steps": 0, "bytes": 0, "flops": 0, "types": [], "kernels": [],
                                         "milliseconds": times.get(name)})
        layer["steps"] += 1
        layer["bytes"] += step.get("bytes", 0)
        layer["flops"] += step.get("flops", 0)
        for key, values in (("types", _TYPES.findall(str(step.get("operands", "")))), ("kernels", [str(step.get("kernel", ""))])):
            layer[key] += [value for value in dict.fromkeys(values) if value not in layer[key]]
    return {"memory": plan.get("memory", {}), "parameters": plan.get("parameter_count", 0), "layers": list(layers.values())}
