#include "caffe/common.hpp"

#include <glog/logging.h>

#include <atomic>
#include <random>

#include "caffe/error.hpp"
#include "caffe/version.hpp"

namespace caffe {
namespace {

struct Settings {
  Caffe::Brew mode = Caffe::CPU;
  int device = 0;
  std::optional<uint64_t> seed;
  std::atomic<bool> allows_python = false;
};

Settings& Get() {
  static Settings settings;
  return settings;
}

}  // namespace

Caffe::Brew Caffe::mode() {
  return Get().mode;
}
void Caffe::set_mode(Brew mode) {
  Get().mode = mode;
}
int Caffe::device() {
  return Get().device;
}
void Caffe::SetDevice(int id) {
  Get().device = id;
}
void Caffe::set_random_seed(uint64_t seed) {
  Get().seed = seed;
}

uint64_t Caffe::NextSeed() {
  if (Get().seed) return *Get().seed;
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

void AllowPythonLayers() {
  Get().allows_python = true;
}
bool PythonLayersAreAllowed() {
  return Get().allows_python;
}

void InitLog() {
  if (google::IsGoogleLoggingInitialized()) return;
  FLAGS_logtostderr = true;
  FLAGS_log_year_in_prefix = false;  // as Caffe's parsers expect
  google::InitGoogleLogging("");
}

const char* Version() {
  return CAFFE_VERSION;
}

}  // namespace caffe
