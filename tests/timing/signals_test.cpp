// Signals to `caffe train`, each sent when the log shows the effect of the previous one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/folders.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe {
namespace {

using ::testing::HasSubstr;

// A program whose standard error is read while it runs. The end of that stream is its end.
class LoggingProgram {
 public:
  // Runs in `folder`; `arguments` ends with a null.
  LoggingProgram(const std::string& folder, const std::string& path,
                 std::vector<const char*> arguments) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    child_ = ::fork();
    if (child_ == 0) {
      ::signal(SIGINT, SIG_DFL);  // tests started in the background ignore it
      ::dup2(ends[1], STDERR_FILENO);
      ::close(ends[0]), ::close(ends[1]);
      if (::chdir(folder.c_str()) == 0)
        ::execv(path.c_str(), const_cast<char* const*>(arguments.data()));
      ::_exit(127);
    }
    ::close(ends[1]);
    log_ = ::fdopen(ends[0], "r");
  }
  ~LoggingProgram() { std::fclose(log_); }
  LoggingProgram(const LoggingProgram&) = delete;
  LoggingProgram& operator=(const LoggingProgram&) = delete;

  // Reads up to the line that contains this text. Returns false at the end of the log.
  bool ReadTo(const std::string& text) {
    char line[4096];
    while (std::fgets(line, sizeof line, log_) != nullptr) {
      log += line;
      if (std::string_view(line).find(text) != std::string_view::npos) return true;
    }
    return false;
  }
  // The process exists until Wait() has returned.
  void Send(int signal) const { EXPECT_EQ(::kill(child_, signal), 0); }
  // Waits until it has ended, and returns its status.
  int Wait() {
    while (ReadTo("\n")) continue;
    int status = -1;
    EXPECT_EQ(::waitpid(child_, &status, 0), child_);
    return status;
  }

  std::string log;

 private:
  pid_t child_ = -1;
  FILE* log_ = nullptr;
};

class TrainingSignals : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    std::ofstream(folder_.path("solver.prototxt"))
        << R"(base_lr: 0.1 lr_policy: 'fixed' max_iter: 1000000000 net_param {
          name: "line"
          layer { name: "x" type: "DummyData" top: "x" top: "t"
            dummy_data_param { shape { dim: 4 dim: 3 } shape { dim: 4 dim: 2 }
              data_filler { type: "gaussian" } data_filler { type: "gaussian" } } }
          layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y"
            inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
          layer { name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "t" top: "loss" } })";
  }

  testing::TemporaryFolder folder_;
};

// SIGPIPE arrives when a pipe's reader is gone: Ctrl-C ends the tee of
// `caffe train 2>&1 | tee log`.
INSTANTIATE_TEST_SUITE_P(Stop, TrainingSignals, ::testing::Values(SIGINT, SIGTERM, SIGPIPE));

TEST_P(TrainingSignals, SnapshotAndStop) {
  LoggingProgram caffe(folder_.path(), testing::BuildPath("bin/caffe"),
                       {"caffe", "train", "-solver", "solver.prototxt", nullptr});
  if (caffe.ReadTo("Solving line")) caffe.Send(SIGHUP);
  if (caffe.ReadTo("Snapshotting solver state")) caffe.Send(GetParam());
  const int status = caffe.Wait();
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status << caffe.log;
  EXPECT_THAT(caffe.log, HasSubstr("Optimization stopped early."));
}

}  // namespace
}  // namespace caffe
