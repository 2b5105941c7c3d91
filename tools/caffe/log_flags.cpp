#include "tools/caffe/log_flags.hpp"

#include <glog/logging.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "caffe/error.hpp"

namespace caffe::tools {
namespace {

constexpr const char* kHidden = "";  // CLI11's help omits a group without a name

void AddBool(CLI::App& app, const std::string& name, bool* flag) {
  app.add_flag("--" + name, *flag)->group(kHidden);
}

template <typename T>
void AddValue(CLI::App& app, const std::string& name, T* flag) {
  app.add_option("--" + name, *flag)->group(kHidden);
}

}  // namespace

void AddLogFlags(CLI::App& app) {
  FLAGS_alsologtostderr = true;
  // Programs that parse Caffe's logs expect "I0210 13:39:22"; newer versions of glog add the year.
  FLAGS_log_year_in_prefix = false;

  AddBool(app, "alsologtostderr", &FLAGS_alsologtostderr);
  AddBool(app, "colorlogtostderr", &FLAGS_colorlogtostderr);
  AddBool(app, "colorlogtostdout", &FLAGS_colorlogtostdout);
  AddBool(app, "log_prefix", &FLAGS_log_prefix);
  AddBool(app, "log_utc_time", &FLAGS_log_utc_time);
  AddBool(app, "log_year_in_prefix", &FLAGS_log_year_in_prefix);
  AddBool(app, "logtostderr", &FLAGS_logtostderr);
  AddBool(app, "logtostdout", &FLAGS_logtostdout);
  AddBool(app, "stop_logging_if_full_disk", &FLAGS_stop_logging_if_full_disk);
  AddBool(app, "timestamp_in_logfile_name", &FLAGS_timestamp_in_logfile_name);
  AddValue(app, "log_dir", &FLAGS_log_dir);
  AddValue(app, "log_link", &FLAGS_log_link);
  AddValue(app, "logbuflevel", &FLAGS_logbuflevel);
  AddValue(app, "logbufsecs", &FLAGS_logbufsecs);
  AddValue(app, "logfile_mode", &FLAGS_logfile_mode);
  AddValue(app, "max_log_size", &FLAGS_max_log_size);
  AddValue(app, "minloglevel", &FLAGS_minloglevel);
  AddValue(app, "stderrthreshold", &FLAGS_stderrthreshold);
  AddValue(app, "v", &FLAGS_v);
  AddValue(app, "vmodule", &FLAGS_vmodule);
}

void StartLogging(const char* program) {
  // Without a folder glog would write files into /tmp.
  FLAGS_logtostderr = FLAGS_alsologtostderr && FLAGS_log_dir.empty();
  google::InitGoogleLogging(program);
}

std::string DropBadLogDir() {
  const std::string folder = FLAGS_log_dir;
  if (folder.empty()) return "";
  std::error_code ignored;
  const bool is_folder = std::filesystem::is_directory(folder, ignored);
  if (is_folder && ::access(folder.c_str(), W_OK | X_OK) == 0) return "";
  FLAGS_log_dir = "";
  return StrCat("--log_dir: ", is_folder ? "cannot write in folder '" : "'", folder,
                is_folder ? "'" : "' is not a folder",
                "; the log goes to standard error alone. Give another folder");
}

}  // namespace caffe::tools
