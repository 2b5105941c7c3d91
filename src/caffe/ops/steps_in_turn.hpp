// Kernels of recurrent layers that run ordinary ops once for each step in time. They are what the
// ops of recurrence.hpp mean, and serve every type on every device.
#pragma once

#include "caffe/ops/kernel.hpp"
#include "caffe/ops/recurrence.hpp"

namespace caffe::ops {

CAFFE_EXPORT KernelOrRefusal MakeLstmInTurn(const LstmSteps& op, const KernelRequest& request);
CAFFE_EXPORT KernelOrRefusal MakeLstmGradInTurn(const LstmStepsGrad& op,
                                                const KernelRequest& request);
CAFFE_EXPORT KernelOrRefusal MakeGruInTurn(const GruSteps& op, const KernelRequest& request);
CAFFE_EXPORT KernelOrRefusal MakeGruGradInTurn(const GruStepsGrad& op,
                                               const KernelRequest& request);
CAFFE_EXPORT KernelOrRefusal MakeGruResetAfterInTurn(const GruResetAfterSteps& op,
                                                     const KernelRequest& request);
CAFFE_EXPORT KernelOrRefusal MakeGruResetAfterGradInTurn(const GruResetAfterStepsGrad& op,
                                                         const KernelRequest& request);
CAFFE_EXPORT KernelOrRefusal MakeRnnInTurn(const RnnSteps& op, const KernelRequest& request);
CAFFE_EXPORT KernelOrRefusal MakeRnnGradInTurn(const RnnStepsGrad& op,
                                               const KernelRequest& request);

}  // namespace caffe::ops
