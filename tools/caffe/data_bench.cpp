// caffe data bench: measures the input pipeline of each data layer alone, without the net.
#include <glog/logging.h>

#include <algorithm>
#include <chrono>
#include <iomanip>
#include <iostream>

#include "caffe/core/quantity.hpp"
#include "caffe/data/pipeline_bench.hpp"
#include "caffe/error.hpp"
#include "caffe/io/json.hpp"
#include "caffe/io/net_files.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/net.hpp"
#include "tools/caffe/command.hpp"
#include "tools/caffe/devices.hpp"
#include "tools/caffe/options.hpp"

namespace caffe::tools {
namespace {

void PrintRate(const std::string& stage, double rate) {
  std::cout << "  " << std::left << std::setw(36) << stage << std::right << std::setw(12)
            << std::fixed << std::setprecision(0) << rate << " images/s\n";
}

void PrintStages(const LayerParameter& layer, const data::PipelineSpeed& speed) {
  std::cout << "layer '" << layer.name() << "': " << layer.data_param().source() << ", "
            << speed.records << " records of " << speed.bytes_per_record << " bytes, images "
            << speed.image << ", batch " << speed.batch_size << "\n";
  PrintRate("read (1 thread)", speed.read);
  PrintRate("read and parse or decode (1 thread)", speed.parse);
  PrintRate("all of it (1 thread)", speed.transform);
  PrintRate("the same, channels-last", speed.transform_channels_last);
  PrintRate(StrCat("pipeline (", speed.threads, " threads)"), speed.pipeline);
  PrintRate("the same, channels-last", speed.pipeline_channels_last);
  if (speed.pack > 0) PrintRate("left to a GPU as bytes (1 thread)", speed.pack);
  if (speed.jpeg_decode > 0) PrintRate("libjpeg-turbo alone (1 thread)", speed.jpeg_decode);
  if (speed.device_jpeg_decode > 0) {
    PrintRate(speed.device_jpeg_decoder + " alone (1 thread)", speed.device_jpeg_decode);
  } else if (!speed.device_jpeg_decoder.empty()) {
    std::cout << "  JPEG on the GPU: " << speed.device_jpeg_decoder << "\n";
  }
}

// One way to transform images (to floats, or to packed bytes) and its predicted rate.
struct Way {
  std::string name;
  double rate = 0, bytes_per_image = 0;
};
std::vector<Way> WaysOf(const data::PipelineSpeed& speed) {
  std::vector<Way> ways = {{"floats", speed.transform_channels_last,
                            static_cast<double>(speed.numbers_per_image * sizeof(float))}};
  if (speed.pack > 0) ways.push_back({"bytes", speed.pack, speed.packed_bytes_per_image});
  return ways;
}

void ReportFeeds(const data::PipelineSpeed& speed, const data::Machine& machine, bool prints,
                 JsonObject* one) {
  for (const Way& way : WaysOf(speed)) {
    const data::Feed feed = data::FeedOf(speed, way.rate, way.bytes_per_image, machine);
    JsonObject* const prediction = AddJson(one, "feeds");
    PutJson(prediction, "as", way.name);
    PutJson(prediction, "cores", machine.cores);
    PutJson(prediction, "images_per_second", feed.images_per_second);
    PutJson(prediction, "limit", feed.limit);
    if (!prints) continue;
    PrintRate(StrCat(machine.cores, " cores feed, as ", way.name), feed.images_per_second);
    std::cout << "    limited by " << feed.limit << ", " << way.bytes_per_image
              << " bytes per image\n";
  }
}

void PutStages(const data::PipelineSpeed& speed, JsonObject* one) {
  PutJson(one, "read", speed.read);
  PutJson(one, "parse", speed.parse);
  PutJson(one, "transform", speed.transform);
  PutJson(one, "pipeline", speed.pipeline);
  PutJson(one, "transform_channels_last", speed.transform_channels_last);
  PutJson(one, "pipeline_channels_last", speed.pipeline_channels_last);
  PutJson(one, "pack", speed.pack);
  PutJson(one, "jpeg_decode", speed.jpeg_decode);
  if (!speed.device_jpeg_decoder.empty()) {
    PutJson(one, "device_jpeg_decode", speed.device_jpeg_decode);
    PutJson(one, "device_jpeg_decoder", speed.device_jpeg_decoder);
  }
  PutJson(one, "threads", speed.threads);
  PutJson(one, "batch_size", speed.batch_size);
  PutJson(one, "bytes_per_record", speed.bytes_per_record);
  PutJson(one, "records", speed.records);
  PutJson(one, "is_encoded", speed.is_encoded);
  PutJson(one, "image", speed.image);
}

class DataBench : public Command {
 public:
  explicit DataBench(CLI::App& app) {
    AddModel(app, &model_)->description("A net prototxt with data layers");
    net_flags_.AddPhase(app);
    net_flags_.AddState(app);
    net_flags_.AddForeign(app);
    app.add_option("--seconds", seconds_, "How long to measure each stage, in seconds")
        ->type_name("S");
    app.add_option("--cores", cores_,
                   "Predict what a machine with so many cores feeds to a GPU, from the speed of "
                   "one thread")
        ->type_name("N");
    app.add_option("--link", link_, "Bandwidth from host to GPU in that prediction: 25GB/s")
        ->type_name("NUMBER")
        ->default_str("no limit; with --gpu: measured");
    AddGpu(app, &gpu_,
           "Measure how fast this GPU decodes JPEG files, and the bandwidth to it for the "
           "prediction");
    AddJsonFlag(app, &json_);
  }

