#include <algorithm>
#include <cmath>
#include <numeric>

#include "caffe/distributed/gradient_buckets.hpp"
#include "caffe/distributed/message_communicator.hpp"
#include "caffe/distributed/wire_type.hpp"
#include "caffe/error.hpp"
#include "caffe/scaling.hpp"

namespace caffe {
namespace {

constexpr int kMostBuckets = 64;

// Where ranks are.
struct Placement {
  double ranks = 1;
  double on_machine = 1;  // of the machine that has most
  double machines = 1;
};

Placement PlacementOf(const Network& network, int ranks) {
  const int on_machine = std::min(ranks, network.ranks_per_machine);
  return {.ranks = static_cast<double>(ranks),
          .on_machine = static_cast<double>(on_machine),
          .machines = std::ceil(static_cast<double>(ranks) / on_machine)};
}

ReductionCost CostOfMessages(const Network& network, const Placement& place, double bytes,
                             double rounded_bytes) {
  const HostCost& host = network.host;
  const auto& [ranks, on_machine, machines] = place;
  const double others = ranks - 1;
  const double blocks = std::ceil(bytes / (ranks * static_cast<double>(kReductionBlockBytes)));
  const double latency = machines > 1 ? network.latency : network.latency_within;
  const double sending =
      host.per_message * (1 + 2 * blocks) * 2 * others + host.per_byte * 4 * bytes * others / ranks;
  const double arithmetic =
      host.per_summed_byte * bytes + host.per_rounded_byte * 2 * rounded_bytes;
  // Sums cross the network once for each machine, where a rank relays them; see gather_routes.hpp.
  const bool relays = machines > 1 && on_machine > 1 && bytes > kLargestDirectReduction;
  const double receivers = relays ? machines - 1 : ranks - on_machine;  // of one rank's sums
  const double between =
      bytes / ranks * on_machine * (ranks - on_machine + receivers) / network.bandwidth;
  const double gathered = relays ? bytes / on_machine : bytes / ranks;  // from each other rank
  const double within = (bytes / ranks + gathered) * (on_machine - 1) / network.bandwidth_within;
  const double rounds = bytes > 0 ? 2 + blocks + (relays ? 1 : 0) : 1;
  return {.seconds =
              network.start + rounds * latency + arithmetic + std::max({sending, between, within}),
          .processor_seconds = sending + arithmetic};
}

ReductionCost CostOfRingOrTree(const Network& network, const Placement& place, double bytes) {
  const auto& [ranks, on_machine, machines] = place;
  double slowest = Network::kUnlimited;
  if (on_machine > 1) slowest = network.bandwidth_within;
  if (machines > 1) slowest = std::min(slowest, network.bandwidth);
  const double ring = 2 * bytes * (ranks - 1) / ranks / slowest +
                      2 * (ranks - machines) * network.latency_within +
                      2 * (machines - 1) * network.latency;
  const double levels = std::ceil(std::log2(machines));
  const double tree = 2 * bytes / slowest + 2 * (on_machine - 1) * network.latency_within +
                      2 * levels * network.latency;
  return {.seconds = network.start + std::min(ring, tree)};
}

// Shares of the processor: how fast a rank computes and communicates, 1 being as fast as alone.
struct Speed {
  double computing = 1, communicating = 1;
};

// The processor of one rank.
class ProcessorShare {
 public:
  ProcessorShare(const Network& network, const Placement& place)
      : is_shared_(network.processors > 0),
        processors_(network.processors / place.on_machine),
        threads_(network.threads) {}

  Speed Of(bool computes, const ReductionCost* reduction) const {
    if (!is_shared_) return {};
    const bool communicates = reduction != nullptr && reduction->seconds > 0;
    const double wanted = communicates ? reduction->processor_seconds / reduction->seconds : 0;
    const double threads = computes ? threads_ : 0;
    // No thread has more than the others, unless they want less.
    const double given = std::min(wanted, processors_ / (threads + 1));
    return {.computing = computes ? std::min(threads, processors_ - given) / threads : 1,
            .communicating = wanted > 0 ? given / wanted : 1};
  }

