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
  // Takes effect for nets built from now on; a build without a GPU device refuses then.
  static void set_mode(Brew mode);
  static int device();
  static void SetDevice(int id);
  // Nets built from now on draw the same random numbers each time.
  static void set_random_seed(uint64_t seed);
  // The seed for the next net: the one set, or one from the operating system.
  static uint64_t NextSeed();
};

// From now on nets may have layers of type "Python" in a program that is not Python itself: the
// program then runs code that the net's file names. A Python program always may.
CAFFE_EXPORT void AllowPythonLayers();
CAFFE_EXPORT bool PythonLayersAreAllowed();

// For a program that leaves glog to the library; call it once, before nets are built. The log goes
// to standard error, in lines like those of `caffe`, whatever glog's flags were. GLOG_minloglevel
// drops lines. Does nothing where glog is initialised already.
CAFFE_EXPORT void InitLog();

// Of the project, as in CMakeLists.txt: "1.2.3".
CAFFE_EXPORT const char* Version();
// The processor, its threads and instruction set.
CAFFE_EXPORT std::string DescribeCpu();
// A GPU's chip. Throws DeviceError where there is none with that number or no driver, Unsupported
// in a build without GPUs.
CAFFE_EXPORT std::string DescribeGpu(int id);
CAFFE_EXPORT int NumGpus();

}  // namespace caffe
