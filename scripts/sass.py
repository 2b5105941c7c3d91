"""SASS, the machine code of NVIDIA's chips, as printed by `nvdisasm`: functions, loops, executed instructions.

    kernels = parse(text)                      # by mangled name
    loop = hot_loop(kernels[name], depth=0)    # the innermost loop that moves the most bytes
    path = loop.longest_path(trips=[])         # [(instruction, executions per trip)]

A path is the longest one through the loop's body, without blocks that call a function. The functions that
nvcc calls are slow paths: 64-bit divisions, and divisions of floats near overflow.
"""
import re
from dataclasses import dataclass, field
from functools import cached_property

INSTRUCTION = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(?:@(!?U?P\w+)\s+)?([A-Z][\w.]*)\s*(.*?)\s*;")
LABEL = re.compile(r"^(\.L_x_\d+):")
TARGET = re.compile(r"`\((\.L_x_\d+)\)")
REGISTER = re.compile(r"\bR(\d+)(\.64)?\b")


@dataclass(eq=False)
class Instruction:
    guard: str | None  # the predicate that guards it
    opcode: str
    operands: str

    @property
    def name(self):
        return self.opcode.split(".")[0]

    @property
    def is_global_load(self):
        return self.name in ("LDG", "LD")

    @property
    def is_global_store(self):
        return self.name in ("STG", "ST")

    @property
    def bytes(self):
        """Bytes that one thread moves from or to global memory."""
        if not (self.is_global_load or self.is_global_store):
            return 0
        for suffix, size in ((".128", 16), (".64", 8), (".U16", 2), (".S16", 2), (".U8", 1), (".S8", 1)):
            if suffix in self.opcode:
                return size
        return 4

    @property
    def target(self):
        found = TARGET.search(self.operands)
        return found[1] if found and self.name == "BRA" else None

    @property
    def is_conditional(self):
        # Branches may name a second predicate instead of a guard.
        return self.guard not in (None, "PT") or self.operands.startswith(("P", "!P", "UP", "!UP"))

    def destinations(self):
        """Registers that a load writes."""
        first = REGISTER.match(self.operands)
        if first is None or not self.is_global_load:
            return set()
        return {int(first[1]) + i for i in range(max(1, self.bytes // 4))}

    def mentions(self):
        """Registers that it reads or writes, with the width that its suffixes give."""
        wide = 4 if ".128" in self.opcode else 2 if ".64" in self.opcode else 1
        found = set()
        for match in REGISTER.finditer(self.operands):
            found |= {int(match[1]) + i for i in range(2 if match[2] else wide)}
        return found


@dataclass(eq=False)
class Block:
    number: int
    instructions: list = field(default_factory=list)
    successors: list = field(default_factory=list)

    @property
    def calls(self):
        return any(i.name in ("CALL", "RET") for i in self.instructions)

    @property
    def bytes(self):
        return sum(i.bytes for i in self.instructions)


@dataclass(eq=False)
class Loop:
    header: Block
    blocks: set
    latches: set
    inner: list = field(default_factory=list)  # loops directly inside

    @property
    def depth(self):
        """Number of nested levels of loops inside."""
        return 1 + max(loop.depth for loop in self.inner) if self.inner else 0

    @property
    def bytes(self):
        return sum(block.bytes for block in self.blocks)

    @property
    def instructions(self):
        return [i for block in sorted(self.blocks, key=lambda b: b.number) for i in block.instructions]

    def _weights(self, trips):
        weights = {block: 1 for block in self.blocks}
        for loop in self.inner:
            times = trips[0] if trips else 1
            for block, weight in loop._weights(trips[1:]).items():
                weights[block] = weight * times
        return weights

    def longest_path(self, trips=()):
        """trips: how often the inner loops run per trip of the loop around them, outermost first."""
        weights = self._weights(list(trips))
        order = sorted(self.blocks, key=lambda b: b.number)
        best = {self.header: (len(self.header.instructions), None)}
        for block in order:
            if block not in best:
                continue
            for following in block.successors:
                if following not in self.blocks or following.number <= block.number or following.calls:
                    continue
                length = best[block][0] + weights[following] * len(following.instructions)
                if length > best.get(following, (-1, None))[0]:
                    best[following] = (length, block)
        ends = [block for block in self.latches if block in best]
        if not ends:
            raise ValueError("no way through the loop without a call")
        block, path = max(ends, key=lambda b: best[b][0]), []
        while block is not None:
            path.append(block)
            block = best[block][1]
        return [(i, weights[block]) for block in reversed(path) for i in block.instructions]


class Function:
    def __init__(self, name, lines):
        self.name = name
        self.blocks = self._blocks(lines)

    @staticmethod
    def _blocks(lines):
        blocks, of_label = [Block(0)], {}
        for line in lines:
            if label := LABEL.match(line):
                if blocks[-1].instructions:
                    blocks.append(Block(len(blocks)))
                of_label[label[1]] = blocks[-1]
            elif found := INSTRUCTION.match(line):
                instruction = Instruction(found[2], found[3], found[4])
                blocks[-1].instructions.append(instruction)
                if instruction.name in ("BRA", "EXIT", "RET", "CALL", "BRX"):
                    blocks.append(Block(len(blocks)))
        for block, following in zip(blocks, blocks[1:] + [None]):
            last = block.instructions[-1] if block.instructions else None
            if last is not None and last.target in of_label:
                block.successors.append(of_label[last.target])
            ends = last is not None and last.name in ("BRA", "EXIT", "RET", "BRX") and not last.is_conditional
            if following is not None and not ends:
                block.successors.append(following)
        return blocks

    def _dominators(self):
        everything = set(self.blocks)
        dominators = {block: everything for block in self.blocks}
        dominators[self.blocks[0]] = {self.blocks[0]}
        before = {block: [] for block in self.blocks}
        for block in self.blocks:
            for following in block.successors:
                before[following].append(block)
        changed = True
        while changed:
            changed = False
            for block in self.blocks[1:]:
                sets = [dominators[b] for b in before[block]]
                found = (set.intersection(*sets) if sets else set()) | {block}
                if found != dominators[block]:
                    dominators[block], changed = found, True
        return dominators, before

    @cached_property
    def loops(self):
        dominators, before = self._dominators()
        loops = {}
        for block in self.blocks:
            for header in block.successors:
                if header not in dominators[block]:
                    continue
                loop = loops.setdefault(header, Loop(header, {header}, set()))
                loop.latches.add(block)
                reached = [block]
                while reached:
                    member = reached.pop()
                    if member not in loop.blocks:
                        loop.blocks.add(member)
                        reached += before[member]
        found = sorted(loops.values(), key=lambda loop: len(loop.blocks))
        for i, loop in enumerate(found):
            around = next((o for o in found[i + 1:] if loop.header in o.blocks), None)
            if around is not None:
                around.inner.append(loop)
        return found

    @property
    def instructions(self):
        return [i for block in self.blocks for i in block.instructions]


def parse(text):
    """Functions by mangled name."""
    functions, name, lines = {}, None, []
    for line in text.splitlines():
        if start := re.match(r"^\.text\.(\S+):", line):
            if name:
                functions[name] = Function(name, lines)
            name, lines = start[1], []
        elif name and line.lstrip().startswith(".section"):
            functions[name] = Function(name, lines)
            name, lines = None, []
        elif name:
            lines.append(line)
    if name:
        functions[name] = Function(name, lines)
    return functions


def hot_loop(function, depth, size=None, access=None):
    """Among the loops with `depth` levels inside, the one that moves the most bytes, or exactly `size` bytes, and whose
    narrowest access has `access` bytes."""
    candidates = [loop for loop in function.loops if loop.depth == depth and loop.bytes > 0]
    if size is not None:
        candidates = [loop for loop in candidates if loop.bytes == size]
    if access is not None:
        candidates = [loop for loop in candidates if min(i.bytes for i in loop.instructions if i.bytes) == access]
    if not candidates:
        raise ValueError(f"{function.name}: no loop of depth {depth} moves {size or 'any'} bytes"
                         f"{'' if access is None else f' by {access} at least'}; there are "
                         f"(depth, bytes) {sorted((loop.depth, loop.bytes) for loop in function.loops)}")
    return max(candidates, key=lambda loop: loop.bytes)


def loads_in_flight(path):
    """The largest number of loads, and of their bytes, in flight before one of them is used."""
    waiting, most, most_bytes = [], 0, 0
    for instruction, _ in path:
        mentioned = instruction.mentions()
        used = [i for i, load in enumerate(waiting) if load.destinations() & mentioned]
        if used:  # loads return in order
            waiting = waiting[max(used) + 1:]
        if instruction.is_global_load:
            waiting.append(instruction)
            most = max(most, len(waiting))
            most_bytes = max(most_bytes, sum(load.bytes for load in waiting))
    return most, most_bytes
