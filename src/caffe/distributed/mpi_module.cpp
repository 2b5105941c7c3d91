#include "caffe/distributed/mpi_module.hpp"

#include "caffe/core/module.hpp"

namespace caffe {

const MpiModule& MpiModule::Get() {
  static const auto create = reinterpret_cast<const MpiModule* (*)()>(
      LoadModule("caffe_mpi_transport", "caffe_mpi_transport",
                 "transport mpi needs a build with MPI; install libopenmpi-dev and build again, or "
                 "leave the option away: ranks then use TCP"));
  return *create();
}

}  // namespace caffe