 private:
  const bool is_shared_;
  const double processors_, threads_;
};

struct Bucket {
  size_t step = 0;  // of backward, after which its gradients are final
  ReductionCost cost;
  double elements = 0;
};

std::vector<Bucket> BucketsOf(const StepTimeline& timeline, const Network& network, int ranks,
                              int buckets) {
  std::vector<GradientSize> sizes;
  for (const StepTimeline::Gradient& gradient : timeline.gradients) {
    sizes.push_back({static_cast<size_t>(gradient.count) * SizeOf(gradient.dtype), gradient.dtype});
  }
  std::vector<Bucket> formed;
  for (const GradientBucket& bucket : FormBuckets(sizes, buckets)) {
    const DType wire = WireType(bucket.dtype, timeline.wire);
    const auto bytes = static_cast<double>(bucket.bytes);
    const double on_wire = bytes * SizeOf(wire) / SizeOf(bucket.dtype);
    double elements = 0;
    for (size_t i = bucket.first; i < bucket.end; ++i)
      elements += static_cast<double>(timeline.gradients[i].count);
    formed.push_back(
        {.step = timeline.gradients[bucket.end - 1].step,
         .cost = CostOfReduction(network, ranks, on_wire, wire == bucket.dtype ? 0 : bytes),
         .elements = elements});
  }
  return formed;
}

// Backward and the reduction of gradients, side by side. Seconds.
class Overlap {
 public:
  Overlap(const StepTimeline& timeline, const ProcessorShare& share,
          const std::vector<Bucket>& buckets)
      : timeline_(timeline), share_(share), buckets_(buckets) {
    if (!buckets_.empty()) bucket_left_ = buckets_[0].cost.seconds;
  }

  // Returns how long it takes until all is reduced.
  double Run() {
    for (size_t step = 0; step < timeline_.backward_ms.size(); ++step) {
      step_ = step;
      Compute(timeline_.backward_ms[step] / 1e3);
    }
    backward_ = now_;
    step_ = timeline_.backward_ms.size();
    while (bucket_ < buckets_.size()) {
      Advance(bucket_left_ / share_.Of(false, &buckets_[bucket_].cost).communicating, 1);
    }
    return now_;
  }

  // During which a bucket was reduced.
  double reducing() const { return reducing_; }

  // After Run(): when all is updated, if all updates together take `seconds`. Each bucket follows
  // its reduction. Beneath backward that takes from backward what it saves later, so the model has
  // these updates after it.
  double UpdateByBucket(double seconds) const {
    double elements = 0;
    for (const Bucket& bucket : buckets_) elements += bucket.elements;
    double end = backward_;
    for (size_t i = 0; i < buckets_.size(); ++i)
      end = std::max(end, reduced_[i]) + seconds * buckets_[i].elements / elements;
    return buckets_.empty() ? now_ + seconds : end;
  }

 private:
  const ReductionCost* Current() const {
    const bool is_ready = bucket_ < buckets_.size() && buckets_[bucket_].step < step_;
    return is_ready ? &buckets_[bucket_].cost : nullptr;
  }

  // One step of backward, which takes `left` on a processor of its own.
  void Compute(double left) {
    while (left > 0) {
      const ReductionCost* reduction = Current();
      const Speed speed = share_.Of(true, reduction);
      double seconds = left / speed.computing;
      const double until_bucket =
          reduction != nullptr ? bucket_left_ / speed.communicating : Network::kUnlimited;
      if (until_bucket < seconds) {
        left -= until_bucket * speed.computing;
        Advance(until_bucket, 1);
      } else {
        left = 0;
        Advance(seconds, reduction != nullptr ? seconds / until_bucket : 0);
      }
    }
  }

  // Time passes, and so much of what is left of the bucket is reduced.
  void Advance(double seconds, double share) {
    now_ += seconds;
    if (share <= 0) return;
    reducing_ += seconds;
    bucket_left_ *= 1 - share;
    if (share < 1) return;
    ++bucket_;
    reduced_.push_back(now_);
    if (bucket_ < buckets_.size()) bucket_left_ = buckets_[bucket_].cost.seconds;
  }

