// A row that computes two convolutions together, so that the image between them is not stored:
//
//   Conv(x) -> a, Conv(a) -> y        -> Fused{Conv(x) -> a, Conv(a) -> y}
//
// No other node may read `a`. Programs run on processors whose kernels have no pairs.
#include <algorithm>

#include "caffe/ops/conv.hpp"
#include "caffe/passes/fusion.hpp"

namespace caffe::passes {
namespace {

using ops::Conv;

// True for a convolution that reads and writes one image and nothing else of that size.
bool IsPlain(const Node& node) {
  const auto* conv = node.op.As<Conv>();
  return conv != nullptr && node.direction == Direction::kForward && node.outputs.size() == 1 &&
         std::ranges::none_of(conv->epilogue,
                              [](const ops::Pointwise& entry) { return entry.operand >= 0; });
}

bool PairConvolutions(Fusion& fusion, Node& second) {
  if (!IsPlain(second)) return false;
  const Operand between = second.inputs[Conv::kX];
  Node* const first = fusion.WriterOf(between);
  if (first == nullptr || !IsPlain(*first) || fusion.OnlyReaderOf(between) != &second ||
      between->kind != ValueKind::kActivation || first->signature != second.signature) {
    return false;
  }
  const DType type = between->desc.dtype;
  if (type != first->inputs[Conv::kX]->desc.dtype && !Is8Bit(type)) return false;
  if (Is8Bit(type) != Is8Bit(second.outputs[0]->desc.dtype)) return false;
  Node padded = *first;
  SetInput(padded, Conv::kBias, InputOf(*first, Conv::kBias));
  const std::vector<int> layers = second.layers;
  if (!fusion.Merge(padded, second, between, second)) return false;
  second.layers = layers;  // the owner first
  AddLayers(second, *first);
  fusion.Erase(*first);
  return true;
}

const FusionRow pair_convolutions_row({.order = kBeforeLayouts + 10,
                                       .name = "pair-convolutions",
                                       .apply = PairConvolutions,
                                       .for_any_processor = false});

}  // namespace
}  // namespace caffe::passes
