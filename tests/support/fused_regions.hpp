// The regions that kernels serve, as the rows of the table of fusions make them.
#pragma once

#include <algorithm>
#include <optional>

#include "caffe/ops/broadcast.hpp"
#include "caffe/ops/conv.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/ops/fused.hpp"
#include "caffe/ops/kernel.hpp"
#include "caffe/ops/norm.hpp"
#include "caffe/ops/pointwise.hpp"

namespace caffe::testing {

using ops::Fused;

// The first candidate for an op.
inline const KernelCandidate& FirstFor(DeviceKind device, const Op& op) {
  const auto& candidates = KernelRegistry::Get().Candidates(device, op.type());
  return *std::ranges::find_if(candidates,
                               [&](const KernelCandidate& one) { return one.IsFor(op); });
}

// (x, w, bias, w', bias') -> (y)
inline Fused PairOf(const ops::Conv& first, const ops::Conv& second, const Shape& between) {
  return {{{first, {Fused::Input(0), Fused::Input(1), Fused::Input(2)}, {Fused::Inner(0)}},
           {second, {Fused::Inner(0), Fused::Input(3), Fused::Input(4)}, {Fused::Output(0)}}},
          {{between}}};
}

// (x, w, bias, whole) -> (y)
inline Fused IntoOf(const ops::Conv& conv, int64_t offset, const Shape& part) {
  return {{{conv, {Fused::Input(0), Fused::Input(1), Fused::Input(2)}, {Fused::Inner(0)}},
           {ops::InsertChannels{offset, part[1]},
            {Fused::Inner(0), Fused::Input(3)},
            {Fused::Output(0)}}},
          {{part}}};
}

// (x, gamma, beta, whole) -> (y, mean, variance)
inline Fused NormInto(const ops::BatchNorm& norm, int64_t offset, const Shape& part) {
  return {{{norm,
            {Fused::Input(0), Fused::Input(1), Fused::Input(2)},
            {Fused::Inner(0), Fused::Output(1), Fused::Output(2)}},
           {ops::InsertChannels{offset, part[1]},
            {Fused::Inner(0), Fused::Input(3)},
            {Fused::Output(0)}}},
          {{part}}};
}

// (x, mean, variance, factor, gamma, beta, whole) -> (y)
inline Fused NormInto(const ops::BatchNormInference& norm, int64_t offset, const Shape& part) {
  return {{{norm,
            {Fused::Input(0), Fused::Input(1), Fused::Input(2), Fused::Input(3), Fused::Input(4),
             Fused::Input(5)},
            {Fused::Inner(0)}},
           {ops::InsertChannels{offset, part[1]},
            {Fused::Inner(0), Fused::Input(6)},
            {Fused::Output(0)}}},
          {{part}}};
}

// (dwhole, x, mean, variance, gamma[, y]) -> (dx, dgamma, dbeta)
inline Fused NormGradOfPart(const ops::BatchNormGrad& grad, int64_t offset, const Shape& part,
                            bool has_y) {
  Fused region{
      {{ops::SliceOf{.offset = offset}, {Fused::Input(0)}, {Fused::Inner(0)}},
       {grad,
        {Fused::Input(1), Fused::Input(2), Fused::Input(3), Fused::Inner(0), Fused::Input(4)},
        {Fused::Output(0), Fused::Output(1), Fused::Output(2)}}},
      {{part}}};
  if (has_y) region.members.back().inputs.push_back(Fused::Input(5));
  return region;
}

// (x, w) -> (y, mean, variance[, running mean, running variance, running factor])
inline Fused StatisticsOf(const ops::Conv& conv,
                          const std::optional<ops::UpdateRunningStatistics>& running = {}) {
  Fused region{
      {{conv, {Fused::Input(0), Fused::Input(1)}, {Fused::Output(0)}},
       {ops::ChannelStatistics{}, {Fused::Output(0)}, {Fused::Output(1), Fused::Output(2)}}}};
  if (running) {
    region.members.push_back({*running,
                              {Fused::Output(1), Fused::Output(2)},
                              {Fused::Output(3), Fused::Output(4), Fused::Output(5)}});
  }
  return region;
}

// (s, dy) -> (dx, sum)
inline Fused ReluGradSum(float slope = 0) {
  return {{{ops::ReluGrad(slope), {Fused::Input(0), Fused::Input(1)}, {Fused::Output(0)}},
           {ops::SumToAxes{{1, 1}}, {Fused::Output(0)}, {Fused::Output(1)}}}};
}

// (x, mean, variance, dy, gamma, beta) -> (dx, dgamma, dbeta)
inline Fused BatchNormReluGrad(double eps, const Shape& image) {
  const ops::Pointwise relu{ops::Pointwise::Kind::kRelu};
  return {{{ops::BatchNormInference{eps, {relu}},
            {Fused::Input(0), Fused::Input(1), Fused::Input(2), Fused::Place(), Fused::Input(4),
             Fused::Input(5)},
            {Fused::Inner(0)}},
           {ops::BatchNormGrad{eps},
            {Fused::Input(0), Fused::Input(1), Fused::Input(2), Fused::Input(3), Fused::Input(4),
             Fused::Inner(0)},
            {Fused::Output(0), Fused::Output(1), Fused::Output(2)}}},
          {{image}}};
}

// (x, mean, variance, dwhole, gamma, beta) -> (dx, dgamma, dbeta)
inline Fused BatchNormReluGradOfPart(double eps, int64_t offset, const Shape& part) {
  Fused region = BatchNormReluGrad(eps, part);
  region.inner.push_back({part});
  region.members.back().inputs[ops::BatchNormGrad::kDy] = Fused::Inner(1);
  region.members.insert(region.members.begin(),
                        {ops::SliceOf{.offset = offset}, {Fused::Input(3)}, {Fused::Inner(1)}});
  return region;
}

}  // namespace caffe::testing
