#include "tools/caffe/watchdog_options.hpp"

#include <glog/logging.h>
#include <unistd.h>

#include "caffe/error.hpp"

namespace caffe::tools {

void WatchdogOptions::Add(CLI::App& app) {
  app.add_option("--watchdog", watchdog,
                 "What to do when reading, computing, reduction, a test or a snapshot makes no "
                 "progress: say so, or also snapshot and end")
      ->type_name("off|warn|abort")
      ->default_str("warn");
  app.add_option("--watchdog_seconds", seconds, "For how long that has to last")
      ->type_name("SECONDS")
      ->default_str("300");
}

void WatchdogOptions::PutInto(SolverParameter* param) const {
  if (!watchdog.empty()) param->set_watchdog(watchdog);
  if (seconds) param->set_watchdog_seconds(*seconds);
}

void EndHangingRun(const std::string& why) {
  LOG(ERROR) << "caffe train: the run hangs and was told to end (--watchdog abort): " << why;
  google::FlushLogFiles(google::INFO);
  ::_exit(1);
}

}  // namespace caffe::tools
