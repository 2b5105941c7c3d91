// SplitExchange: data exchange between steps of a layer that is split over ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "caffe/graph/rank_exchange.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::passes {

// One rank's endpoint of a layer with M outputs, in which each of R ranks computes a part of the
// outputs for N rows of each rank. The functions are host calls, which all ranks must make alike.
// Elements are sent in the type of a call's outputs.
class SplitExchange {
 public:
  SplitExchange(std::shared_ptr<const RankExchange> ranks, int64_t rows, int64_t outputs)
      : ranks_(std::move(ranks)), rows_(rows), outputs_(outputs) {}

  // (x: N x K) -> (R x N x K).
  void GatherRows(const KernelContext& ctx) const;
  // (R x N x own outputs) -> (N x M).
  void ExchangeOutputs(const KernelContext& ctx) const;
  // (dy: N x M) -> (R x N x own outputs, the same / R).
  void ExchangeGradients(const KernelContext& ctx) const;
  // (R x N x K) -> (N x K from rank 0, ..., N x K from rank R - 1).
  void ScatterRows(const KernelContext& ctx) const;

 private:
  void Exchange(const std::vector<std::span<const char>>& sent,
                const std::vector<std::span<char>>& received) const;
  std::vector<std::vector<char>> Columns(DType dtype) const;
  void Divide(const TensorView& gradient, const TensorView& mean) const;

  const std::shared_ptr<const RankExchange> ranks_;
  const int64_t rows_, outputs_;
};

}  // namespace caffe::passes
