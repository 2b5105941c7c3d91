// TrainingNet: operations on a net that only solvers need.
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
  uint64_t number = 0;      // key of random numbers
  uint64_t ranks = 1;       // number of ranks that train together and take pass numbers in turn
  bool accumulate = false;  // add to parameter gradients instead of overwriting them
  // Factor of all losses, and so of all gradients, in memory of the net's device; see
  // NetParameter.global_grad_scale. A keep-all net shows it in the diffs of its losses. Null: 1.
  const double* loss_scale = nullptr;
  // Notified of each parameter's gradient when it is final, while the rest is computed. May be
  // null.
  const Executor::GradientListener* listener = nullptr;
  // Called with the loss before backward begins, if the net runs forward and backward separately:
  // on the CPU, and in keep-all nets. May be empty.
  std::function<void(float loss)> on_loss;
  // Runs after the pass, and is captured with it; not for keep-all nets. May be null.
  AppendedWork* appended = nullptr;
};

// A parameter of a layer that is split over ranks. Every rank has memory for the whole parameter
// and computes and updates its own part.
struct SplitParam {
  std::shared_ptr<Blob> blob;
  int64_t rows = 0;  // see RankExchange::Begin()

  // Offset of a rank's part, in elements.
  int64_t Begin(const RankExchange& exchange, int rank) const {
    return exchange.Begin(rows, rank) * (blob->count() / rows);
  }
};

// A view of a net, which must outlive it. The net's threading rules apply.
class CAFFE_EXPORT TrainingNet {
 public:
  explicit TrainingNet(Net& net) : net_(net) {}

  // Returns the weighted sum of the losses.
  float Forward(uint64_t pass);
  // Runs backward of the last forward pass, whatever pass number is given.
  void Backward(const TrainingPass& pass);
  float ForwardBackward(const TrainingPass& pass);
  // Launches a pass without waiting for the device; Net::AwaitLoss() returns the loss.
  void Launch(const TrainingPass& pass);
  // Number of the pass that Net::Forward() makes next.
  void set_next_pass(uint64_t pass);

  // Continues another run in place: with its seed, and after the records that its data layers have
  // delivered. Blobs, parameters and pointers to them stay valid.
  void ResumeFrom(uint64_t seed, const std::map<std::string, uint64_t>& delivered_records);
  // As Net::DescribeFirstNonFinite(), with `why_parameter` appended if a parameter is not finite.
  // Also examines gradients if `backward`, the last pass, is given.
  std::string DescribeFirstNonFinite(const std::string& why_parameter,
                                     const TrainingPass* backward = nullptr) const;
  // Describes the first non-finite parameter for which `is_asked` returns true; else empty. Runs
  // nothing.
  std::string DescribeNonFiniteParameter(
      const std::function<bool(const Net::LearnableParam&)>& is_asked,
      const std::string& why_parameter) const;
  // For exact resume: number of records delivered by each data layer.
  std::map<std::string, uint64_t> delivered_records() const;

  // Writes the values of the parameters, and their gradients if `write_diff`, into an HDF5 file.
  // The caller commits the file.
  static void WriteTrained(const Net& net, bool write_diff, Hdf5Writer* writer);

  // Runs the plan; replaced by another executor when shapes change.
  Executor& executor() const;
  const Graph& graph() const { return net_.graph(); }
  // Exchange between ranks of the same passes, for layers that are split over them; null for a net
  // that computes alone.
  RankExchange* exchange() const;
  std::vector<SplitParam> SplitParams() const;
  // Memory of a value of the plan; null for values in the arena.
  SyncedTensor* tensor(const Value& value) const;
  const std::shared_ptr<Device>& device() const;
  // See CompileTradeOffs().
  std::vector<Plan> TradeOffs() const;

 private:
  Net& net_;
};

}  // namespace caffe
