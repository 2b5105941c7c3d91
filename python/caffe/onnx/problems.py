"""Operators and layers that a chip does not support."""
from collections import OrderedDict
from typing import NamedTuple, Optional

_NAMED = 4  # most layers that a sentence names


class Problem(NamedTuple):
    """A layer's name, its type (None if it is not a layer of the net) and the reason why the chip does not support it."""
    layer: str
    kind: Optional[str]
    text: str

    def __str__(self):
        return f"{title(self.layer, self.kind)}: {self.text}"


def title(layer, kind):
    return f"layer '{layer}' ({kind})" if kind else layer


def in_sentences(problems):
    """One sentence per type and reason, with the names of the layers."""
    groups = OrderedDict()
    for problem in problems:
        groups.setdefault((problem.kind, problem.text), []).append(problem)
    return "; ".join(map(_sentence, groups.values()))


def _sentence(problems):
    first = problems[0]
    if len(problems) == 1 or first.kind is None:
        return str(first)
    shown = problems if len(problems) <= _NAMED else problems[:_NAMED - 1]
    names = [f"'{problem.layer}'" for problem in shown]
    rest = len(problems) - len(shown)
    last = f"{rest} more" if rest else names.pop()
    return f"layers {', '.join(names)} and {last} ({first.kind}): {first.text}"
