// Runs commands that are written in Python, in package `caffe`.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace caffe::tools {

// Replaces this process by the main() of a Python module with these arguments. The interpreter is
// $PYTHON, or python3. Python finds this program's own package first, and nothing in the working
// folder. `command` is named if a package is missing. Throws IoError if the interpreter cannot be
// started.
[[noreturn]] void BecomePython(const std::string& command, const std::string& module,
                               std::vector<std::string> arguments);

// Appends OPTION=VALUE, which is one word, so that a value may begin with a dash. Options with an
// empty value are left out.
void AddOptions(std::initializer_list<std::pair<const char*, std::string>> options,
                std::vector<std::string>* words);

}  // namespace caffe::tools
