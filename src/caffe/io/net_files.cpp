#include "caffe/io/net_files.hpp"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <filesystem>

#include "caffe/core/layer_types.hpp"
#include "caffe/core/nearest_name.hpp"
#include "caffe/core/paths.hpp"
#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"
#include "caffe/io/binary_format.hpp"
#include "caffe/io/definition_texts.hpp"
#include "caffe/io/expand/expand.hpp"
#include "caffe/io/fork_fields.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/io/text_nesting.hpp"
#include "caffe/io/upgrade_net.hpp"
#include "caffe/io/upgrade_solver.hpp"
#include "caffe/plugin.hpp"

namespace caffe {
namespace {

// Passing a solver state instead of weights is the most likely mistake, so it has its own error
// text.
bool IsSolverState(const std::string& path) {
  SolverState state;
  try {
    ReadBinaryProto(path, &state);
  } catch (const Error&) {
    return false;
  }
  return state.history_size() > 0;
}

// Parses the fields of the text that a message of this type has.
template <typename Message>
Message ParseKnownFields(const std::string& text) {
  class Silence final : public google::protobuf::io::ErrorCollector {
    void AddError(int, int, const std::string&) override {}
  };
  Silence silence;
  google::protobuf::TextFormat::Parser parser;
  parser.SetRecursionLimit(kMostNesting);
  parser.AllowUnknownField(true);
  parser.RecordErrorsTo(&silence);
  Message message;
  parser.ParseFromString(text, &message);  // up to the first error
  return message;
}

std::vector<std::string> PluginsOf(const NetParameter& net) {
  return {net.plugin().begin(), net.plugin().end()};
}

std::vector<std::string> PluginsOf(const SolverParameter& solver) {
  std::vector<std::string> plugins(solver.plugin().begin(), solver.plugin().end());
  const auto add = [&](const NetParameter& net) {
    plugins.insert(plugins.end(), net.plugin().begin(), net.plugin().end());
  };
  add(solver.net_param());
  add(solver.train_net_param());
  for (const NetParameter& net : solver.test_net_param()) add(net);
  return plugins;
}

// Plug-ins may define types, so it is called after they are loaded.
void CheckTypesOfDefaults(const SourceText& text) {
  if (text.types_of_defaults.empty()) return;
  const std::vector<std::string> known = LayerTypeNames();
  if (known.empty()) return;  // a program without layers
  for (const auto& [type, place] : text.types_of_defaults) {
    if (std::find(known.begin(), known.end(), type) != known.end()) continue;
    const std::string near = NearestName(type, known);
    throw InvalidArgument(
        ErrorAt(place, StrCat("defaults for layers of type '", type, "', which does not exist",
                              near.empty() ? "; `caffe layers` lists the types"
                                           : StrCat("; did you mean '", near, "'?"))));
  }
}

// Loads plug-ins that the text names before parsing it, because they define their layers' options.
template <typename Message>
void ReadDefinition(const std::string& path, Message* message) {
  const SourceText text = ReadDefinitionText(path, *Message::descriptor());
  if (text.text().find("plugin") != std::string::npos) {
    WithContext(path, [&] {
      const Message known = ParseKnownFields<Message>(text.text());
      CheckTexts(known);
      for (const std::string& plugin : PluginsOf(known)) LoadPlugin(plugin);
    });
  }
  if (!IsLenientReading()) CheckTypesOfDefaults(text);
  ParseTextProto(text, message);
}

}  // namespace

DefinitionKind KindOfDefinition(const std::string& path) {
  if (!IsPlainFile(path)) return DefinitionKind::kUnknown;
  const std::string text = ReadFile(path);
  if (HasShortNet(text, *NetParameter::descriptor())) return DefinitionKind::kNet;
  const auto net = ParseKnownFields<NetParameter>(text);
  if (net.layer_size() + net.layers_size() + net.input_size() > 0) return DefinitionKind::kNet;
  const auto solver = ParseKnownFields<SolverParameter>(text);
  const bool names_a_net = solver.has_net() || solver.has_train_net() || solver.has_net_param() ||
                           solver.has_train_net_param();
  return names_a_net || solver.has_base_lr() ? DefinitionKind::kSolver : DefinitionKind::kUnknown;
}

NetParameter ReadNetText(const std::string& path) {
  NetParameter net;
  ReadDefinition(path, &net);
  UpgradeNet(path, &net);
  return net;
}

NetParameter ReadNetOfSolver(const char* field, const std::string& path) {
  Require(!IsMissing(path), "solver: ", field, " is '", path,
          "', and no such file is there; paths are relative to the folder in which the program "
          "runs (",
          std::filesystem::current_path().string(), ")");
  return ReadNetText(path);
}

void SetNetState(Phase phase, int level, const std::vector<std::string>& stages,
                 NetParameter* net) {
  NetState* state = net->mutable_state();
  state->set_phase(phase);
  state->set_level(level);
  for (const std::string& stage : stages) state->add_stage(stage);
}

NetParameter ReadNetBinary(const std::string& path) {
  NetParameter net;
  try {
    ReadBinaryProto(path, &net);
  } catch (const IoError&) {
    if (!IsSolverState(path)) throw;
    throw IoError(path +
                  ": holds a solver's state, not weights; give the .caffemodel next to it, or "
                  "this file to --snapshot");
  }
  FinishNetBinary(path, &net);
  return net;
}

void FinishNetBinary(const std::string& path, NetParameter* net) {
  WithContext(path, [&] { CheckTexts(*net); });
  AdoptForkFields(path, net);
  AdoptBvlcFields(path, net);
  UpgradeNet(path, net);
}

SolverParameter ReadSolverText(const std::string& path) {
  SolverParameter solver;
  ReadDefinition(path, &solver);
  UpgradeSolver(path, &solver);
  return solver;
}

}  // namespace caffe
