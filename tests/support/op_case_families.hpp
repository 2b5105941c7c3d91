// The families of cases that make up OpCases(), one file each.
#pragma once

#include "caffe/ops/pointwise.hpp"
#include "tests/support/op_case.hpp"

namespace caffe::testing {

// An entry of an epilogue.
inline ops::Pointwise Relu(float slope = 0) {
  return {ops::Pointwise::Kind::kRelu, slope};
}

void AddActivationCases(std::vector<OpCase>* cases);
void AddArrangeCases(std::vector<OpCase>* cases);
void AddAttentionCases(std::vector<OpCase>* cases);
void AddBoxLossCases(std::vector<OpCase>* cases);
void AddConvCases(std::vector<OpCase>* cases);
void AddConvPairCases(std::vector<OpCase>* cases);
void AddFormulaCases(std::vector<OpCase>* cases);
void AddGemmCases(std::vector<OpCase>* cases);
void AddImageCases(std::vector<OpCase>* cases);
void AddLabelLossCases(std::vector<OpCase>* cases);
void AddLongCases(std::vector<OpCase>* cases);
void AddLossCases(std::vector<OpCase>* cases);
void AddMoveCases(std::vector<OpCase>* cases);
void AddNormCases(std::vector<OpCase>* cases);
void AddPointwiseCases(std::vector<OpCase>* cases);
void AddPoolCases(std::vector<OpCase>* cases);
void AddReduceCases(std::vector<OpCase>* cases);
void AddRecurrenceCases(std::vector<OpCase>* cases);
void AddRegionCases(std::vector<OpCase>* cases);
void AddSamplingCases(std::vector<OpCase>* cases);
void AddSoftLabelCases(std::vector<OpCase>* cases);
void AddTermLossCases(std::vector<OpCase>* cases);
void AddUpdateCases(std::vector<OpCase>* cases);
void AddYoloLossCases(std::vector<OpCase>* cases);

}  // namespace caffe::testing
