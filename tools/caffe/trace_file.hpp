// Writes a timeline of training to a file at the end.
#pragma once

#include <optional>
#include <string>

#include "caffe/trace.hpp"

namespace caffe::tools {

// Writes the timeline in the destructor, so that failed training leaves one too.
class TraceFile {
 public:
  // Records nothing if `file` is empty. Throws IoError if the file cannot be written, so that the
  // error comes before hours of training.
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
