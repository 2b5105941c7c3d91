// Communicator: the collective operations of the ranks of one run.
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "caffe/device/stream.hpp"
#include "caffe/tensor/tensor_view.hpp"

namespace caffe {

// One rank's end. Collectives wait for all ranks, which must call the same ones in the same order
// with tensors of the same count and type; one thread of a rank at a time. All ranks get the same
// bits, and on repetition the same again.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int ranks() const = 0;
  // How many of them are threads of this process.
  virtual int ranks_in_process() const = 0;

  // Called before the first AllReduceMean() with this tensor and `wire`, while no rank reduces: a
  // device may not be able to allocate later.
  virtual void Prepare(const TensorView& /*tensor*/, DType /*wire*/) {}
  // Replaces each element by its mean over all ranks. The order of additions does not depend on
  // timing; CPUs add in the tensor's type or a wider one. `tensor` is in memory of this rank's
  // device and is complete when `filled` is. If `wire` has fewer bits than the tensor's type,
  // elements are rounded to it before they are added up, and so is their mean, even if no data is
  // sent; GPUs then also add in it. Throws InvalidArgument on all ranks if the tensors differ, and
  // the error given to Abort().
  virtual void AllReduceMean(const TensorView& tensor, DType wire, Event& filled) = 0;
  // The same for sums of numbers in host memory: losses, scores, decisions.
  virtual void AllReduceSum(std::span<double> numbers) = 0;
  // All ranks' texts, by rank; they may be of different lengths.
  virtual std::vector<std::string> AllGather(const std::string& text) = 0;

  // The same, from another thread than the collectives above and at the same time: for layers that
  // exchange data while gradients are reduced.
  virtual void AllReduceSumInPass(std::span<double> numbers) = 0;
  // Sends sent[r], in host memory, to rank r, and receives received[r] from it, also for this rank
  // itself. Throws InvalidArgument if a rank is sent another number of bytes than it expects.
  virtual void ExchangeInPass(std::span<const std::span<const char>> sent,
                              std::span<const std::span<char>> received) = 0;

  // Says that this rank cannot continue: all current and later collectives of all ranks throw the
  // first error given. Thread-safe.
  virtual void Abort(std::exception_ptr error) = 0;
  // Throws what collectives throw after an abort, if this rank has been told of one. Thread-safe.
  virtual void ThrowIfAborted() = 0;
};

}  // namespace caffe
