#include "caffe/solvers/log_net.hpp"

#include <glog/logging.h>

#include "caffe/graph/graph.hpp"

namespace caffe {

void LogNet(const Net& net) {
  const auto& calls = net.graph().calls;
  // Of a net for tests there is nothing to say: it has no backward pass.
  for (size_t i = net.graph().options.with_backward ? calls.size() : 0; i-- > 0;) {
    LOG(INFO) << net.layer_names()[i] << (calls[i].needs_backward ? " needs" : " does not need")
              << " backward computation.";
  }
  for (const std::string& name : net.output_names()) {
    LOG(INFO) << "This network produces output " << name;
  }
  LOG(INFO) << "Network initialization done.";
}

}  // namespace caffe