  const StepTimeline& timeline_;
  const ProcessorShare& share_;
  const std::vector<Bucket>& buckets_;
  size_t step_ = 0, bucket_ = 0;
  double bucket_left_ = 0;
  double now_ = 0, reducing_ = 0, backward_ = 0;
  std::vector<double> reduced_;  // when each bucket was
};

}  // namespace

double StepTimeline::milliseconds() const {
  return std::accumulate(backward_ms.begin(), backward_ms.end(), forward_ms + update_ms);
}

ReductionCost CostOfReduction(const Network& network, int ranks, double bytes,
                              double rounded_bytes) {
  if (ranks == 1) return {};
  const Placement place = PlacementOf(network, ranks);
  return network.algorithm == ReductionAlgorithm::kMessages
             ? CostOfMessages(network, place, bytes, rounded_bytes)
             : CostOfRingOrTree(network, place, bytes);
}

ReductionCost CostOfExchanges(const Network& network, int ranks, double bytes, int exchanges) {
  if (ranks == 1 || exchanges == 0 || network.algorithm != ReductionAlgorithm::kMessages) return {};
  const Placement place = PlacementOf(network, ranks);
  const double others = place.ranks - 1;
  const double latency = place.machines > 1 ? network.latency : network.latency_within;
  const double sending = network.host.per_message * 4 * others * exchanges +
                         network.host.per_byte * 2 * bytes * others;
  const double between =
      bytes * place.on_machine * (place.ranks - place.on_machine) / network.bandwidth;
  const double within = bytes * (place.on_machine - 1) / network.bandwidth_within;
  return {.seconds = 2 * exchanges * latency + std::max({sending, between, within}),
          .processor_seconds = sending};
}

ScalingPrediction PredictStep(const StepTimeline& timeline, const Network& network, int ranks,
                              int buckets) {
  Require(ranks >= 1, "ranks is ", ranks, "; it must be at least 1");
  Require(network.ranks_per_machine >= 1, "ranks_per_machine is ", network.ranks_per_machine,
          "; it must be at least 1");
  Require(network.bandwidth > 0 && network.bandwidth_within > 0, "bandwidth is ", network.bandwidth,
          " bytes/s between machines and ", network.bandwidth_within,
          " within; both must be positive");
  const ProcessorShare share(network, PlacementOf(network, ranks));
  const std::vector<Bucket> formed = BucketsOf(timeline, network, ranks, buckets);
  const double slowdown = 1 / share.Of(true, nullptr).computing;
  Overlap overlap(timeline, share, formed);
  const double update = slowdown * (timeline.update_ms - timeline.update_of_others_ms) / 1e3;
  double seconds = slowdown * timeline.forward_ms / 1e3;
  const double reduced = overlap.Run();
  seconds += network.algorithm == ReductionAlgorithm::kMessages ? overlap.UpdateByBucket(update)
                                                                : reduced + update;
  double reducing = overlap.reducing();
  for (const int64_t bytes : timeline.small_reductions) {
    const ReductionCost cost = CostOfReduction(network, ranks, static_cast<double>(bytes));
    reducing += cost.seconds / share.Of(false, &cost).communicating;
  }
  const ReductionCost exchanges =
      CostOfExchanges(network, ranks, timeline.exchanged_bytes, timeline.exchanges);
  if (exchanges.seconds > 0)
    reducing += exchanges.seconds / share.Of(false, &exchanges).communicating;
  seconds += reducing - overlap.reducing();
  const double alone_ms = timeline.milliseconds(), step_ms = seconds * 1e3;
  return {.ranks = ranks,
          .buckets = buckets,
          .step_ms = step_ms,
          .communication_ms = reducing * 1e3,
          .exposed_ms = reducing > 0 ? std::max(0.0, step_ms - slowdown * alone_ms) : 0,
          .efficiency = step_ms > 0 ? alone_ms / step_ms : 1,
          .images_per_second =
              step_ms > 0 ? static_cast<double>(timeline.images) * ranks / seconds : 0};
}

ScalingPrediction BestBuckets(const StepTimeline& timeline, const Network& network, int ranks) {
  ScalingPrediction best = PredictStep(timeline, network, ranks, 1);
  for (int buckets = 2; buckets <= kMostBuckets; ++buckets) {
    const ScalingPrediction prediction = PredictStep(timeline, network, ranks, buckets);
    if (prediction.step_ms < best.step_ms * (1 - 1e-9)) best = prediction;
  }
  return best;
}

}  // namespace caffe
