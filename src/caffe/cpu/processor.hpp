// What the processor that runs this can do.
#pragma once

#include <string>

namespace caffe::cpu {

// "AVX-512 with BF16": the widest that kernels are compiled for.
const char* InstructionSet();
// Whether it multiplies numbers of type bfloat16 by itself.
bool MultipliesBFloat16();

// What kernels are built on adds its name and version to the device's description.
struct DescriptionPart {
  explicit DescriptionPart(std::string (*part)());
};
std::string DescriptionParts();

}  // namespace caffe::cpu
