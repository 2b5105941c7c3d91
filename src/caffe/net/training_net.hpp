// TrainingNet: what solvers do with a net beyond what its users do.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "caffe/export.hpp"
#include "caffe/net.hpp"
#include "caffe/net/plan.hpp"
#include "caffe/plan/executor.hpp"

namespace caffe {

class Hdf5Writer;

// One forward and backward pass.
struct TrainingPass {
  uint64_t number = 0;      // what random draws are keyed by
  uint64_t ranks = 1;       // that train together and number their passes in turn
  bool accumulate = false;  // add to parameter gradients instead of overwriting them
  // A factor of all losses, and so of all gradients, in memory of the net's device; see
  // NetParameter.global_grad_scale. A keep-all net shows it in the diffs of its losses. Null: 1.
  const double* loss_scale = nullptr;
  // Hears of each parameter's gradient when it is final, while the rest is computed. May be null.
  const Executor::GradientListener* listener = nullptr;
  // Gets the loss before backward begins, where the net runs forward and backward apart: on the
  // CPU, and in keep-all nets. May be empty.
  std::function<void(float loss)> on_loss;
  // Follows the pass, and is part of what a device replays; not in keep-all nets. May be null.
  AppendedWork* appended = nullptr;
};

// A parameter of a layer that is split over ranks. All ranks have memory for all of it, and each
// computes and updates its own part.
struct SplitParam {
  std::shared_ptr<Blob> blob;
  int64_t rows = 0;  // see RankExchange::Begin()

  // In elements.
  int64_t Begin(const RankExchange& exchange, int rank) const {
    return exchange.Begin(rows, rank) * (blob->count() / rows);
  }
};

// A view of a net, which outlives it. Its thread rules are the net's.
class CAFFE_EXPORT TrainingNet {
 public:
  explicit TrainingNet(Net& net) : net_(net) {}

  // The weighted sum of the losses.
  float Forward(uint64_t pass);
  // Of the last forward pass, whatever number is given.
  void Backward(const TrainingPass& pass);
  float ForwardBackward(const TrainingPass& pass);
  // Without waiting for a device; Net::AwaitLoss() gives the loss.
  void Launch(const TrainingPass& pass);
  // The number of the pass that Net::Forward() makes next.
  void set_next_pass(uint64_t pass);

  // Continues another run in place: its seed, and after the records that its data layers have
  // delivered. Blobs, parameters and pointers to them stay.
  void ResumeFrom(uint64_t seed, const std::map<std::string, uint64_t>& delivered_records);
  // Net's, with what follows where a parameter is not finite. Looks at gradients, too, where
  // `backward` is given, which was the last pass.
  std::string DescribeFirstNonFinite(const std::string& why_parameter,
                                     const TrainingPass* backward = nullptr) const;
  // Of the parameters for which `is_asked` holds the first that is not finite; else empty. Runs
  // nothing.
  std::string DescribeNonFiniteParameter(
      const std::function<bool(const Net::LearnableParam&)>& is_asked,
      const std::string& why_parameter) const;
  // For exact resume: records delivered by each data layer.
  std::map<std::string, uint64_t> delivered_records() const;

  // Values of the parameters, and their gradients with `write_diff`, into a file of HDF5 that the
  // caller commits.
  static void WriteTrained(const Net& net, bool write_diff, Hdf5Writer* writer);

  // What runs the plan; another one after shapes have changed.
  Executor& executor() const;
  const Graph& graph() const { return net_.graph(); }
  // How ranks that make the same passes exchange what layers need that are split over them; null
  // for a net that computes alone.
  RankExchange* exchange() const;
  std::vector<SplitParam> SplitParams() const;
  // Memory of one of the plan's values; null for those in the arena.
  SyncedTensor* tensor(const Value& value) const;
  const std::shared_ptr<Device>& device() const;
  // See CompileTradeOffs().
  std::vector<Plan> TradeOffs() const;

 private:
  Net& net_;
};

}  // namespace caffe
