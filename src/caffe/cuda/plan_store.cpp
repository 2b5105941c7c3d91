#include "caffe/cuda/plan_store.hpp"

#include <glog/logging.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "caffe/core/hash.hpp"
#include "caffe/device/algorithm_cache.hpp"
#include "caffe/error.hpp"

namespace caffe::cuda {
namespace {

constexpr const char* kFormat = "cortado plan 1";

std::string_view TextOf(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Header lines before the plan's bytes; the last one holds their number and the hash of everything.
std::string HeaderOf(const std::string& key, const StoredPlan& plan) {
  const std::string names = StrCat(kFormat, '\n', key, '\n', plan.name, '\n');
  return StrCat(names, plan.bytes.size(), ' ', Hash64(TextOf(plan.bytes), Hash64(names)), '\n');
}

std::optional<StoredPlan> Parse(const std::string& text, const std::string& key) {
  std::istringstream in(text);
  std::string format, stored_key, sizes;
  StoredPlan plan;
  std::getline(in, format);
  std::getline(in, stored_key);
  std::getline(in, plan.name);
  std::getline(in, sizes);
  if (!in || format != kFormat || stored_key != key) return std::nullopt;
  const auto begin = text.begin() + in.tellg();
  plan.bytes.assign(begin, text.end());
  const std::string header = HeaderOf(key, plan);
  if (text.compare(0, header.size(), header) != 0) return std::nullopt;
  return plan;
}

}  // namespace

const PlanStore& PlanStore::OfUser() {
  static const PlanStore store(AlgorithmCache::FileOfUser(".plans"));
  return store;
}

std::string PlanStore::FileOf(const std::string& key) const {
  std::ostringstream name;
  name << folder_ << '/' << std::hex << Hash64(key) << ".plan";
  return name.str();
}

std::optional<StoredPlan> PlanStore::Find(const std::string& key) const {
  if (folder_.empty()) return std::nullopt;
  std::ifstream file(FileOf(key), std::ios::binary);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  std::optional<StoredPlan> plan = Parse(text.str(), key);
  LOG_IF(WARNING, !plan) << FileOf(key) << ": is damaged or of another problem; the plan is built "
                         << "again";
  return plan;
}

void PlanStore::Store(const std::string& key, const StoredPlan& plan) const {
  if (folder_.empty()) return;
  static std::atomic<int> number = 0;
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  const std::string name = FileOf(key);
  const std::string partial = StrCat(name, '.', getpid(), '.', ++number);
  {
    std::ofstream file(partial, std::ios::binary);
    file << HeaderOf(key, plan) << TextOf(plan.bytes);
    file.close();
    if (!file) error = std::make_error_code(std::errc::io_error);
  }
  if (!error) std::filesystem::rename(partial, name, error);
  if (!error) return;
  LOG_FIRST_N(WARNING, 1) << name << ": cannot be written (" << error.message()
                          << "); plans are built again in each run";
  std::filesystem::remove(partial, error);
}

}  // namespace caffe::cuda
