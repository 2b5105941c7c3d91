#include "tools/caffe/options.hpp"

#include <glog/logging.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <set>
#include <string_view>

#include "caffe/common.hpp"
#include "caffe/core/split.hpp"
#include "caffe/decode_limit.hpp"
#include "caffe/error.hpp"
#include "caffe/io/data_inputs.hpp"
#include "caffe/io/layer_position.hpp"
#include "caffe/io/net_files.hpp"
#include "caffe/io/overrides.hpp"
#include "caffe/io/solver_overrides.hpp"
#include "caffe/io/solver_position.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/plugin.hpp"
#include "caffe/solver_factory.hpp"
#include "tools/caffe/model_folder.hpp"
#include "tools/caffe/user_defaults.hpp"

namespace caffe::tools {
namespace {

std::string ToUpper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::toupper(letter)); });
  return text;
}

Phase ParsePhase(const std::string& text) {
  Phase phase;
  if (Phase_Parse(ToUpper(text), &phase)) return phase;
  throw InvalidArgument("--phase is '" + text + "'; use TRAIN or TEST");
}

Precision ParsePrecision(const std::string& text) {
  Precision precision;
  if (Precision_Parse(ToUpper(text), &precision)) return precision;
  throw InvalidArgument("--precision is '" + text +
                        "'; use fp32, fp16, bf16, fp64, int8 or fake_int8");
}

void Override(const std::string& text, google::protobuf::Message* message) {
  const std::string change = ApplyOverride(text, message);  // may throw: before logging starts
  LOG(INFO) << "Override " << change;
}

std::vector<std::string>& GivenPlugins() {
  static std::vector<std::string> files;
  return files;
}

// Reports unknown layer types before looking for files that only such layers would read.
void RequireKnownTypes(const NetParameter& net) {
  for (const LayerParameter& layer : net.layer()) {
    WithContext(StrCat("layer '", layer.name(), "' (", layer.type(), ")"),
                [&] { LayerRegistry::ParamFields(layer.type()); });
  }
}

}  // namespace

CLI::Option* AddModel(CLI::App& app, std::string* model) {
  return app.add_option("--model,MODEL", *model, "The net prototxt")->type_name("FILE.prototxt");
}

CLI::Option* AddSolver(CLI::App& app, std::string* solver) {
  return app
      .add_option("--solver,SOLVER", *solver, "The solver prototxt, or the folder of a model")
      ->type_name("FILE.prototxt");
}

void AddWeights(CLI::App& app, std::string* weights) {
  app.add_option("--weights", *weights,
                 "The weights (or .caffemodel.h5), or several files separated by commas")
      ->type_name("FILE.caffemodel");
}

void AddParallel(CLI::App& app, std::string* parallel) {
  app.add_option(
         "--parallel", *parallel,
         "auto: ranks or workers split InnerProduct layers between them where that costs "
         "less than reducing their gradients; none: only layers with parallel: SPLIT_OUTPUT")
      ->type_name("auto|none")
      ->check(CLI::Validator(CLI::IsMember({"auto", "none"})).description(""));
}

void AddIterations(CLI::App& app, int* iterations) {
  app.add_option_function<int>(
         "--iterations",
         [=](int value) {
           Require(value > 0, "--iterations is ", value, "; it must be at least 1");
           *iterations = value;
         },
         "How many batches to run")
      ->type_name("N")
      ->default_str(std::to_string(*iterations));
}

void AddIterationsOrAll(CLI::App& app, int* iterations, bool* all) {
  app.add_option_function<std::string>(
         "--iterations",
         [=](const std::string& text) {
           *all = text == "all";
           if (*all) return;
           const char* const end = text.data() + text.size();
           const auto [rest, error] = std::from_chars(text.data(), end, *iterations);
           Require(error == std::errc() && rest == end && *iterations > 0, "--iterations is ", text,
                   "; give a number of batches, at least 1, or all to score each record of "
                   "the data once");
         },
         "How many batches to run; all: as many as score each record of the data once")
      ->type_name("N|all")
      ->default_str(std::to_string(*iterations));
}

void AddJsonFlag(CLI::App& app, bool* json) {
  app.add_flag("--json", *json, "Print the result as one JSON document on standard output");
}

