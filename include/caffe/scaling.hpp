// A model of scaling: what a training step takes on many ranks, predicted from the timeline of one
// rank and a network.
//
//   const ScalingPrediction at_256 = PredictStep(timeline, network, /*ranks=*/256, /*buckets=*/6);
//   at_256.efficiency;                                    // 0.93
//   BestBuckets(timeline, network, 256).buckets;          // which reduce_buckets would be fastest
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
    int64_t count = 0;  // of elements
    DType dtype = DType::kFloat;
    int layer = -1;  // its number in the net
  };

  double forward_ms = 0;  // all before the last backward pass
  std::vector<double> backward_ms;
  double update_ms = 0;
  // In the order in which they become final, so `step` never falls.
  std::vector<Gradient> gradients;
  // The type in which gradients travel that have more bits: reduce_type of the net.
  DType wire = DType::kDouble;
  // Bytes of what is counted as reduced after the gradients: running statistics as one, the loss,
  // what ranks decide together.
  std::vector<int64_t> small_reductions;
  // What a rank sends to each other one within its passes, for layers that are split over ranks,
  // and in how many calls.
  double exchanged_bytes = 0;
  int exchanges = 0;
  double update_of_others_ms = 0;  // of update_ms: what other ranks do of such layers
  int64_t images = 0;  // of one rank; 0: unknown
  double milliseconds() const;
};

// What communication costs a processor that also computes. Seconds of one processor.
struct HostCost {
  double per_message = 0;       // sent or received
  double per_byte = 0;          // sent or received
  double per_summed_byte = 0;   // of what ranks send to be added up
  double per_rounded_byte = 0;  // of numbers that are converted to the type on the wire, or back
  double latency = 0;  // of a message between two processes of this machine, beside the above
};

enum class ReductionAlgorithm {
  // MessageCommunicator: all ranks exchange blocks over TCP, and each adds up its share.
  kMessages,
  // NCCL: the faster one of a ring and a tree over GPUs.
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
  // Processors of a machine, which computation and communication of its ranks share. 0: they do not
  // share any, as on GPUs.
  int processors = 0;
  int threads = 1;  // with which each rank computes
};

// What one reduction takes by itself, in seconds.
struct ReductionCost {
  double seconds = 0;
  double processor_seconds = 0;  // of the rank's processor; the rest waits for messages
};

// The mean of `bytes` on the wire over all ranks. `rounded_bytes`: the same numbers in their own
// type where that is another one, else 0.
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

// `exchanges` calls of Communicator::ExchangeInPass(), in which a rank sends `bytes` to each other
// one. With kMessages: 4 * (R - 1) messages and 2 latencies for each, 2 * bytes * (R - 1) bytes of a
// rank, bytes * P * (R - P) of a machine. Others have none.
CAFFE_EXPORT ReductionCost CostOfExchanges(const Network& network, int ranks, double bytes,
                                           int exchanges);

struct ScalingPrediction {
  int ranks = 1;
  int buckets = 1;               // reduce_buckets
  double step_ms = 0;            // of an iteration
  double communication_ms = 0;   // during which something is reduced or exchanged
  double exposed_ms = 0;         // that the step is longer than one without communication
  double efficiency = 1;         // step of one rank alone / step_ms
  double images_per_second = 0;  // of all ranks; 0: unknown
};

// Gradients form `buckets` as in training. A thread reduces them one after the other, each when its
// gradients are final and the one before is done. The update begins after the last one; with
// kMessages a bucket's does after its own, as where no step needs the norm of all gradients.
//
// Where ranks compute with the processors that also communicate, both get equal shares per thread,
// as from a fair scheduler: a rank whose only processor computes and communicates has half of it
// for each. More threads than processors slow all of them down alike.
//
// Throws InvalidArgument where ranks, buckets or ranks_per_machine is below 1, or a bandwidth is
// not positive.
CAFFE_EXPORT ScalingPrediction PredictStep(const StepTimeline& timeline, const Network& network,
                                           int ranks, int buckets);

// The fastest of 1 to 64 buckets; of equals the fewest.
CAFFE_EXPORT ScalingPrediction BestBuckets(const StepTimeline& timeline, const Network& network,
                                           int ranks);

// Measured on this machine in about half a second: two threads reduce over TCP on 127.0.0.1. Throws
// DeviceError where they cannot connect.
CAFFE_EXPORT HostCost MeasureHostCost();

}  // namespace caffe
