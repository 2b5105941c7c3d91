"""Einsum of two tensors: a product of matrices in batches between permutations."""
from math import prod

from .registry import reads


@reads("Einsum")
def einsum(node):
    equation = node.get("equation").replace(" ", "")
    terms, _, result = equation.partition("->")
    factors = terms.split(",")
    is_plain = len(factors) == 2 and "->" in equation and "." not in equation
    node.require(is_plain and all(len(set(term)) == len(term) for term in (*factors, result)), f"the equation {equation}")
    one, other = factors
    extents = {letter: extent for k, term in enumerate(factors) for letter, extent in zip(term, node.shape(k))}
    node.require(all(extents[letter] == extent for k, term in enumerate(factors) for letter, extent in zip(term, node.shape(k))),
                 f"factors of shapes {node.shape(0)} and {node.shape(1)}, of which one is repeated")
    batch = [letter for letter in one if letter in other and letter in result]
    summed = [letter for letter in one if letter in other and letter not in result]
    rows = [letter for letter in one if letter not in other]
    columns = [letter for letter in other if letter not in one]
    node.require(set(rows + columns) <= set(result), f"the equation {equation}, which sums over an axis of one factor")

    # The axis of items, whose extent is inferred.
    items = next((term[:1] for k, term in enumerate(factors) if node.constant(k) is None), None)

    def sizes(parts):
        return [-1 if items and items in part else prod(extents[letter] for letter in part) for part in parts]

    def matrices(index, parts, name):
        letters = [letter for part in parts for letter in part]
        term, bottom = factors[index], node.blob_of(index)
        order = [term.index(letter) for letter in letters]
        if order != sorted(order):
            turned = node.scratch(f"{name}_turned")
            node.layer("Permute", bottoms=[bottom], tops=[turned], permute_param={"order": order})
            bottom = turned
        top = node.scratch(f"{name}_matrices")
        node.set_shape(bottom, top, sizes(parts))
        return top

    product = node.scratch("product")
    node.layer("MatMul", bottoms=[matrices(0, (batch, rows, summed), "first"), matrices(1, (batch, summed, columns), "second")],
               tops=[product])
    letters = batch + rows + columns
    order = [letters.index(letter) for letter in result]
    whole = node.outputs[0] if order == sorted(order) else node.scratch("whole")
    node.set_shape(product, whole, sizes(letters))
    if whole != node.outputs[0]:
        node.layer("Permute", bottoms=[whole], permute_param={"order": order})
