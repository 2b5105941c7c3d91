#include "tests/fuzz/dag/worker_check.hpp"

#include <algorithm>
#include <set>

#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/solver_group.hpp"
#include "tests/fuzz/dag/input_values.hpp"

namespace caffe::fuzz {
namespace {

constexpr int kUpdates = 2;

using Types = std::set<std::string>;

// Layers that process each item of axis 0 separately, unless an option names that axis.
Types& ItemwiseLayers() {
  static Types types = {"Input",
                        "Convolution",
                        "ConvolutionDepthwise",
                        "Deconvolution",
                        "InnerProduct",
                        "Pooling",
                        "LRN",
                        "MVN",
                        "ReLU",
                        "Sigmoid",
                        "TanH",
                        "ELU",
                        "AbsVal",
                        "BNLL",
                        "Swish",
                        "Clip",
                        "Power",
                        "Exp",
                        "PReLU",
                        "Split",
                        "Silence",
                        "Eltwise",
                        "Concat",
                        "Slice",
                        "Softmax",
                        "Tile",
                        "Scale",
                        "Bias",
                        "Permute",
                        "Axpy",
                        "Flatten",
                        "Reshape",
                        "Reduction",
                        "Threshold",
                        "Accuracy",
                        "ReLU6",
                        "HardSwish",
                        "Mish",
                        "GELU",
                        "SiLU",
                        "Upsample",
                        "Interp",
                        "Resample",
                        "ShuffleChannel",
                        "Reorg",
                        "Flip",
                        "LayerNorm",
                        "MatMul",
                        "Reverse"};
  return types;
}

int AxisOf(const LayerParameter& layer) {
  if (layer.type() == "Concat") return layer.concat_param().axis();
  if (layer.type() == "Slice") return layer.slice_param().axis();
  if (layer.type() == "Softmax") return layer.softmax_param().axis();
  if (layer.type() == "Tile") return layer.tile_param().axis();
  if (layer.type() == "Flatten") return layer.flatten_param().axis();
  if (layer.type() == "Reduction") return layer.reduction_param().axis();
  if (layer.type() == "InnerProduct") return layer.inner_product_param().axis();
  if (layer.type() == "Scale" && layer.bottom_size() == 2)  // its bias has the factor's shape
    return layer.scale_param().bias_term() ? layer.scale_param().axis() : 1;
  if (layer.type() == "Scale") return layer.scale_param().axis();
  if (layer.type() == "Bias") return layer.bottom_size() == 2 ? 1 : layer.bias_param().axis();
  return 1;
}

// Returns whether a Reshape keeps axis 0: it begins after that axis, or copies it.
bool KeepsItems(const ReshapeParameter& reshape) {
  return reshape.axis() > 0 || (reshape.shape().dim_size() > 0 && reshape.shape().dim(0) == 0);
}

bool IsMeanLoss(const LayerParameter& layer) {
  static const Types means = {"EuclideanLoss", "L1Loss", "SmoothL1Loss", "HingeLoss",
                              "SigmoidCrossEntropyLoss"};
  const LossParameter& loss = layer.loss_param();
  if (layer.type() == "SoftmaxWithLoss")
    return loss.normalization() != LossParameter::NONE && !loss.has_ignore_label();
  if (layer.type() == "Reduction")
    return layer.loss_weight_size() > 0 && layer.reduction_param().axis() == 0 &&
           layer.reduction_param().operation() == ReductionParameter::MEAN;
  return means.count(layer.type()) > 0;
}

// Replaces an Input layer of the net: gives each rank's part of the joined batch.
class PartOfInputLayer final : public Layer {
 public:
  using Layer::Layer;
  LayerTraits traits() const override {
    return {.num_bottoms = 0, .num_tops = 1, .is_data = true, .has_backward = false};
  }
  void Prepare(const DataPlace& place) override { place_ = place; }
  std::vector<Shape> InferTopShapes(const std::vector<Shape>&) const override {
    const BlobShape& shape = param().input_param().shape(0);
    return {Shape(std::vector<int64_t>(shape.dim().begin(), shape.dim().end()))};
  }
  void EmitForward(GraphBuilder& graph) const override {
    const auto fill = [name = param().top(0), place = place_](const KernelContext& ctx) {
      const TensorView& top = ctx.output(0);
      const std::vector<double> values =
          InputValues(name, place.ranks * top.count(), ctx.random.pass / place.ranks + 1);
      VisitFloat(top.dtype, [&]<typename T>(TypeTag<T>) {
        for (int64_t i = 0; i < top.count(); ++i)
          top.as<T>()[i] = T(values[place.rank * top.count() + i]);
      });
    };
    graph.Emit(ops::HostCall{.what = "part of the input", .call = fill}, {}, {graph.top(0)});
  }

