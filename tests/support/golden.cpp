#include "tests/support/golden.hpp"

#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "caffe/io/text_format.hpp"
#include "caffe/io/upgrade_net.hpp"
#include "caffe/layer_factory.hpp"
#include "tests/support/folders.hpp"

namespace caffe::testing {

std::vector<std::string> GoldenCases(const std::string& group) {
  std::vector<std::string> paths;
  const std::filesystem::path folder = SourcePath("tests/golden/" + group);
  std::error_code is_missing;
  for (const auto& entry : std::filesystem::directory_iterator(folder, is_missing)) {
    if (entry.path().extension() == ".npz") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string TestNameOf(const std::string& path) {
  std::string name = std::filesystem::path(path).stem();
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
}

google::protobuf::Struct MetaOf(const Npz& npz) {
  google::protobuf::Struct meta;
  const auto status = google::protobuf::util::JsonStringToMessage(npz.at("meta").text(), &meta);
  if (!status.ok()) throw std::runtime_error("meta: " + status.ToString());
  return meta;
}

double Number(const google::protobuf::Struct& meta, const std::string& key, double fallback) {
  const auto found = meta.fields().find(key);
  if (found == meta.fields().end()) return fallback;
  return found->second.has_bool_value() ? found->second.bool_value() : found->second.number_value();
}

std::string Text(const google::protobuf::Struct& meta, const std::string& key) {
  const auto found = meta.fields().find(key);
  return found == meta.fields().end() ? "" : found->second.string_value();
}

std::vector<std::string> Texts(const google::protobuf::Struct& meta, const std::string& key) {
  std::vector<std::string> texts;
  const auto found = meta.fields().find(key);
  if (found == meta.fields().end()) return texts;
  for (const auto& value : found->second.list_value().values())
    texts.push_back(value.string_value());
  return texts;
}

std::vector<std::string> KeysAfter(const Npz& npz, const std::string& prefix) {
  std::vector<std::string> rests;
  for (const std::string& key : npz.keys()) {
    if (key.rfind(prefix, 0) == 0) rests.push_back(key.substr(prefix.size()));
  }
  return rests;
}

std::pair<std::string, int> LayerAndIndex(const std::string& key) {
  const size_t dot = key.rfind('.');
  return {key.substr(0, dot), std::stoi(key.substr(dot + 1))};
}

void ExpectClose(const std::string& what, const float* got, const std::vector<float>& want,
                 double rtol, double atol) {
  size_t worst = 0;
  double worst_excess = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    const double allowed = atol + rtol * std::abs(static_cast<double>(want[i]));
    const double error = std::abs(static_cast<double>(got[i]) - static_cast<double>(want[i]));
    const double excess = std::isnan(error) ? HUGE_VAL : error / allowed;
    if (excess > worst_excess) worst = i, worst_excess = excess;
  }
  if (worst_excess > 1) {
    ADD_FAILURE() << what << "[" << worst << "] of " << want.size() << ": got " << got[worst]
                  << ", want " << want[worst] << " (" << worst_excess << " times the tolerance)";
  }
}

std::string MissingLayerTypes(const std::string& prototxt) {
  NetParameter net;
  ParseTextProto(prototxt, "golden", &net);
  UpgradeNet("golden", &net);
  const std::vector<std::string> known = LayerRegistry::LayerTypeList();
  std::set<std::string> missing;
  for (const LayerParameter& layer : net.layer()) {
    if (std::find(known.begin(), known.end(), layer.type()) == known.end())
      missing.insert(layer.type());
  }
  std::string text;
  for (const std::string& type : missing) text += (text.empty() ? "" : ", ") + type;
  return text;
}

}  // namespace caffe::testing
