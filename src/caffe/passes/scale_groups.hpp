// The scales of 8-bit numbers: which values share one, by which ranges.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "caffe/graph/graph.hpp"

namespace caffe::passes {

// Convolutions and matrix products, which may compute in 8 bits.
bool IsProduct(const Op& op);
// Ops that make numbers of another scale than those they read.
bool MixesScales(const Op& op);
// Ops that only pass numbers on: all that they read and make has one scale.
bool PassesNumbers(const Op& op);

// The layer that overwrites a value in place, so that its blob's range is that of what the layer
// makes; null where there is none.
const LayerParameter* OverwriterOf(const Graph& graph, const Value& value);
// Why the file of ranges has none of a value, and what to do.
std::string WhyNoRange(const Graph& graph, const Value& value);
// The error for a net none of whose products has a range; `value` is what the first one reads.
std::string WhyNoRangeAtAll(const Graph& graph, const Value& value, std::string_view precision);

// Values that have one scale because ops only pass numbers on between them. Of a graph with ranges.
class ScaleGroups {
 public:
  // `has_unsigned`: whether there are unsigned numbers at all.
  explicit ScaleGroups(const Graph& graph, bool has_unsigned = true);

  // Of a blob's last version, and of what is in a group with one.
  std::optional<BlobRanges::Range> RangeOf(const Value* value) const;
  void Join(const Value* a, const Value* b);
  // Type and scale of a value that has a range. Unsigned numbers, if there are any, where no value
  // is negative; 0 is always exact.
  void Quantise(const Value* value, TensorDesc* desc) const;

 private:
  const Value* Root(const Value* value) const;

  const bool has_unsigned_;
  std::map<const Value*, BlobRanges::Range> ranges_;  // of roots
  std::map<const Value*, const Value*> parents_;
};

}  // namespace caffe::passes
