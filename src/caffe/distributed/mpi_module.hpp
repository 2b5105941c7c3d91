// MPI as a Transport: what the module libcaffe_mpi_transport offers.
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

// What the transports know of the run, which looks after its ranks by itself. The functions are
// called from several threads.
struct MpiRun {
  int rank = 0, ranks = 1;
  // How long a rank may keep silent once nobody looks after it any more.
  std::chrono::duration<double> patience{15};
  // Reports that a rank is lost, and returns the error that all ranks throw.
  std::function<std::exception_ptr(int rank, const std::string& why)> report_loss;
  // When rank 0 stopped looking after the others; nothing while it does.
  std::function<std::optional<std::chrono::steady_clock::time_point>()> when_rank0_left;
};

class MpiModule {
 public:
  virtual ~MpiModule() = default;

  // Starts MPI in this process, unless somebody has, and ends it with the process, unless a
  // transport has been aborted: MPI then waits for ranks that are gone. All ranks call it, once.
  // Each returned transport has a communicator of its own, of MPI_COMM_WORLD. Throws
  // InvalidArgument where that has other ranks than the run.
  virtual std::vector<std::shared_ptr<Transport>> Connect(const MpiRun& run, int count) const = 0;

  // Loads the module. Throws Unsupported where it is not there.
  static const MpiModule& Get();
};

}  // namespace caffe
