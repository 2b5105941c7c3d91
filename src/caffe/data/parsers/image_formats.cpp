#include "caffe/data/parsers/image_formats.hpp"

#include <dlfcn.h>

#include <filesystem>

#include "caffe/error.hpp"

namespace caffe::data {
namespace {

// The module lies beside libcaffe, wherever that was installed.
std::string ModulePath() {
  Dl_info library;
  const bool is_known = dladdr(reinterpret_cast<const void*>(&ImageFormats::Get), &library) != 0;
  CAFFE_ASSERT(is_known);
  return std::filesystem::path(library.dli_fname).replace_filename("libcaffe_image_formats.so");
}

const ImageFormats& Load() {
  void* module = dlopen(ModulePath().c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr) {
    throw Unsupported(StrCat("images other than JPEG need OpenCV's imgcodecs library, which this ",
                             "system lacks (", dlerror(), "); install it, or convert to JPEG"));
  }
  const auto create =
      reinterpret_cast<const ImageFormats* (*)()>(dlsym(module, "caffe_image_formats"));
  CAFFE_ASSERT(create != nullptr, ModulePath(), " is not the module that this library expects");
  return *create();
}

}  // namespace

const ImageFormats& ImageFormats::Get() {
  static const ImageFormats& formats = Load();
  return formats;
}

}  // namespace caffe::data
