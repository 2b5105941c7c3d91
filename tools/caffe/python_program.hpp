// Commands that are written in Python, in package `caffe`.
#pragma once

#include <string>
#include <vector>

namespace caffe::tools {

// Becomes the main() of a Python module with these arguments; the interpreter is PYTHON of the
// environment, or python3. The package beside this program is found first, and nothing in the
// working folder. `command` is named where a package is missing. Throws IoError where there is no
// such interpreter.
[[noreturn]] void BecomePython(const std::string& command, const std::string& module,
                               std::vector<std::string> arguments);

}  // namespace caffe::tools
