// caffe data-bench: the speed of the input pipeline of each Data layer, without a net behind it.
#include <iomanip>
#include <iostream>

#include "caffe/data/pipeline_bench.hpp"
#include "caffe/error.hpp"
#include "caffe/io/net_files.hpp"
#include "caffe/net.hpp"
#include "tools/caffe/command.hpp"
#include "tools/caffe/options.hpp"

namespace caffe::tools {
namespace {

void PrintRate(const std::string& stage, double rate) {
  std::cout << "  " << std::left << std::setw(36) << stage << std::right << std::setw(12)
            << std::fixed << std::setprecision(0) << rate << " images/s\n";
}

void PrintTable(const LayerParameter& layer, const data::PipelineSpeed& speed) {
  std::cout << "layer '" << layer.name() << "': " << layer.data_param().source() << ", "
            << speed.records << " records of " << speed.bytes_per_record << " bytes, images "
            << speed.image << ", batch " << speed.batch_size << "\n";
  PrintRate("read (1 thread)", speed.read);
  PrintRate("read and parse or decode (1 thread)", speed.parse);
  PrintRate("all of it (1 thread)", speed.transform);
  PrintRate("the same, channels-last", speed.transform_channels_last);
  PrintRate(StrCat("pipeline (", speed.threads, " threads)"), speed.pipeline);
  PrintRate("the same, channels-last", speed.pipeline_channels_last);
  if (speed.jpeg_decode > 0) PrintRate("libjpeg-turbo alone (1 thread)", speed.jpeg_decode);
}

class DataBench : public Command {
 public:
  explicit DataBench(CLI::App& app) {
    AddModel(app, &model_)->description("A net prototxt with Data layers");
    net_flags_.AddPhase(app);
    net_flags_.AddState(app);
    app.add_option("--seconds", seconds_, "How long to measure each stage, in seconds")
        ->type_name("S");
    app.add_flag("--json", json_, "Print JSON, a line for each layer");
  }

  void Run() override {
    Require(!model_.empty(), "-model is missing; give a net prototxt with a Data layer");
    Require(seconds_ > 0, "-seconds is ", seconds_, "; it must be positive");
    NetParameter param = ReadNetText(model_);
    SetNetState(net_flags_.phase, net_flags_.level, net_flags_.stages, &param);
    const NetParameter filtered = Net::FilterNet(param);
    bool has_data = false;
    for (const LayerParameter& layer : filtered.layer()) {
      if (layer.type() != "Data") continue;
      has_data = true;
      Measure(layer);
    }
    Require(has_data, model_, ": the net has no Data layer in phase ",
            Phase_Name(net_flags_.phase));
  }

 private:
  void Measure(const LayerParameter& layer) const {
    const data::BatchSourceOptions options{.transform = layer.transform_param(),
                                           .train = net_flags_.phase == TRAIN,
                                           .layer = layer.name()};
    const data::PipelineSpeed speed = data::MeasurePipeline(layer.data_param(), options, seconds_);
    if (json_) {
      std::cout << speed.ToJson() << "\n";
    } else {
      PrintTable(layer, speed);
    }
  }

  std::string model_;
  NetFlags net_flags_;
  double seconds_ = 3;
  bool json_ = false;
};

const CommandRegistrar<DataBench> registrar(
    "data-bench",
    {.summary = "measure the input pipeline alone, stage by stage",
     .about = "Measures in images per second how fast each Data layer of a net reads, decodes and "
              "transforms its records, without a net behind it.",
     .examples = "caffe data-bench train_val.prototxt\n"
                 "caffe data-bench train_val.prototxt --phase=TEST --seconds=10"});

}  // namespace
}  // namespace caffe::tools
