#include "tests/fuzz/dag/net_run.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "caffe/error.hpp"
#include "caffe/graph/graph.hpp"
#include "caffe/graph/printer.hpp"
#include "caffe/net/plan.hpp"
#include "caffe/net/training_net.hpp"
#include "tests/fuzz/dag/input_values.hpp"
#include "tests/fuzz/dag/normalisation.hpp"
#include "tests/fuzz/dag/random_numbers.hpp"

namespace caffe::fuzz {
namespace {

constexpr uint64_t kSeed = 7;

std::vector<double> DataOf(const Blob& blob) {
  const double* values = blob.cpu_data<double>();
  return {values, values + blob.count()};
}

std::vector<double> DiffOf(const Blob& blob) {
  const double* values = blob.cpu_diff<double>();
  return {values, values + blob.count()};
}

// Multiplies numbers by 1 + noise. Equal numbers in one array get the same noise, because they are
// rounded in the same way: their errors add up.
class Noise {
 public:
  explicit Noise(const RunOptions& options) : options_(options), random_(options.noise_seed) {}

  void Add(double* values, int64_t count) {
    const uint64_t seed = random_.Next();
    for (int64_t i = 0; i < count; ++i) {
      if (values[i] == 0) continue;  // exact in every type, and a ReLU must stay closed
      RandomNumbers random(seed ^ std::bit_cast<uint32_t>(static_cast<float>(values[i])));
      values[i] += options_.noise * random.Uniform() * values[i] +
                   options_.absolute_noise * random.Uniform();
    }
  }
  void AddToData(Blob& blob) { Add(blob.mutable_cpu_data<double>(), blob.count()); }
  void AddToDiff(Blob& blob) { Add(blob.mutable_cpu_diff<double>(), blob.count()); }

  // Adds the effect of a layer's own rounding on sums that cancel.
  void AddOfLayer(const Layer& layer, const Blob& bottom, Blob& top) {
    const auto rounding = Normalisation::Of(layer, bottom.shape());
    if (!rounding) return;
    rounding->AddToTop(bottom.cpu_data<double>(), options_.noise, random_,
                       top.mutable_cpu_data<double>());
  }
  void AddOfGradient(const Layer& layer, const Blob& top, Blob& bottom) {
    const auto rounding = Normalisation::Of(layer, bottom.shape());
    if (!rounding) return;
    rounding->AddToBottomDiff(bottom.cpu_data<double>(), top.cpu_diff<double>(), options_.noise,
                              random_, bottom.mutable_cpu_diff<double>());
  }

 private:
  const RunOptions options_;
  RandomNumbers random_;
};

// Changes the elements of each parameter to which its filler has given one number, such as a scale
// of 1 or a bias of 0: a plan that left the parameter out would compute the same. They grow,
// because a variance must stay positive.
void VaryConstants(Net& net) {
  uint64_t seed = 0;
  for (const Net::LearnableParam& param : net.learnable_params()) {
    RandomNumbers random(++seed);
    double* data = param.blob->mutable_cpu_data<double>();
    const int64_t count = param.blob->count();
    if (!std::all_of(data, data + count, [&](double x) { return x == data[0]; })) continue;
    for (int64_t i = 0; i < count; ++i) data[i] += 0.3 * std::abs(random.Uniform());
  }
}

// The net with a separate name for each version of a blob: y, y', y''.
NetParameter WithoutInPlace(NetParameter net) {
  std::map<std::string, std::string> versions;
  for (LayerParameter& layer : *net.mutable_layer()) {
    for (std::string& bottom : *layer.mutable_bottom()) {
      if (versions.count(bottom) > 0) bottom = versions[bottom];
    }
    for (std::string& top : *layer.mutable_top()) {
      std::string& version = versions[top];
      version = version.empty() ? top : version + "'";
      top = version;
    }
  }
  return net;
}

std::string WithoutVersion(const std::string& name) {
  return name.substr(0, name.find('\''));
}

class Run {
 public:
  Run(const NetParameter& definition, const RunOptions& options)
      : options_(options),
        noise_(options),
        net_(options.noise > 0 ? WithoutInPlace(definition) : definition, WithSeed(options.net)) {
    FillStatistics(net_);
    VaryConstants(net_);
    if (options_.noise > 0) AddNoise();
  }

