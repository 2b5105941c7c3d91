#include "caffe/runs/log_file.hpp"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <exception>

namespace caffe::runs {
namespace {

// "I1128 22:01:50.123456 10386 solver.cpp:27] " as glog writes it. Its own ToString() always has
// the year, which parsers of Caffe's logs do not expect.
std::string Prefix(google::LogSeverity severity, const char* file, int line,
                   const google::LogMessageTime& time) {
  std::array<char, 16> year = {};
  if (FLAGS_log_year_in_prefix) std::snprintf(year.data(), year.size(), "%04d", 1900 + time.year());
  std::array<char, 256> text = {};
  std::snprintf(text.data(), text.size(), "%c%s%02d%02d %02d:%02d:%02d.%06d %5d %s:%d] ",
                google::GetLogSeverityName(severity)[0], year.data(), 1 + time.month(), time.day(),
                time.hour(), time.min(), time.sec(), static_cast<int>(time.usec()),
                static_cast<int>(gettid()), file, line);
  return text.data();
}

}  // namespace

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
    file_.Append(Prefix(severity, base_name, line, time) + std::string(message, size) + "\n");
  } catch (const std::exception&) {  // see above
  }
}

}  // namespace caffe::runs
