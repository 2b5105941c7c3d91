// Measures the cost of a solver's update, by the options that affect it: update_time NET.prototxt
// [ROUNDS] prints one JSON object. Each round times every variant once, so all see the same load.
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "caffe/graph/graph.hpp"
#include "caffe/io/net_files.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/net.hpp"
#include "caffe/solvers/gradient_scaling.hpp"
#include "caffe/solvers/larc.hpp"
#include "caffe/solvers/update_rule.hpp"
#include "caffe/solvers/updater.hpp"

namespace {

struct VariantOptions {
  const char *name, *solver;
  bool scales_gradients = false;
};

constexpr VariantOptions kVariants[] = {
    {"sgd", ""},
    {"clip_gradients", "clip_gradients: 35"},
    {"gradient_scaling", "", true},
    {"larc", "larc: true"},
    {"larc_clip_scaling", "larc: true clip_gradients: 35", true},
    {"larc_turbo", "larc: true larc_turbo: true"},
    {"adam", "type: 'Adam' momentum2: 0.999"},
    {"lamb", "type: 'LAMB' momentum2: 0.999"},
};

// Wall-clock time, and processor time of all threads, which other load affects less.
struct Milliseconds {
  double wall = 0, processor = 0;

  static Milliseconds Now() {
    const auto wall = std::chrono::steady_clock::now().time_since_epoch();
    timespec processor;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &processor);
    return {std::chrono::duration<double, std::milli>(wall).count(),
            static_cast<double>(processor.tv_sec) * 1e3 +
                static_cast<double>(processor.tv_nsec) * 1e-6};
  }
};

// Has its own net, because an updater's cached norms are valid only while nobody else writes the
// weights.
class Variant {
 public:
  Variant(const VariantOptions& options, const caffe::NetParameter& net_param)
      : net_(net_param, {.keep_all = false, .seed = 1}) {
    caffe::SolverParameter param;
    caffe::ParseTextProto(options.solver, options.name, &param);
    param.set_momentum(0.9f);
    rule_ = caffe::MakeUpdateRule(param);
    caffe::ops::DecideStep decide{.clip_gradients = param.clip_gradients(),
                                  .larc = caffe::ParseLarc(param)};
    if (options.scales_gradients) decide.scaling = {.factor = 1, .adaptive = true};
    updater_ = std::make_unique<caffe::Updater>(*rule_, decide, net_);
    net_.ForwardBackward();
  }

  void Step() {
    const Milliseconds start = Milliseconds::Now();
    updater_->Step({.rate = 1e-5, .momentum = 0.9, .weight_decay = 0.0005});
    const Milliseconds end = Milliseconds::Now();
    wall_.push_back(end.wall - start.wall);
    processor_.push_back(end.processor - start.processor);
  }
  void Forget() { wall_.clear(), processor_.clear(); }

  std::string device() const { return net_.graph().options.device->description(); }
  std::vector<double>& wall() { return wall_; }
  std::vector<double>& processor() { return processor_; }

 private:
  caffe::Net net_;
  std::unique_ptr<caffe::UpdateRule> rule_;
  std::unique_ptr<caffe::Updater> updater_;
  std::vector<double> wall_, processor_;
};

// The file's net for training, with one record per batch, because updates do not depend on the
// batch.
caffe::NetParameter ReadNet(const char* file) {
  caffe::NetParameter param = caffe::ReadNetText(file);
  param.mutable_state()->set_phase(caffe::TRAIN);
  for (caffe::LayerParameter& layer : *param.mutable_layer()) {
    for (caffe::BlobShape& shape : *layer.mutable_dummy_data_param()->mutable_shape())
      shape.set_dim(0, 1);
    if (layer.type() != "DummyData") layer.clear_dummy_data_param();
  }
  return param;
}

void Print(std::vector<Variant*> variants) {
  const auto median = [](std::vector<double>& times) {
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
  };
  const double sgd = median(variants[0]->wall()), sgd_processor = median(variants[0]->processor());
  std::printf("{\"device\": \"%s\", \"threads\": %d, \"rounds\": %zu, \"update\": {",
              variants[0]->device().c_str(), omp_get_max_threads(), variants[0]->wall().size());
  for (size_t i = 0; i < variants.size(); ++i) {
    const double wall = median(variants[i]->wall()), processor = median(variants[i]->processor());
    std::printf(
        "%s\n  \"%s\": {\"median_ms\": %.2f, \"best_ms\": %.2f, \"over_sgd\": %.2f, "
        "\"processor_ms\": %.2f, \"processor_over_sgd\": %.2f}",
        i > 0 ? "," : "", kVariants[i].name, wall, variants[i]->wall().front(), wall / sgd,
        processor, processor / sgd_processor);
  }
  std::printf("\n}}\n");
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 20;
  if (argc < 2 || rounds < 1) {
    std::fprintf(stderr, "usage: update_time NET.prototxt [ROUNDS]\n");
    return 1;
  }
  try {
    const caffe::NetParameter net = ReadNet(argv[1]);
    std::vector<std::unique_ptr<Variant>> variants;
    std::vector<Variant*> order;
    for (const VariantOptions& options : kVariants) {
      variants.push_back(std::make_unique<Variant>(options, net));
      order.push_back(variants.back().get());
    }
    for (int round = -2; round < rounds; ++round) {
      for (Variant* variant : order) {
        variant->Step();
        if (round < 0) variant->Forget();  // warm-up: first touch of the history
      }
    }
    Print(order);
  } catch (const caffe::Error& error) {
    std::fprintf(stderr, "update_time: %s\n", error.what());
    return 1;
  }
}
