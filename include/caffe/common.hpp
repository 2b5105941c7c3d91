// Process-wide settings of the user, as in Caffe. Nothing below the net reads them: a net copies
// what it needs when it is built.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "caffe/export.hpp"

namespace caffe {

class CAFFE_EXPORT Caffe {
 public:
  enum Brew { CPU, GPU };

  static Brew mode();
  // Applies to nets built from now on; throws in a build without a GPU device.
  static void set_mode(Brew mode);
  static int device();
  static void SetDevice(int id);
  // Nets built from now on draw the same random numbers each time.
  static void set_random_seed(uint64_t seed);
  // The seed for the next net: the configured seed, or one from the operating system.
  static uint64_t NextSeed();
};

// Allows layers of type "Python" in nets of a program that is not Python itself: the program then
// runs code that the net's file names. A Python program always allows them.
CAFFE_EXPORT void AllowPythonLayers();
CAFFE_EXPORT bool PythonLayersAreAllowed();

// For a program that leaves glog to the library; call it once, before nets are built. The log goes
// to standard error, in lines like those of `caffe`, whatever glog's flags were. GLOG_minloglevel
// drops lines. Does nothing if glog is initialised already.
CAFFE_EXPORT void InitLog();

// The project's version, as in CMakeLists.txt: "1.2.3".
CAFFE_EXPORT const char* Version();
// Describes the processor, its threads and its instruction set.
CAFFE_EXPORT std::string DescribeCpu();
// Describes the chip of GPU `id`. Throws DeviceError if there is no such GPU or no driver, and
// Unsupported in a build without GPUs.
CAFFE_EXPORT std::string DescribeGpu(int id);
CAFFE_EXPORT int NumGpus();

}  // namespace caffe
