"""Makes names unique."""


class Names:
    """The names taken so far. `separator` stands between a name and the number that makes it unique."""

    def __init__(self, separator):
        self._separator, self._taken = separator, set()

    def take(self, wanted):
        """`wanted`, with a number appended if the name is taken."""
        name, count = wanted, 1
        while name in self._taken:
            count += 1
            name = f"{wanted}{self._separator}{count}"
        self._taken.add(name)
        return name
