// What the processor that runs this can do.
#pragma once

#include <string>

namespace caffe::cpu {

// "AVX-512 with BF16": the widest that kernels are compiled for.
const char* InstructionSet();
// Whether a register holds 16 floats and there are 32 of them (AVX-512).
bool HasWideVectors();
// Whether it multiplies numbers of type bfloat16 by itself.
bool MultipliesBFloat16();

// What kernels are built on adds its name and version to the device's description.
struct DescriptionPart {
  explicit DescriptionPart(std::string (*part)());
};
std::string DescriptionParts();

}  // namespace caffe::cpu
