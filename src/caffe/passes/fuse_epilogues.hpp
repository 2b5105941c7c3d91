// Fusions that quantize also applies, to steps that it has chosen.
#pragma once

#include <optional>

#include "caffe/ops/epilogue.hpp"
#include "caffe/passes/fusion.hpp"

namespace caffe::passes {

// The epilogue entry that does what a node with one data operand does; nothing for other nodes.
std::optional<ops::Pointwise> EntryOf(const Node& node);

// Makes an activation an entry of the op whose result it reads. Returns false if it could not.
bool FuseActivation(Fusion& fusion, Node& activation);

// The same for a sum of two without coefficients, as at the end of a residual block: of its
// operands, the one that is computed last is added to the other by the node that computes it.
bool FuseSum(Fusion& fusion, Node& sum);

}  // namespace caffe::passes
