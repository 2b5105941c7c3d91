#include "tests/fuzz/dag/worker_check.hpp"

#include <algorithm>
#include <set>

#include "caffe/error.hpp"
#include "caffe/solver_group.hpp"
#include "tests/fuzz/dag/input_values.hpp"

namespace caffe::fuzz {
namespace {

constexpr int kUpdates = 2;

// Layers that treat each item of axis 0 alone, unless an option names that axis.
const std::set<std::string>& ItemwiseLayers() {
  static const std::set<std::string> types = {
      "Input",  "Convolution", "Deconvolution", "InnerProduct", "Pooling", "LRN",     "MVN",
      "ReLU",   "Sigmoid",     "TanH",          "ELU",          "AbsVal",  "BNLL",    "Swish",
      "Clip",   "Power",       "Exp",           "PReLU",        "Split",   "Silence", "Eltwise",
      "Concat", "Slice",       "Softmax",       "Tile",         "Scale",   "Bias",    "Permute",
      "Axpy",   "Threshold",   "EuclideanLoss"};
  return types;
}

int AxisOf(const LayerParameter& layer) {
  if (layer.type() == "Concat") return layer.concat_param().axis();
  if (layer.type() == "Slice") return layer.slice_param().axis();
  if (layer.type() == "Softmax") return layer.softmax_param().axis();
  if (layer.type() == "Tile") return layer.tile_param().axis();
  if (layer.type() == "InnerProduct") return layer.inner_product_param().axis();
  if (layer.type() == "Scale") return layer.bottom_size() == 2 ? 1 : layer.scale_param().axis();
  if (layer.type() == "Bias") return layer.bottom_size() == 2 ? 1 : layer.bias_param().axis();
  return 1;
}

NetParameter OfBatch(NetParameter net, int factor) {
  for (LayerParameter& layer : *net.mutable_layer()) {
    if (layer.type() != "Input") continue;
    BlobShape& shape = *layer.mutable_input_param()->mutable_shape(0);
    shape.set_dim(0, factor * shape.dim(0));
  }
  return net;
}

SolverParameter SolverOf(const NetParameter& net) {
  SolverParameter solver;
  *solver.mutable_net_param() = net;
  solver.mutable_net_param()->clear_state();
  solver.set_base_lr(0.01f);
  solver.set_lr_policy("fixed");
  solver.set_momentum(0.5f);
  solver.set_random_seed(7);
  solver.set_solver_mode(SolverParameter::CPU);
  solver.set_snapshot_after_train(false);
  return solver;
}

// Part `part` of the joined batch.
void FillPart(Net& net, int part, int parts, uint64_t pass) {
  for (size_t i = 0; i < net.input_blobs().size(); ++i) {
    Blob& blob = *net.input_blobs()[i];
    const int64_t count = blob.count();
    const std::vector<double> values = InputValues(net.input_names()[i], parts * count, pass + 1);
    std::copy_n(values.begin() + part * count, count, blob.mutable_cpu_data<double>());
  }
}

Numbers Train(const NetParameter& net, int workers) {
  SolverGroup group(SolverOf(net), {.keep_all = false}, workers);
  for (int update = 0; update < kUpdates; ++update) {
    for (int worker = 0; worker < workers; ++worker)
      FillPart(group.solver(worker).net(), worker, workers, update);
    group.Step(1);
  }
  Numbers numbers;
  for (const Net::LearnableParam& param : group.solver(0).net().learnable_params()) {
    const double* values = param.blob->cpu_data<double>();
    numbers["weights " + param.name] = {values, values + param.blob->count()};
  }
  return numbers;
}

}  // namespace

bool CanBeDivided(const NetParameter& net) {
  if (net.state().phase() != TRAIN) return false;
  bool has_loss = false;
  for (const LayerParameter& layer : net.layer()) {
    const bool is_mean_loss = layer.type() == "SoftmaxWithLoss" &&
                              (!layer.has_loss_param() ||
                               layer.loss_param().normalization() == LossParameter::BATCH_SIZE);
    if (!is_mean_loss && (ItemwiseLayers().count(layer.type()) == 0 || AxisOf(layer) == 0))
      return false;
    if (layer.type() == "Input" && layer.top(0).starts_with("nan")) return false;
    has_loss |= is_mean_loss || layer.type() == "EuclideanLoss";
  }
  return has_loss;
}

WorkerResult RunWorkers(const NetParameter& net) {
  WorkerResult result;
  try {
    const NetParameter exact = InType(net, DOUBLE);
    result.one_worker = Train(OfBatch(exact, 2), 1);
    result.two_workers = Train(exact, 2);
  } catch (const InvalidArgument& error) {
    result.refusal = error.what();
  } catch (const std::exception& error) {
    result.failure = error.what();
  }
  return result;
}

}  // namespace caffe::fuzz
