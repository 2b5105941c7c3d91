// Communicator: what the ranks of one run tell each other.
#pragma once

#include <exception>
#include <memory>
#include <span>

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

  // Each element becomes the mean of this element over all ranks, added up in an order
  // that no timing changes, in the tensor's type or a wider one. Memory of this rank's device,
  // which `filled_by` has filled when it is done with what it was given by now. Throws
  // InvalidArgument on all ranks when the tensors differ, and whatever Abort was given.
  virtual void AllReduceMean(const TensorView& tensor, Stream& filled_by) = 0;
  // The same for sums of numbers in host memory: losses, scores, decisions.
  virtual void AllReduceSum(std::span<double> numbers) = 0;

  // The same beside the collectives above, from another thread: what layers tell each other while
  // gradients are reduced.
  virtual void AllReduceSumInPass(std::span<double> numbers) = 0;

  // This rank cannot go on: collectives of all ranks throw the first error given, those that wait
  // and those to come. From any thread.
  virtual void Abort(std::exception_ptr error) = 0;
};

}  // namespace caffe
