// Scales of 8-bit numbers: which values share a scale, and from which ranges scales are derived.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "caffe/graph/graph.hpp"

namespace caffe::passes {

// True for convolutions and matrix products, which may compute in 8 bits.
bool IsProduct(const Op& op);
// The parameter or state that a value is, or that it is a view of; null if it is neither.
Value* WeightsBelow(Value* value, const std::function<Node*(const Value*)>& writer_of);
// True for ops whose results have another scale than their operands.
bool MixesScales(const Op& op);
// True for ops that only pass numbers on: their operands and results have the same scale.
bool PassesNumbers(const Op& op);

// The layer that overwrites a value in place, so that the blob's range is that of the layer's
// result; null if there is none.
const LayerParameter* OverwriterOf(const Graph& graph, const Value& value);
// Explains why the file of ranges has no range for a value, and what to do.
std::string WhyNoRange(const Graph& graph, const Value& value);
// Error for a net in which no product has a range; `value` is the operand of the first one.
std::string WhyNoRangeAtAll(const Graph& graph, const Value& value, std::string_view precision);

// Groups of values with one scale, because only passing ops are between them. For a graph with
// ranges.
class ScaleGroups {
 public:
  // `has_unsigned`: true if kernels support unsigned numbers.
  explicit ScaleGroups(const Graph& graph, bool has_unsigned = true);

  // The range of a blob's last version, or of a value in a group with one.
  std::optional<BlobRanges::Range> RangeOf(const Value* value) const;
  void Join(const Value* a, const Value* b);
  // Makes the numbers of the value and its group signed: a product's second factor must be.
  void MakeSigned(const Value* value) { signed_.insert(Root(value)); }
  // Sets type and scale of a value that has a range. Numbers are unsigned, if supported, if no
  // value is negative; 0 is always exact.
  void Quantise(const Value* value, TensorDesc* desc) const;

 private:
  const Value* Root(const Value* value) const;

  const bool has_unsigned_;
  std::map<const Value*, BlobRanges::Range> ranges_;  // of roots
  std::map<const Value*, const Value*> parents_;
  std::set<const Value*> signed_;  // roots
};

}  // namespace caffe::passes
