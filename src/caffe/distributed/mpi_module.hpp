// MPI as an engine of ranks: what the modules libcaffe_openmpi and libcaffe_mpich provide. Each is
// built for one MPI library, because Open MPI and MPICH have different binary interfaces.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "caffe/distributed/transport.hpp"

namespace caffe {

// The ranks that MPI has started.
struct MpiWorld {
  int rank = 0, ranks = 1;
  std::string library;  // "Open MPI v4.1.4"
};

// The run that transports belong to; they do not send its heartbeats. The functions are called from
// several threads.
struct MpiRun {
  int rank = 0, ranks = 1;
  // How long a rank may send nothing after heartbeats have ended.
  std::chrono::duration<double> patience{15};
  // Reports that a rank is lost, and returns the error that all ranks throw.
  std::function<std::exception_ptr(int rank, const std::string& why)> report_loss;
  // When rank 0 stopped monitoring the others; nothing while it does.
  std::function<std::optional<std::chrono::steady_clock::time_point>()> when_rank0_left;
};

class MpiModule {
 public:
  virtual ~MpiModule() = default;

  // Why MPI_Init() would end this process, or start it as the only rank: its launcher does not
  // support this MPI library. Empty if it does. Does not start MPI.
  virtual std::string WhyNotLaunched() const = 0;
  // Starts MPI in this process, unless it runs already. It ends with the process, unless a
  // transport has been aborted: MPI would then wait for ranks that are gone. Throws InvalidArgument
  // if MPI was started by others for a single thread.
  virtual MpiWorld Start() const = 0;
  // Returns rank 0's text on all ranks, which call this together. Throws DeviceError if some do not
  // call it within `seconds`.
  virtual std::string Broadcast(const std::string& text, double seconds) const = 0;
  // Says that a rank has failed: MPI is not ended with the process, which would wait for the
  // others.
  virtual void Abandon() const = 0;
  // Each of `count` transports has a communicator of its own. All ranks call this together, once.
  virtual std::vector<std::shared_ptr<Transport>> Connect(const MpiRun& run, int count) const = 0;

  // The module for the MPI library whose launcher has started this process, or nothing and the
  // reason: no MPI launcher has, or the module or its library is missing.
  static const MpiModule* Find(std::string* why);
};

}  // namespace caffe
