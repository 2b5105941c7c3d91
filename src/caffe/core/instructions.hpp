// Instructions that the processor of this process has.
#pragma once

#include <string>

namespace caffe {

// Instructions that kernels are compiled for, or that oneDNN uses.
struct Instructions {
  bool avx2 = false;
  bool avx512 = false;
  bool bfloat16 = false;       // AVX512-BF16
  bool half = false;           // AVX512-FP16
  bool tiles = false;          // AMX
  bool may_use_tiles = false;  // the system saves tiles at a switch between threads
};
Instructions InstructionsOfThisProcessor();

// "AVX-512 with BF16 and FP16, AMX".
std::string NameOf(const Instructions& instructions);

}  // namespace caffe
