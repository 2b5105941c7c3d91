// A model of scaling: predicts the time of a training step on many ranks from the timeline of one
// rank and a network.
//
//   const ScalingPrediction at_256 = PredictStep(timeline, network, /*ranks=*/256, /*buckets=*/6);
//   at_256.efficiency;                                    // 0.93
//   BestBuckets(timeline, network, 256).buckets;          // the fastest reduce_buckets
//
// caffe/scaling_plan.hpp makes the timeline of a net.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "caffe/dtype.hpp"
#include "caffe/export.hpp"

namespace caffe {

// One training step of one rank that trains alone. Times in milliseconds.
struct StepTimeline {
  // A gradient of a parameter, final when step `step` of backward_ms has run.
  struct Gradient {
    size_t step = 0;
    int64_t count = 0;  // number of elements
    DType dtype = DType::kFloat;
    int layer = -1;  // its number in the net
  };

  double forward_ms = 0;  // everything before the last backward pass
  std::vector<double> backward_ms;
  double update_ms = 0;
  // In the order in which they become final, so `step` never decreases.
  std::vector<Gradient> gradients;
  // Gradients of wider types are converted to this type for transport: reduce_type of the net.
  DType wire = DType::kDouble;
  // Bytes of each reduction after the gradients: all running statistics as one, the loss, and the
  // ranks' common decisions.
  std::vector<int64_t> small_reductions;
  // Bytes that a rank sends to each other rank within its passes, for layers that are split over
  // ranks, and the number of calls.
  double exchanged_bytes = 0;
  int exchanges = 0;
  double update_of_others_ms = 0;  // of update_ms: the part of such layers that other ranks do
  int64_t images = 0;  // per rank; 0: unknown
  double milliseconds() const;
};

// Costs of communication on a processor that also computes, in seconds of one processor.
struct HostCost {
  double per_message = 0;       // sent or received
  double per_byte = 0;          // sent or received
  double per_summed_byte = 0;   // of data that ranks send to be summed
  double per_rounded_byte = 0;  // of numbers converted to or from the type on the wire
  double latency = 0;  // of a message between two processes of this machine, in addition
};

enum class ReductionAlgorithm {
  // MessageCommunicator: all ranks exchange blocks over TCP, and each sums its share.
  kMessages,
  // NCCL: the faster of a ring and a tree over GPUs.
  kRingOrTree,
};

// Bandwidths in bytes per second in each direction, latencies in seconds.
struct Network {
  static constexpr double kUnlimited = std::numeric_limits<double>::infinity();

  ReductionAlgorithm algorithm = ReductionAlgorithm::kMessages;
  int ranks_per_machine = 1;             // at least 1
  double bandwidth = kUnlimited;         // of one machine to all others
  double latency = 0;                    // of a message between machines
  double bandwidth_within = kUnlimited;  // of one rank to the others of its machine
  double latency_within = 0;             // of a message within a machine
  double start = 0;                      // of a reduction, before its first message
  HostCost host;                         // of kMessages
  // Processors of a machine, shared by the computation and communication of its ranks. 0: they
  // share none, as on GPUs.
  int processors = 0;
  int threads = 1;  // computing threads of each rank
};

// Cost of one reduction alone, in seconds.
struct ReductionCost {
  double seconds = 0;
  double processor_seconds = 0;  // on the rank's processor; the rest is waiting for messages
};

// Averages `bytes` on the wire over all ranks. `rounded_bytes`: size of the same numbers in their
// own type if it is another one, otherwise 0.
//
// kMessages: with R ranks, P on a machine, blocks of R * 512 KiB, and S = bytes:
//   messages of a rank       (1 + 2 * blocks) * 2 * (R - 1), sent and received
//   latencies                2 + blocks, one more where sums are relayed
//   bytes of a rank          4 * S * (R - 1) / R, sent and received
//   bytes of a machine       S * P / R * (R - P + M - 1), in each direction: sums are sent once to
//                            each of the M machines, and relayed; 2 * S * P * (R - P) / R for small
//                            S
// Processor and network work at the same time on what is sent; sums wait for it.
//
// kRingOrTree: with M machines (NCCL, src/graph/tuning.cc, latencies and bandwidths of both)
//   ring: 2 * S * (R - 1) / R / slowest link + 2 * (R - M) * latency_within + 2 * (M - 1) * latency
//   tree: 2 * S / slowest link + 2 * (P - 1) * latency_within + 2 * log2(M) * latency
CAFFE_EXPORT ReductionCost CostOfReduction(const Network& network, int ranks, double bytes,
                                           double rounded_bytes = 0);

// The cost of `exchanges` calls of Communicator::ExchangeInPass(), in which a rank sends `bytes` to
// each other rank. With kMessages: 4 * (R - 1) messages and 2 latencies for each call, 2 * bytes *
// (R - 1) bytes per rank, bytes * P * (R - P) per machine. Otherwise no cost.
CAFFE_EXPORT ReductionCost CostOfExchanges(const Network& network, int ranks, double bytes,
                                           int exchanges);

struct ScalingPrediction {
  int ranks = 1;
  int buckets = 1;               // reduce_buckets
  double step_ms = 0;            // of an iteration
  double communication_ms = 0;   // while something is reduced or exchanged
  double exposed_ms = 0;         // difference to a step without communication
  double efficiency = 1;         // step of one rank alone / step_ms
  double images_per_second = 0;  // over all ranks; 0: unknown
};

// Gradients are divided into `buckets` as in training. A thread reduces the buckets one after the
// other, each when its gradients are final and the previous one is done. The update begins after
// the last one; with kMessages, each bucket is updated after its own reduction, as if no update
// needs the norm of all gradients.
//
// If ranks compute on the processors that also communicate, both get equal shares per thread, as
// from a fair scheduler: on a rank with a single processor each gets half of it. More threads than
// processors slow all of them down equally.
//
// Throws InvalidArgument if ranks, buckets or ranks_per_machine is below 1, or a bandwidth is not
// positive.
CAFFE_EXPORT ScalingPrediction PredictStep(const StepTimeline& timeline, const Network& network,
                                           int ranks, int buckets);

// Returns the fastest of 1 to 64 buckets; in a tie, the fewest.
CAFFE_EXPORT ScalingPrediction BestBuckets(const StepTimeline& timeline, const Network& network,
                                           int ranks);

// Measures this machine in about half a second: two threads reduce over TCP on 127.0.0.1. Throws
// DeviceError if they cannot connect.
CAFFE_EXPORT HostCost MeasureHostCost();

}  // namespace caffe
