#include "caffe/runs/log_file.hpp"

#include <exception>

namespace caffe::runs {

LogFile::LogFile(const std::string& path) : file_(path) {
  file_.DropTornLine();
  google::AddLogSink(this);
}

LogFile::~LogFile() {
  google::RemoveLogSink(this);
}

void LogFile::send(google::LogSeverity severity, const char* /*full_name*/, const char* base_name,
                   int line, const google::LogMessageTime& time, const char* message, size_t size) {
  try {
    file_.Append(ToString(severity, base_name, line, time, message, size) + "\n");
  } catch (const std::exception&) {  // see above
  }
}

}  // namespace caffe::runs
