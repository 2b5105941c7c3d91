#include "tools/caffe/trace_file.hpp"

#include <glog/logging.h>

#include <sstream>

#include "caffe/io/atomic_file.hpp"

namespace caffe::tools {

TraceFile::TraceFile(const std::string& file) : file_(file) {
  if (file.empty()) return;
  trace_.emplace();
  Write();
}

TraceFile::~TraceFile() {
  if (!trace_) return;
  try {
    Write();
    LOG(INFO) << "Wrote the timeline to " << file_;
  } catch (const std::exception& error) {
    LOG(ERROR) << error.what();
  }
}

void TraceFile::Write() {
  std::ostringstream json;
  trace_->WriteJson(json);
  WriteFileAtomically(file_, json.str());
}

}  // namespace caffe::tools
