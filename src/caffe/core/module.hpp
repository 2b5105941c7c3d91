// Modules: parts of the library that are loaded on first use, because their dependencies are large
// and seldom needed.
#pragma once

#include <string>

namespace caffe {

// Returns the path of a file in the folder of libcaffe.
std::string BesideLibrary(const std::string& file);

// Returns the address of `symbol` in the module lib<name>.so, which is in the folder of libcaffe.
// Throws Unsupported if the module was not built or its libraries are missing. The message says why
// and what `need` needs ("images other than JPEG need OpenCV's imgcodecs library").
void* LoadModule(const std::string& name, const char* symbol, const std::string& need);

}  // namespace caffe
