// Communicator: what the ranks of one run tell each other.
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

  // Each element becomes the mean of this element over all ranks, added up in an order
  // that no timing changes, in the tensor's type or a wider one. Memory of this rank's device,
  // which is filled at the point `filled`. Elements are
  // rounded to `wire` before they are added up, and their mean is, where that has fewer bits than
  // the tensor's type; also where nothing travels. Throws InvalidArgument on all ranks when the
  // tensors differ, Unsupported where the ranks' device cannot round, and whatever Abort was given.
  virtual void AllReduceMean(const TensorView& tensor, DType wire, Event& filled) = 0;
  // The same for sums of numbers in host memory: losses, scores, decisions.
  virtual void AllReduceSum(std::span<double> numbers) = 0;
  // All ranks' texts, by rank; they may be of different lengths.
  virtual std::vector<std::string> AllGather(const std::string& text) = 0;

  // The same beside the collectives above, from another thread: what layers tell each other while
  // gradients are reduced.
  virtual void AllReduceSumInPass(std::span<double> numbers) = 0;
  // The same for bytes in host memory: sent[r] goes to rank r, received[r] comes from it, this
  // rank's own part, too. Throws InvalidArgument where a rank is sent another number of bytes than
  // it expects.
  virtual void ExchangeInPass(std::span<const std::span<const char>> sent,
                              std::span<const std::span<char>> received) = 0;

  // This rank cannot go on: collectives of all ranks throw the first error given, those that wait
  // and those to come. From any thread.
  virtual void Abort(std::exception_ptr error) = 0;
  // What collectives throw since an abort, as far as this rank has heard. From any thread.
  virtual void ThrowIfAborted() = 0;
};

}  // namespace caffe