  RunResult Execute() {
    RunResult result;
    result.plan = PrintGraph(net_.graph());
    result.peak = MemoryOf(net_.graph(), 0).total();
    for (int pass = 0; pass < options_.passes; ++pass) {
      if (options_.reshape) RunOtherBatch();
      RunPass(pass);
      Collect(pass, &result.numbers);
    }
    return result;
  }

 private:
  static NetOptions WithSeed(NetOptions options) {
    options.seed = kSeed;
    return options;
  }

  // Gradients of the second pass are added to those of the first.
  void RunPass(int pass) {
    const bool adds = pass > 0 && !options_.reshape && !options_.starts_anew;
    if (!adds) net_.ClearParamDiffs();
    FillInputs(net_, pass);
    if (options_.noise > 0) {
      for (size_t i = 0; i < net_.input_blobs().size(); ++i) {
        if (!IsExactInput(net_.input_names()[i])) noise_.AddToData(*net_.input_blobs()[i]);
      }
    }
    loss_ = TrainingNet(net_).Forward(pass);
    if (!options_.net.with_backward) return;
    ClearOutputGradients();
    TrainingNet(net_).Backward({.accumulate = options_.net.keep_all || adds});
  }

  // A keep-all net begins with the diffs of its outputs, where an in-place layer has left the
  // gradient of another version.
  void ClearOutputGradients() {
    for (const auto& [name, value] : net_.graph().external_diffs) {
      Blob& blob = *net_.blob_by_name(name);
      if (net_.loss_weight(name) == 0)
        std::fill_n(blob.mutable_cpu_diff<double>(), blob.count(), 0.0);
    }
  }

  // The values that it leaves in memory must not affect the following run.
  void RunOtherBatch() {
    std::vector<Shape> shapes;
    for (Blob* input : net_.input_blobs()) {
      shapes.push_back(input->shape());
      input->Reshape(input->shape().With(0, input->shape()[0] + 2));
    }
    RunPass(9);
    for (size_t i = 0; i < shapes.size(); ++i) net_.input_blobs()[i]->Reshape(shapes[i]);
  }

  void AddNoise() {
    for (const Net::LearnableParam& param : net_.learnable_params()) noise_.AddToData(*param.blob);
    net_.AddAfterForward([this](int layer) {
      for (const int top : net_.top_ids(layer)) {
        const std::string& name = net_.blob_names()[top];
        const bool is_input = net_.layers()[layer]->traits().is_input;
        if (!is_input && !name.starts_with("index")) noise_.AddToData(*net_.blobs()[top]);
      }
      if (HasOneBottomAndTop(layer))
        noise_.AddOfLayer(*net_.layers()[layer], BottomOf(layer), TopOf(layer));
    });
    if (options_.rounds_again) {
      net_.AddBeforeBackward([this](int layer) {
        for (const int bottom : net_.bottom_ids(layer)) {
          if (!IsExactInput(net_.blob_names()[bottom])) noise_.AddToData(*net_.blobs()[bottom]);
        }
      });
    }
    net_.AddAfterBackward([this](int layer) {
      if (!net_.layer_need_backward(layer)) return;
      for (const int bottom : net_.bottom_ids(layer)) noise_.AddToDiff(*net_.blobs()[bottom]);
      if (HasOneBottomAndTop(layer))
        noise_.AddOfGradient(*net_.layers()[layer], TopOf(layer), BottomOf(layer));
    });
  }

  bool HasOneBottomAndTop(int layer) const {
    return net_.bottom_ids(layer).size() == 1 && net_.top_ids(layer).size() == 1;
  }
  Blob& BottomOf(int layer) const { return *net_.blobs()[net_.bottom_ids(layer)[0]]; }
  Blob& TopOf(int layer) const { return *net_.blobs()[net_.top_ids(layer)[0]]; }

  void Collect(int pass, Numbers* numbers) const {
    const auto key = [&](const char* what, const std::string& name) {
      return StrCat(pass, " ", what, " ", name);
    };
    (*numbers)[key("loss", "")] = {loss_};
    for (const std::string& name : net_.output_names())
      (*numbers)[key("data", WithoutVersion(name))] = DataOf(*net_.blob_by_name(name));
    for (const Net::LearnableParam& param : net_.learnable_params()) {
      (*numbers)[key("data", param.name)] = DataOf(*param.blob);
      if (param.has_gradient && options_.net.with_backward)
        (*numbers)[key("diff", param.name)] = DiffOf(*param.blob);
    }
    if (options_.net.keep_all) CollectBlobs(key, numbers);
  }

