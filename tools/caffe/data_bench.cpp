// caffe data-bench: the speed of the input pipeline of each Data layer, without a net behind it.
#include <iomanip>
#include <iostream>

#include "caffe/data/pipeline_bench.hpp"
#include "caffe/error.hpp"
#include "caffe/io/net_files.hpp"
#include "caffe/net.hpp"
#include "tools/caffe/command.hpp"
#include "tools/caffe/flags.hpp"

DEFINE_double(seconds, 3, "How long to measure each stage (data-bench).");

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

void Measure(const LayerParameter& layer) {
  const data::BatchSourceOptions options{.transform = layer.transform_param(),
                                         .train = PhaseFromFlag() == TRAIN,
                                         .layer = layer.name()};
  const data::PipelineSpeed speed =
      data::MeasurePipeline(layer.data_param(), options, FLAGS_seconds);
  if (FLAGS_json) {
    std::cout << speed.ToJson() << "\n";
  } else {
    PrintTable(layer, speed);
  }
}

void DataBench(const std::string&) {
  Require(!FLAGS_model.empty(), "-model is missing; give a net prototxt with a Data layer");
  Require(FLAGS_seconds > 0, "-seconds is ", FLAGS_seconds, "; it must be positive");
  NetParameter param = ReadNetText(FLAGS_model);
  SetNetState(PhaseFromFlag(), FLAGS_level, StagesFromFlag(), &param);
  const NetParameter filtered = Net::FilterNet(param);
  bool has_data = false;
  for (const LayerParameter& layer : filtered.layer()) {
    if (layer.type() != "Data") continue;
    has_data = true;
    Measure(layer);
  }
  Require(has_data, FLAGS_model, ": the net has no Data layer in phase ",
          Phase_Name(PhaseFromFlag()));
}

const CommandRegistrar registrar("data-bench",
                                 {.help = "measure the input pipeline alone, stage by stage",
                                  .run = DataBench});

}  // namespace
}  // namespace caffe::tools
