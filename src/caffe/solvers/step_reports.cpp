#include "caffe/solvers/step_reports.hpp"

#include <cstring>

#include "caffe/device/host_memory.hpp"
#include "caffe/error.hpp"

namespace caffe {

void StepReports::Send(int iteration, const ops::StepState* on_device) {
  if (idle_.empty()) {
    idle_.push_back(
        {0, AllocateHostMemory(*device_, sizeof(ops::StepState)), device_->MakeEvent()});
  }
  UnderWay report = std::move(idle_.front());
  idle_.pop_front();
  report.iteration = iteration;
  Stream& stream = device_->compute_stream();
  stream.CopyToHost(report.memory.get(), on_device, sizeof(ops::StepState));
  stream.Record(*report.arrived);
  under_way_.push_back(std::move(report));
}

StepReports::Report StepReports::Take() {
  CAFFE_ASSERT(!under_way_.empty(), "no step has sent a report");
  UnderWay under_way = std::move(under_way_.front());
  under_way_.pop_front();
  under_way.arrived->Synchronize();
  Report report{under_way.iteration, {}};
  std::memcpy(&report.state, under_way.memory.get(), sizeof(report.state));
  idle_.push_back(std::move(under_way));
  return report;
}

}  // namespace caffe
