// A timeline of training, written to a file at the end.
#pragma once

#include <optional>
#include <string>

#include "caffe/trace.hpp"

namespace caffe::tools {

// Writes the timeline when it is destroyed, so that training that fails leaves one too.
class TraceFile {
 public:
  // Records nothing if `file` is empty. Throws IoError where the file cannot be written: before
  // hours of training, not after them.
  explicit TraceFile(const std::string& file);
  ~TraceFile();
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  // Null without a file.
  Trace* trace() { return trace_ ? &*trace_ : nullptr; }

 private:
  void Write();

  const std::string file_;
  std::optional<Trace> trace_;
};

}  // namespace caffe::tools
