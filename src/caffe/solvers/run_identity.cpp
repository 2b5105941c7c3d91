#include "caffe/solvers/run_identity.hpp"

#include <google/protobuf/text_format.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <string_view>
#include <vector>

#include "caffe/core/hash.hpp"
#include "caffe/error.hpp"

namespace caffe {
namespace {

// Lines such as "rate: 0.1" by field name; a nested message is one line.
std::map<std::string, std::vector<std::string>> FieldsOf(const std::string& identity) {
  std::map<std::string, std::vector<std::string>> fields;
  std::istringstream lines(identity);
  for (std::string line; std::getline(lines, line);)
    fields[line.substr(0, line.find_first_of(": "))].push_back(line);
  return fields;
}

std::string Joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += (text.empty() ? "" : " ") + line;
  return text;
}

}  // namespace

std::string SolverIdentity(const SolverParameter& param) {
  SolverParameter identity = param;
  for (const char* field : {"net",
                            "net_param",
                            "train_net",
                            "train_net_param",
                            "test_net",
                            "test_net_param",
                            "train_state",
                            "test_state",
                            "test_iter",
                            "test_interval",
                            "test_compute_loss",
                            "test_initialization",
                            "max_iter",
                            "max_epoch",
                            "metric",
                            "metric_falls",
                            "early_stopping",
                            "early_stopping_delta",
                            "keep_snapshots",
                            "display",
                            "average_loss",
                            "snapshot",
                            "snapshot_prefix",
                            "snapshot_diff",
                            "snapshot_format",
                            "snapshot_after_train",
                            "solver_mode",
                            "device_id",
                            "random_seed",
                            "debug_info",
                            "layer_wise_reduce",
                            "weights",
                            "type",
                            "solver_type",
                            "watchdog",
                            "watchdog_seconds",
                            "show_per_class_result",
                            "eval_type",
                            "ap_version",
                            "allow_python",
                            "plugin"}) {
    const auto* descriptor = SolverParameter::descriptor()->FindFieldByName(field);
    CAFFE_ASSERT(descriptor != nullptr, field);
    SolverParameter::GetReflection()->ClearField(&identity, descriptor);
  }
  google::protobuf::TextFormat::Printer printer;
  std::string text;
  const google::protobuf::Reflection& reflection = *SolverParameter::GetReflection();
  std::vector<const google::protobuf::FieldDescriptor*> set;
  reflection.ListFields(identity, &set);
  printer.SetSingleLineMode(true);
  for (const google::protobuf::FieldDescriptor* field : set) {
    const int count = field->is_repeated() ? reflection.FieldSize(identity, field) : 1;
    for (int i = 0; i < count; ++i) {
      std::string value;
      printer.PrintFieldValueToString(identity, field, field->is_repeated() ? i : -1, &value);
      text += field->name() + ": " + value + "\n";
    }
  }
  return text;
}

uint64_t NetIdentity(const Net& net) {
  NetParameter definition = net.definition();
  definition.clear_model_info();
  const std::string text = definition.DebugString();
  WordHash hash;
  // Splits without a stream, which would silently end early if memory runs out.
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line(text.data() + begin, end - begin);
    begin = end + 1;
    const size_t first = std::min(line.find_first_not_of(' '), line.size());
    const std::string_view field = line.substr(first, line.find(':') - first);
    if (field == "source" || field == "root_folder" || field == "mean_file" || field == "backend")
      continue;
    hash.Add(line);
  }
  return hash.value();
}

std::string DifferencesOf(const std::string& now, const std::string& before) {
  std::string differences;
  const auto fields = FieldsOf(now), old_fields = FieldsOf(before);
  const auto add = [&](const std::string& one) {
    differences += (differences.empty() ? "" : ", ") + one;
  };
  for (const auto& [name, lines] : fields) {
    const auto old = old_fields.find(name);
    if (old == old_fields.end()) {
      add(Joined(lines) + " (was not there)");
    } else if (old->second != lines) {
      add(Joined(lines) + " (was " + Joined(old->second) + ")");
    }
  }
  for (const auto& [name, lines] : old_fields) {
    if (!fields.contains(name)) add("no " + name + " (was " + Joined(lines) + ")");
  }
  return differences;
}

}  // namespace caffe
