// The program `caffe`.
#include <glog/logging.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "caffe/error.hpp"
#include "tools/caffe/command_line.hpp"
#include "tools/caffe/fault_report.hpp"
#include "tools/caffe/log_flags.hpp"
#include "tools/final_error.hpp"
#include "tools/run_main.hpp"
#include "tools/standard_streams.hpp"

namespace caffe::tools {
namespace {

// OpenMP's threads wait for each other many times per iteration. By default GCC's OpenMP spins for
// milliseconds, so that any other load on the machine (data threads, a compiler) slows small nets
// tenfold; sleeping at once makes a net of small layers take 1.5 times as long. So threads spin
// about as long as a usual wait, then sleep. The runtime reads the setting when it is loaded, so
// the program has to restart itself.
void WaitBriefly(char** argv) {
  if (std::getenv("OMP_WAIT_POLICY") != nullptr || std::getenv("GOMP_SPINCOUNT") != nullptr) return;
  setenv("GOMP_SPINCOUNT", "5000", /*overwrite=*/0);
  setenv("OPENBLAS_NUM_THREADS", "1", /*overwrite=*/0);  // our threads call it, so it needs none
  execv("/proc/self/exe", argv);  // returns only on failure, which costs only speed
}

int Main(int argc, char** argv) {
  OpenStandardStreams();
  WaitBriefly(argv);
  ReportFaults();
  CommandLine line;
  std::string wrong;
  try {
    line.Parse({argv + 1, argv + argc});
  } catch (const Error& error) {
    wrong = error.what();
  }
  const std::string without_files = DropBadLogDir();
  StartLogging(argv[0]);
  LOG_IF(WARNING, !without_files.empty()) << without_files;
  if (!wrong.empty()) {
    ReportFinalError("caffe", wrong);
    return 1;
  }
  for (const std::string& warning : line.warnings()) LOG(WARNING) << warning;
  for (const std::string& note : line.notes()) LOG(INFO) << note;
  return line.Run();
}

}  // namespace
}  // namespace caffe::tools

int main(int argc, char** argv) {
  return caffe::tools::RunMain("caffe", [&] { return caffe::tools::Main(argc, argv); });
}
