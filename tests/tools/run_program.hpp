// Runs a program of the build through a shell.
#pragma once

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

#include "tests/support/folders.hpp"

namespace caffe::testing {

struct Outcome {
  int status = -1;  // exit status; -1 if it ended by a signal
  int signal = 0;   // that ended it, if `before` makes it replace the shell
  std::string output;
};

// `command` is the name of a program in the build's bin/ and its arguments; it runs in `folder`.
// Standard output and standard error are combined. `before` is shell text before the program: other
// commands, or "exec env NAME=VALUE".
inline Outcome RunProgram(const std::string& folder, const std::string& command,
                          const std::string& before = "") {
  const std::string line =
      "cd '" + folder + "' && " + before + " '" + BuildPath("bin/") + "'" + command + " 2>&1";
  FILE* pipe = popen(line.c_str(), "r");
  Outcome outcome;
  std::array<char, 4096> part;
  for (size_t count; (count = fread(part.data(), 1, part.size(), pipe)) > 0;) {
    outcome.output.append(part.data(), count);
  }
  const int status = pclose(pipe);
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  outcome.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  return outcome;
}

}  // namespace caffe::testing