void LoadGivenPlugins() {
  for (const std::string& file : GivenPlugins()) LoadPlugin(file);
}

void AddPlugins(CLI::App& app) {
  app.add_option("--plugin", GivenPlugins(),
                 "A shared library with layers that nets may use; may be given several times")
      ->type_name("FILE.so")
      ->default_str("")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void AddDecodeLimit(CLI::App& app) {
  app.add_option_function<int64_t>("--max_decoded_mb", SetMaxDecodedMb,
                                   "Most memory that one image, HDF5 file or message may take when "
                                   "it is decoded, unless that is at most 16 times the file's size")
      ->type_name("MIB")
      ->default_str(std::to_string(MaxDecodedMb()));
}

double ParseShare(const std::string& text) {
  double percent = 0;
  const char* end = text.data() + text.size();
  const auto [parsed, error] = std::from_chars(text.data(), end, percent);
  Require(
      error == std::errc() && parsed + 1 == end && *parsed == '%' && percent > 0 && percent < 100,
      "--val is '", text, "'; give a share, as in 10%");
  return percent / 100;
}

void RequireModel(const std::string& model) {
  Require(!model.empty(), "--model is missing; give the net prototxt");
}

void RequireNoFolder(const std::string& path, const std::string& usual) {
  Require(!ModelFolder::Is(path), path,
          ": is a folder; give a file. Paths in a model's folder begin there: cd ", path,
          " and give ", usual);
}

void NetFlags::AddPhase(CLI::App& app) {
  app.add_option_function<std::string>(
         "--phase",
         [this](const std::string& text) { phase = text.empty() ? TRAIN : ParsePhase(text); },
         "For which phase the net is built")
      ->type_name("TRAIN|TEST")
      ->default_str("TRAIN");
}

void NetFlags::AddState(CLI::App& app) {
  app.add_option("--level", level, "The level that include and exclude rules are compared with")
      ->type_name("N");
  app.add_option_function<std::string>(
         "--stage", [this](const std::string& text) { stages = SplitByComma(text); },
         "The stages that include and exclude rules are compared with, separated by commas")
      ->type_name("NAMES");
}

CLI::Option* NetFlags::AddPrecision(CLI::App& app) {
  return app
      .add_option_function<std::string>(
          "--precision",
          [this](const std::string& text) {
            if (!text.empty()) precision = ParsePrecision(text);
          },
          "Storage and arithmetic of nets that do not say themselves")
      ->type_name("fp32|fp16|bf16|fp64|int8|fake_int8")
      ->default_str("fp32");
}

void NetFlags::AddCalibration(CLI::App& app) {
  app.add_option("--calibration", calibration,
                 "The ranges of the net's blobs, of caffe calibrate, that precision int8 and "
                 "fake_int8 need")
      ->type_name("FILE.json")
      ->default_str("the file's field");
}

void NetFlags::AddMemoryLimit(CLI::App& app) {
  app.add_option_function<int64_t>(
         "--memory_limit",
         [this](int64_t mib) {
           Require(mib >= 0 && mib < int64_t{1} << 40, "--memory_limit is ", mib,
                   "; give MiB, or 0 for no limit");
           memory_limit = mib;
         },
         "Most memory that training may take on each device; activations are then computed again "
         "in backward. 0: the solver's field, or no limit")
      ->type_name("MIB")
      ->default_str("0");
}

void NetFlags::AddOverrides(CLI::App& app, const std::string& example) {
  app.add_option("--set", overrides,
                 "Change a field of the file for this run, as in " + example +
                     "; may be given several times")
      ->type_name("PATH=VALUE")
      ->default_str("")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void NetFlags::AddInputs(CLI::App& app) {
  needs_data = false;
  app.add_option("--input", inputs,
                 "The shape of a blob that a data layer makes, for a net without its data; may be "
                 "given several times. Without it a missing database has the shape that batch_size "
                 "and crop_size say")
      ->type_name("BLOB=N,C,H,W")
      ->default_str("")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void NetFlags::AddForeign(CLI::App& app) {
  AddPlugins(app);
  app.add_flag_callback("--allow_python", AllowPythonLayers,
                        "Let nets run layers in Python: code that their files name");
  app.add_flag("--lenient", lenient,
               "Leave out, with a warning each, fields that are not Caffe's and layers of unknown "
               "type");
}

int64_t NetFlags::PutInputs(NetParameter* net) const {
  *net = Net::FilterNet(*net);
  const NetParameter with_data = *net;
  const BlobDims dims = DimsGiven(*net);
  if (!dims.empty()) ReplaceByInputs(dims, net);
  if (!lenient) RequireKnownTypes(*net);
  for (const std::string& assumed : ReplaceMissingData(net)) LOG(WARNING) << assumed;
  return ReadAheadBytes(with_data, *net);
}

// Drops the blobs that a test net does not have.
BlobDims NetFlags::DimsGiven(const NetParameter& net) const {
  std::string text;
  for (const std::string& input : inputs) text += input + " ";
  BlobDims dims = ParseBlobDims(text);
  if (net.state().phase() == TRAIN) return dims;
  std::set<std::string> tops;
  for (const LayerParameter& layer : net.layer())
    tops.insert(layer.top().begin(), layer.top().end());
  std::erase_if(dims, [&](const auto& blob) { return !tops.contains(blob.first); });
  return dims;
}

NetOptions NetFlags::ToNetOptions(bool with_backward) const {
  NetOptions options{.keep_all = false, .with_backward = with_backward, .lenient = lenient};
  options.precision = precision.value_or(FP32);
  options.calibration = calibration;
  if (with_backward) options.memory_limit = memory_limit << 20;
  return options;
}

std::unique_ptr<Net> NetFlags::MakeTrainedNet(const std::string& file, const std::string& weights,
                                              bool whole_epochs) const {
  NetOptions options = ToNetOptions(/*with_backward=*/false);
  options.whole_epochs = whole_epochs;
  std::unique_ptr<Net> net = MakeNet(file, TEST, options);
  Require(!weights.empty() || net->learnable_params().empty(),
          "--weights is missing; give the .caffemodel with the net's weights");
  if (!weights.empty()) LoadWeights(weights, net.get());
  return net;
}

NetParameter NetFlags::ReadNet(const std::string& file, Phase for_phase, int64_t* read_ahead,
                               const std::function<void(NetParameter*)>& prepare) const {
  RequireNoFolder(file, "train_val.prototxt");
  const LenientReading reading(lenient);
  NetParameter param = ReadNetText(file);
  if (prepare) prepare(&param);
  for (const std::string& text : overrides) Override(text, &param);
  SetNetState(for_phase, level, stages, &param);
  WithLayerPosition(file, for_phase, [&] {
    const int64_t bytes = needs_data ? 0 : PutInputs(&param);
    if (read_ahead != nullptr) *read_ahead = bytes;
  });
  return param;
}

std::unique_ptr<Net> NetFlags::MakeNet(const std::string& file, Phase for_phase,
                                       const NetOptions& options, int64_t* read_ahead,
                                       const std::function<void(NetParameter*)>& prepare) const {
  const LenientReading reading(lenient);
  NetOptions of_file = options;
  of_file.file = file;
  return std::make_unique<Net>(ReadNet(file, for_phase, read_ahead, prepare), of_file);
}

SolverParameter NetFlags::ReadSolver(const std::string& file, std::string* net_file) const {
  RequireNoFolder(file, "solver.prototxt");
  Require(KindOfDefinition(file) != DefinitionKind::kNet, file,
          ": this is a net; give a solver prototxt, which names its net and says how to train it: "
          "net: \"",
          file, "\" base_lr: 0.01 lr_policy: \"fixed\" max_iter: 1000");
  const LenientReading reading(lenient);
  SolverParameter param = ReadSolverText(file);
  for (const std::string& note : UserDefaults::Get().PutInto(&param)) LOG(INFO) << note;
  WithSolverPosition(file, [&] {
    for (const std::string& text : overrides) {
      for (const std::string& change : OverrideSolver(text, &param, net_file))
        LOG(INFO) << "Override " << change;
    }
  });
  param.mutable_train_state()->set_level(level);
  for (const std::string& stage : stages) param.mutable_train_state()->add_stage(stage);
  if (precision) param.set_precision(*precision);
  if (!calibration.empty()) param.set_calibration(calibration);
  if (memory_limit > 0) param.set_memory_limit(memory_limit);
  return param;
}

}  // namespace caffe::tools