  template <typename Key>
  void CollectBlobs(const Key& key, Numbers* numbers) const {
    for (size_t i = 0; i < net_.blobs().size(); ++i) {
      const std::string& name = net_.blob_names()[i];
      (*numbers)[key("data", WithoutVersion(name))] = DataOf(*net_.blobs()[i]);  // of the last
      const auto gradient = net_.graph().blob_grads.find(name);
      if (options_.net.with_backward && gradient != net_.graph().blob_grads.end() &&
          gradient->second != nullptr) {
        numbers->try_emplace(key("diff", WithoutVersion(name)), DiffOf(*net_.blobs()[i]));
      }
    }
  }

  const RunOptions options_;
  Noise noise_;
  Net net_;
  float loss_ = 0;
};

}  // namespace

void FillInputs(Net& net, uint64_t pass) {
  for (size_t i = 0; i < net.input_blobs().size(); ++i) {
    Blob& blob = *net.input_blobs()[i];
    const std::vector<double> values = InputValues(net.input_names()[i], blob.count(), pass + 1);
    std::copy(values.begin(), values.end(), blob.mutable_cpu_data<double>());
  }
}

void FillStatistics(Net& net) {
  for (size_t i = 0; i < net.layers().size(); ++i) {
    if (net.layers()[i]->type() != "BatchNorm") continue;
    const auto& params = net.layer_params(static_cast<int>(i));
    RandomNumbers random(i + 1);
    for (int64_t k = 0; k < params[0]->count(); ++k) {
      params[0]->mutable_cpu_data<double>()[k] = 0.3 * random.Uniform();
      params[1]->mutable_cpu_data<double>()[k] = 1 + 0.5 * random.Uniform();
    }
    params[2]->mutable_cpu_data<double>()[0] = 1;
  }
}

RunResult RunNet(const NetParameter& definition, const RunOptions& options) {
  RunResult result;
  try {
    return Run(definition, options).Execute();
  } catch (const InvalidArgument& error) {
    result.refusal = error.what();
  } catch (const Unsupported& error) {
    result.refusal = error.what();
  } catch (const std::exception& error) {
    result.failure = error.what();
  }
  return result;
}

std::vector<int64_t> PeaksOfPlans(const NetParameter& definition) {
  Net net(definition, {.keep_all = false, .allocate = false});
  std::vector<int64_t> peaks;
  for (const Plan& plan : TrainingNet(net).TradeOffs())
    peaks.push_back(MemoryOf(*plan.graph, 0).total());
  return peaks;
}

namespace {

// The relative spacing of numbers of this type; 0 for FLOAT and wider types.
double SpacingOf(Type type) {
  return type == FLOAT16 ? 0x1p-10 : type == BFLOAT16 ? 0x1p-7 : 0;
}

}  // namespace

TypePrecision PrecisionOf(const NetParameter& net) {
  TypePrecision precision{0x1p-20, 0x1p-149};  // FLOAT: sums of some hundred products
  const auto consider = [&](bool is_set, Type type) {
    if (!is_set) return;
    if (type == FLOAT16) {
      precision.smallest = 0x1p-24;
      precision.may_overflow = true;
    }
    precision.relative = std::max(precision.relative, SpacingOf(type));
  };
  consider(net.has_default_forward_type(), net.default_forward_type());
  consider(net.has_default_backward_type(), net.default_backward_type());
  consider(net.has_default_forward_math(), net.default_forward_math());
  consider(net.has_default_backward_math(), net.default_backward_math());
  for (const LayerParameter& layer : net.layer()) {
    consider(layer.has_forward_type(), layer.forward_type());
    consider(layer.has_backward_type(), layer.backward_type());
    consider(layer.has_forward_math(), layer.forward_math());
    consider(layer.has_backward_math(), layer.backward_math());
    const Type forward =
        layer.has_forward_type() ? layer.forward_type() : net.default_forward_type();
    const Type backward =
        layer.has_backward_type() ? layer.backward_type() : net.default_backward_type();
    precision.narrows_backward |= SpacingOf(backward) > SpacingOf(forward);
  }
  return precision;
}

NetParameter InType(NetParameter net, Type type) {
  net.set_default_forward_type(type);
  net.set_default_backward_type(type);
  net.set_default_forward_math(type);
  net.set_default_backward_math(type);
  for (LayerParameter& layer : *net.mutable_layer()) {
    layer.clear_forward_type();
    layer.clear_backward_type();
    layer.clear_forward_math();
    layer.clear_backward_math();
  }
  return net;
}

}  // namespace caffe::fuzz
