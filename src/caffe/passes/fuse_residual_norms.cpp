// A row that normalises a residual sum while the sum is in the cache, which saves a read of it:
//
//   EltwiseSum(a, b) -> s, RmsNorm(s) -> y    -> Fused{EltwiseSum(a, b) -> s, RmsNorm(s) -> y}
//
// The sum is stored, too: the next block of a transformer adds to it, and gradients read it. The
// row follows fuse-epilogues, which adds the sum to the result of a product where a kernel does so.
// Programs hold no regions.
#include "caffe/ops/eltwise.hpp"
#include "caffe/ops/row_norm.hpp"
#include "caffe/passes/fusion.hpp"

namespace caffe::passes {
namespace {

using ops::RmsNorm;

bool FuseResidualNorm(Fusion& fusion, Node& norm) {
  if (norm.op.As<RmsNorm>() == nullptr) return false;
  const Operand s = norm.inputs[RmsNorm::kX];
  Node* sum = fusion.WriterOf(s);
  // A scale that a layer computes may come after the sum.
  const bool is_sum = sum != nullptr && sum->op.As<ops::EltwiseSum>() != nullptr &&
                      sum->direction == norm.direction && sum->signature == norm.signature &&
                      HaveOneType(*sum, s, norm) &&
                      fusion.StepOf(InputOf(norm, RmsNorm::kGamma)) < fusion.StepOf(*sum);
  if (!is_sum || !fusion.Merge(*sum, norm, nullptr, *sum)) return false;
  fusion.Erase(norm);
  return true;
}

const FusionRow residual_norms_row({.order = 80,
                                    .name = "fuse-residual-norms",
                                    .apply = FuseResidualNorm,
                                    .direction = Direction::kForward,
                                    .for_any_processor = false});

}  // namespace
}  // namespace caffe::passes
