// The program `caffe`: its command line, and what a command's failure becomes.
#include <gflags/gflags.h>
#include <glog/logging.h>
#include <stdlib.h>
#include <unistd.h>

#include <iostream>
#include <new>

#include "caffe/common.hpp"
#include "tools/caffe/command.hpp"

namespace caffe::tools {
namespace {

std::string Usage() {
  std::string text = "caffe <command> <flags>\n\ncommands:\n";
  for (const auto& [name, command] : Commands()) {
    text += "  " + name + std::string(17 - name.size(), ' ') + command.help + "\n";
  }
  return text;
}

int RunCommand(const std::string& name, const std::string& argument) {
  const auto found = Commands().find(name);
  if (found == Commands().end()) {
    LOG(ERROR) << "Available caffe actions:";
    for (const auto& [known, command] : Commands()) LOG(ERROR) << "\t" << known;
    LOG(ERROR) << "Unknown action: " << name;
    return 1;
  }
  try {
    found->second.run(argument);
    return 0;
  } catch (const std::bad_alloc&) {
    LOG(ERROR)
        << "caffe " << name
        << ": the machine's memory is used up; lower batch_size or prefetch (caffe plan shows "
           "what a net needs)";
    return 1;
  } catch (const std::exception& error) {
    LOG(ERROR) << "caffe " << name << ": " << error.what();
    return 1;
  }
}

bool TakesArgument(const std::string& name) {
  const auto found = Commands().find(name);
  return found != Commands().end() && found->second.takes_argument;
}

// What is left of the command line without its flags: the program, a command and perhaps its
// argument.
int RunWords(int count, char** words) {
  if (count < 2) {
    LOG(ERROR)
        << "caffe: there are flags but no command; give one, as in caffe train --solver=FILE";
    return 1;
  }
  const int most = TakesArgument(words[1]) ? 3 : 2;
  if (count > most) {
    LOG(ERROR)
        << "caffe " << words[1] << ": '" << words[most]
        << "' is neither a flag nor its value; flags begin with a dash, lists have no spaces";
    return 1;
  }
  return RunCommand(words[1], count == 3 ? words[2] : "");
}

// OpenMP's threads wait for each other many times in an iteration. By default g++'s OpenMP lets
// them spin, so that any other load on the machine (data threads, a compiler) slows small nets
// tenfold; sleeping costs nothing measurable. The runtime reads the setting when it is loaded,
// hence the second start of the program.
void WaitPassively(char** argv) {
  if (std::getenv("OMP_WAIT_POLICY") != nullptr || std::getenv("GOMP_SPINCOUNT") != nullptr) return;
  setenv("OMP_WAIT_POLICY", "passive", /*overwrite=*/0);
  setenv("OPENBLAS_NUM_THREADS", "1", /*overwrite=*/0);  // ours call it; its own need not start
  execv("/proc/self/exe", argv);  // returns only on failure, which costs speed and nothing else
}

int Main(int argc, char** argv) {
  WaitPassively(argv);
  const bool has_arguments = argc > 1;  // before gflags removes the flags
  FLAGS_alsologtostderr = true;
  // Programs that read Caffe's logs expect "I0210 13:39:22", which newer glogs put a year into.
  gflags::SetCommandLineOptionWithMode("log_year_in_prefix", "false", gflags::SET_FLAGS_DEFAULT);
  gflags::SetVersionString(Version());
  gflags::SetUsageMessage(Usage());
  gflags::ParseCommandLineFlags(&argc, &argv, /*remove_flags=*/true);
  FLAGS_logtostderr = FLAGS_alsologtostderr;
  google::InitGoogleLogging(argv[0]);
  if (has_arguments) return RunWords(argc, argv);
  std::cout << Usage() << "\nflags: caffe --help\n";
  return 0;
}

}  // namespace
}  // namespace caffe::tools

int main(int argc, char** argv) {
  return caffe::tools::Main(argc, argv);
}
