// Process-wide settings of the user, as in Caffe. Nothing below the net reads them: a net copies
// what it needs when it is built.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace caffe {

class Caffe {
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

// Of the project, as in CMakeLists.txt: "1.2.3".
const char* Version();
// The processor, its threads and instruction set.
std::string DescribeCpu();
// A GPU's chip. Throws DeviceError where there is none with that number or no driver, Unsupported
// in a build without GPUs.
std::string DescribeGpu(int id);
int NumGpus();

}  // namespace caffe
