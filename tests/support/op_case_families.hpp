// The families of cases that OpCases() is made of, one file each.
#pragma once

#include "tests/support/op_case.hpp"

namespace caffe::testing {

void AddActivationCases(std::vector<OpCase>* cases);
void AddArrangeCases(std::vector<OpCase>* cases);
void AddImageCases(std::vector<OpCase>* cases);
void AddLabelLossCases(std::vector<OpCase>* cases);
void AddLongCases(std::vector<OpCase>* cases);
void AddReduceCases(std::vector<OpCase>* cases);
void AddRegionCases(std::vector<OpCase>* cases);
void AddSamplingCases(std::vector<OpCase>* cases);
void AddTermLossCases(std::vector<OpCase>* cases);
void AddUpdateCases(std::vector<OpCase>* cases);
void AddYoloLossCases(std::vector<OpCase>* cases);

}  // namespace caffe::testing
