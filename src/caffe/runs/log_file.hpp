// LogFile: a copy of what the process logs.
#pragma once

#include <glog/logging.h>

#include <string>

#include "caffe/runs/append_file.hpp"

namespace caffe::runs {

// Receives all messages of the process, from all threads, as long as it exists. A message that
// cannot be written is dropped: reporting that would need the log.
class LogFile final : public google::LogSink {
 public:
  // Appends to the file. Throws IoError, also if another process writes to it.
  explicit LogFile(const std::string& path);
  ~LogFile() override;
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  // Writes an error to this file alone.
  void Fail(const std::string& error) { LOG_TO_SINK_BUT_NOT_TO_LOGFILE(this, ERROR) << error; }

  // glog calls it for one message at a time.
  void send(google::LogSeverity severity, const char* full_name, const char* base_name, int line,
            const google::LogMessageTime& time, const char* message, size_t size) override;

 private:
  AppendFile file_;
};

}  // namespace caffe::runs