  void Run() override {
    Require(!model_.empty(), "--model is missing; give a net prototxt with a data layer");
    Require(seconds_ > 0, "--seconds is ", seconds_, "; it must be positive");
    const data::Machine machine = ReadMachine();
    // A small database restarts thousands of times a second and would log each restart.
    FLAGS_minloglevel = std::max(FLAGS_minloglevel, static_cast<int>(google::GLOG_WARNING));
    const LenientReading reading(net_flags_.lenient);
    NetParameter param = ReadNetText(model_);
    SetNetState(net_flags_.phase, net_flags_.level, net_flags_.stages, &param);
    JsonObject report;
    MakeJsonList(&report, "layers");
    bool has_data = false;
    const NetParameter filtered = Net::FilterNet(param);
    for (const LayerParameter& layer : filtered.layer()) {
      if (!IsData(layer)) continue;
      has_data = true;
      JsonObject* one = AddJson(&report, "layers");
      PutJson(one, "layer", layer.name());
      PutJson(one, "type", layer.type());
      Measure(layer, param.state(), machine, one);
    }
    Require(has_data, model_, ": the net has no data layer in phase ",
            Phase_Name(net_flags_.phase));
    if (json_) std::cout << FormatJson(report);
  }

 private:
  // MemoryData has no pipeline: the program itself provides the batches.
  static bool IsData(const LayerParameter& layer) {
    return layer.bottom_size() == 0 && layer.type() != "MemoryData" &&
           LayerRegistry::CreateLayer(layer)->traits().is_data;
  }

  // Empty without --gpu.
  std::vector<int> OneGpu() const {
    std::vector<int> gpus = ParseGpus(gpu_);
    Require(gpus.size() < 2, "--gpu is '", gpu_, "'; give one GPU");
    return gpus;
  }

  // The machine to predict for; 0 cores without --cores.
  data::Machine ReadMachine() const {
    if (cores_ == 0) {
      Require(link_.empty(),
              "--link is of a prediction, but --cores is missing; give the machine's number of "
              "cores");
      return {.cores = 0};
    }
    Require(cores_ > 0, "--cores is ", cores_, "; it must be positive");
    Require(link_.empty() || gpu_.empty(), "--link and --gpu exclude each other; give one");
    data::Machine machine{.cores = cores_};
    const std::vector<int> gpus = OneGpu();
    if (!link_.empty()) machine.link_bytes_per_second = ParseBandwidth("--link", link_);
    if (!gpus.empty()) {
      machine.link_bytes_per_second = data::MeasureLink(DeviceKind::kCuda, gpus[0], seconds_);
    }
    return machine;
  }

  void Measure(const LayerParameter& layer, const NetState& state, const data::Machine& machine,
               JsonObject* one) const {
    if (layer.type() != "Data") return MeasureLayer(layer, state, one);
    data::BatchSourceOptions options{.transform = layer.transform_param(),
                                     .train = net_flags_.phase == TRAIN,
                                     .layer = layer.name()};
    for (const int gpu : OneGpu()) options.device = MakeDevice(DeviceKind::kCuda, gpu);
    const data::PipelineSpeed speed = WithContext(StrCat("layer '", layer.name(), "' (Data)"), [&] {
      return data::MeasurePipeline(layer.data_param(), options, seconds_);
    });
    PutStages(speed, one);
    if (!json_) PrintStages(layer, speed);
    if (machine.cores > 0) ReportFeeds(speed, machine, !json_, one);
  }

  // Measures a net that consists of this layer alone.
  void MeasureLayer(const LayerParameter& layer, const NetState& state, JsonObject* one) const {
    NetParameter param;
    *param.mutable_state() = state;
    *param.add_layer() = layer;
    Net net(param, {.keep_all = false, .with_backward = false});
    net.Forward();  // warm-up: fills the queue and touches the memory
    int64_t items = 0;
    const auto start = std::chrono::steady_clock::now();
    double elapsed = 0;
    while (elapsed < seconds_) {
      net.Forward();
      items += net.blob_by_name(layer.top(0))->shape()[0];
      elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }
    const Shape shape = net.blob_by_name(layer.top(0))->shape();
    PutJson(one, "pipeline", static_cast<double>(items) / elapsed);
    PutJson(one, "batch_size", shape[0]);
    if (json_) return;
    std::cout << "layer '" << layer.name() << "': " << layer.type() << ", " << layer.top(0) << " "
              << shape << "\n";
    PrintRate("pipeline", static_cast<double>(items) / elapsed);
  }

  std::string model_;
  NetFlags net_flags_;
  double seconds_ = 3;
  int cores_ = 0;
  std::string link_, gpu_;
  bool json_ = false;
};

const CommandRegistrar<DataBench> data_bench_registrar(
    "data-bench",
    {.purpose = Purpose::kData,
     .summary = "measure the input pipeline alone, stage by stage",
     .about = "Measures in images per second how fast the data layers of a net are without the "
              "net behind them; of Data layers also each stage: reading, decoding, transforming.",
     .examples = "caffe data bench train_val.prototxt\n"
                 "caffe data bench train_val.prototxt --phase=TEST --seconds=10\n"
                 "caffe data bench train_val.prototxt --cores=16 --link=25GB/s"});

}  // namespace
}  // namespace caffe::tools
