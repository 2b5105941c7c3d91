#include "caffe/compat/caffe/common.hpp"

#include <random>

#include "caffe/common.hpp"
#include "caffe/compat/caffe/util/rng.hpp"
#include "caffe/device/device.hpp"
#include "caffe/error.hpp"
#include "compat/gpu.hpp"

namespace caffe::bvlc {

void GlobalInit(int* pargc, char*** pargv) {
  FLAGS_log_year_in_prefix = false;  // as in the glog of Caffe's time, which log parsers expect
  gflags::ParseCommandLineFlags(pargc, pargv, true);
  google::InitGoogleLogging(*pargv[0]);
}

Caffe::Caffe() : solver_count_(1), solver_rank_(0), multiprocess_(false) {}
Caffe::~Caffe() = default;

Caffe& Caffe::Get() {
  thread_local Caffe settings;
  return settings;
}

Caffe::RNG::RNG() : RNG(static_cast<unsigned int>(::caffe::Caffe::NextSeed())) {}
Caffe::RNG::RNG(unsigned int seed) : generator_(std::make_shared<rng_t>(seed)) {}
void* Caffe::RNG::generator() {
  return generator_.get();
}

Caffe::RNG& Caffe::rng_stream() {
  return Get().random_;
}

Caffe::Brew Caffe::mode() {
  if (const CallScope* const call = CallScope::Current()) return call->gpu() != nullptr ? GPU : CPU;
  return ::caffe::Caffe::mode() == ::caffe::Caffe::GPU ? GPU : CPU;
}
void Caffe::set_mode(Brew mode) {
  ::caffe::Caffe::set_mode(mode == GPU ? ::caffe::Caffe::GPU : ::caffe::Caffe::CPU);
}

void Caffe::set_random_seed(const unsigned int seed) {
  ::caffe::Caffe::set_random_seed(seed);
  Get().random_ = RNG(seed);
}

void Caffe::SetDevice(const int device_id) {
  ::caffe::Caffe::SetDevice(device_id);
}

void Caffe::DeviceQuery() {
  LOG(INFO) << ::caffe::DescribeGpu(::caffe::Caffe::device());
}

bool Caffe::CheckDevice(const int device_id) {
  try {
    ::caffe::DescribeGpu(device_id);
    return true;
  } catch (const Error&) {
    return false;
  }
}

int Caffe::FindDevice(const int start_id) {
  const int count = IsDeviceBuilt(DeviceKind::kCuda) ? NumDevices(DeviceKind::kCuda) : 0;
  for (int id = start_id; id < count; ++id) {
    if (CheckDevice(id)) return id;
  }
  return -1;
}

int Caffe::solver_count() {
  return Get().solver_count_;
}
void Caffe::set_solver_count(int value) {
  Get().solver_count_ = value;
}
int Caffe::solver_rank() {
  return Get().solver_rank_;
}
void Caffe::set_solver_rank(int value) {
  Get().solver_rank_ = value;
}
bool Caffe::multiprocess() {
  return Get().multiprocess_;
}
void Caffe::set_multiprocess(bool value) {
  Get().multiprocess_ = value;
}

}  // namespace caffe::bvlc