 private:
  DataPlace place_;
};
REGISTER_LAYER_CLASS(PartOfInput, "input_param");

NetParameter OfBatch(NetParameter net, int factor) {
  for (LayerParameter& layer : *net.mutable_layer()) {
    if (layer.type() == "DummyData") {
      BlobShape& shape = *layer.mutable_dummy_data_param()->mutable_shape(0);
      shape.set_dim(0, factor * shape.dim(0));
    }
    if (layer.type() != "Input") continue;
    layer.set_type("PartOfInput");
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

bool IsDivergence(const Error& error) {
  return std::string(error.what()).find("is not a number") != std::string::npos;
}

// Some nets multiply their inputs so often that they diverge with any number of workers.
Numbers Train(const NetParameter& net, int workers) {
  SolverGroup group(SolverOf(net), {.keep_all = false}, workers);
  try {
    group.Step(kUpdates);
  } catch (const Error& error) {
    if (!IsDivergence(error)) throw;
    return {{"diverged", {1}}};
  }
  Numbers numbers;
  for (const Net::LearnableParam& param : group.solver(0).net().learnable_params()) {
    const double* values = param.blob->cpu_data<double>();
    numbers["weights " + param.name] = {values, values + param.blob->count()};
  }
  return numbers;
}

}  // namespace

ItemwiseLayer::ItemwiseLayer(const std::string& type) {
  ItemwiseLayers().insert(type);
}

bool CanBeDivided(const LayerParameter& layer) {
  if (IsMeanLoss(layer)) return true;
  if (layer.type() == "Input") return !layer.top(0).starts_with("nan");
  if (layer.type() == "DummyData")
    return layer.dummy_data_param().data_filler(0).type() == "constant";
  if (layer.type() == "Reshape") return KeepsItems(layer.reshape_param());
  return ItemwiseLayers().count(layer.type()) > 0 && AxisOf(layer) != 0;
}

bool CanBeDivided(const NetParameter& net) {
  static const Types with_weights = {"Convolution", "ConvolutionDepthwise", "Deconvolution",
                                     "InnerProduct"};
  const auto& layers = net.layer();
  return net.state().phase() == TRAIN &&
         std::ranges::all_of(layers,
                             [](const LayerParameter& layer) { return CanBeDivided(layer); }) &&
         std::ranges::any_of(layers, IsMeanLoss) &&
         std::ranges::any_of(layers, [](const LayerParameter& layer) {
           return with_weights.count(layer.type()) > 0;
         });
}

Numbers RunWorkerInFloat(const NetParameter& net) {
  return Train(OfBatch(InType(net, FLOAT), 2), 1);
}

WorkerResult RunWorkers(const NetParameter& net) {
  WorkerResult result;
  try {
    const NetParameter exact = InType(net, DOUBLE);
    result.one_worker = Train(OfBatch(exact, 2), 1);
    result.two_workers = Train(OfBatch(exact, 1), 2);
  } catch (const InvalidArgument& error) {
    result.refusal = error.what();
  } catch (const std::exception& error) {
    result.failure = error.what();
  }
  return result;
}

}  // namespace caffe::fuzz
