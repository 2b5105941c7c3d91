"""Keeps the worst of many items without storing the others."""
from __future__ import annotations

import heapq
from typing import Any, Callable, List, Tuple


class Worst:
    """Keeps at most `count` items with the largest badness; the first wins ties."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._heap: List[Tuple[Any, int, Any]] = []
        self._number = 0

    def offer(self, badness: Any, make: Callable[[], Any]) -> None:
        """Calls make() to get the item, but only if it ranks among the worst so far."""
        self._number -= 1
        if self._count == 0 or (len(self._heap) == self._count and self._heap[0][:2] > (badness, self._number)):
            return
        entry = (badness, self._number, make())
        if len(self._heap) < self._count:
            heapq.heappush(self._heap, entry)
        else:
            heapq.heapreplace(self._heap, entry)

    def items(self) -> List[Any]:
        """The items, the worst first."""
        return [item for _, _, item in sorted(self._heap, key=lambda entry: entry[:2], reverse=True)]
