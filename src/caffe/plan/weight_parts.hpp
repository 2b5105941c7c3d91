// Makes copies of weights that are not in memory: some rows of them at a time.
#pragma once

#include <memory>

#include "caffe/plan/program_memory.hpp"
#include "caffe/tensor/origin.hpp"

namespace caffe {

// A copy whose weights a host's plan reads from their origin in parts: a cast, weights packed row
// by row, or the second made from the first.
class WeightParts {
 public:
  WeightParts(const Program& program, const Bindings& bindings, size_t copy);

  // False if the copy cannot be made so, or the weights are in memory.
  explicit operator bool() const { return origin_ != nullptr; }
  // Writes the copy. `whole` has its step's operands; only the results need memory.
  void Make(const KernelContext& whole) const;

 private:
  void Cast(const KernelContext& whole) const;
  void Pack(const KernelContext& whole) const;
  const Program::Step& step() const { return program_.steps[copy_]; }

  const Program& program_;
  const size_t copy_;
  int cast_ = -1;  // step of the cast from which the copy is made; -1: it is made from the weights
  std::shared_ptr<const Origin> origin_;
};

}  // namespace caffe
