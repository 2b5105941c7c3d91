// Modules: parts of the library that are loaded when first used, because what they link with is
// large and seldom needed.
#pragma once

#include <string>

namespace caffe {

// The path of a file that lies beside libcaffe.
std::string BesideLibrary(const std::string& file);

// The address of `symbol` in the module lib<name>.so, which lies beside libcaffe. Throws
// Unsupported, which says what `need` needs ("images other than JPEG need OpenCV's imgcodecs
// library") and why it could not be had: the module was not built, or its libraries are not there.
void* LoadModule(const std::string& name, const char* symbol, const std::string& need);

}  // namespace caffe
