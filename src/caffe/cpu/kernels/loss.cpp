#include "caffe/ops/loss.hpp"

#include <cfloat>
#include <cmath>
#include <vector>

#include "caffe/cpu/kernels/labels.hpp"
#include "caffe/cpu/kernels/wide.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

void Softmax(const ops::Softmax& op, const KernelContext& ctx) {
  const ClassView view(ctx.output(0).shape, op.axis);
  VisitWide(ctx.output(0).dtype, [&]<typename T>(TypeTag<T>) {
    const T* x = ctx.input(0).as<const T>();
    T* y = ctx.output(0).as<T>();
    ParallelFor(
        view.outer * view.inner, std::max<int64_t>(1, 4096 / view.classes),
        [&](int64_t begin, int64_t end) {
          for (int64_t p = begin; p < end; ++p) {
            const int64_t offset = p / view.inner * view.classes * view.inner + p % view.inner;
            T largest = x[offset];
            for (int64_t c = 1; c < view.classes; ++c) {
              largest = std::max(largest, x[offset + c * view.inner]);
            }
            T sum = 0;
            for (int64_t c = 0; c < view.classes; ++c) {
              sum += y[offset + c * view.inner] = std::exp(x[offset + c * view.inner] - largest);
            }
            for (int64_t c = 0; c < view.classes; ++c) y[offset + c * view.inner] /= sum;
          }
        });
  });
}

void SoftmaxGrad(const ops::SoftmaxGrad& op, const KernelContext& ctx) {
  const ClassView view(ctx.output(0).shape, op.axis);
  VisitWide(ctx.output(0).dtype, [&]<typename T>(TypeTag<T>) {
    const T* y = ctx.input(0).as<const T>();
    const T* dy = ctx.input(1).as<const T>();
    T* dx = ctx.output(0).as<T>();
    ParallelFor(view.outer * view.inner, std::max<int64_t>(1, 4096 / view.classes),
                [&](int64_t begin, int64_t end) {
                  for (int64_t p = begin; p < end; ++p) {
                    const int64_t offset =
                        p / view.inner * view.classes * view.inner + p % view.inner;
                    T dot = 0;
                    for (int64_t c = 0; c < view.classes; ++c) {
                      dot += y[offset + c * view.inner] * dy[offset + c * view.inner];
                    }
                    for (int64_t c = 0; c < view.classes; ++c) {
                      const int64_t i = offset + c * view.inner;
                      dx[i] = y[i] * (dy[i] - dot);
                    }
                  }
                });
  });
}

void SoftmaxLoss(const ops::SoftmaxLoss& op, const KernelContext& ctx) {
  const ClassView view(ctx.input(0).shape, op.rule.axis);
  VisitWide(ctx.input(0).dtype, [&]<typename T>(TypeTag<T>) {
    const T* p = ctx.input(0).as<const T>();
    double sum = 0;
    int64_t valid = 0;
    for (int64_t o = 0; o < view.outer; ++o) {
      for (int64_t i = 0; i < view.inner; ++i) {
        const int64_t label = LabelAt<T>(ctx.input(1), o * view.inner + i);
        if (IsIgnored(op.rule.ignore_label, label)) continue;
        RequireLabel(label, view.classes, o * view.inner + i);
        sum -= std::log(std::max<double>(p[(o * view.classes + label) * view.inner + i], FLT_MIN));
        ++valid;
      }
    }
    if (!op.rule.ignore_label) valid = view.outer * view.inner;
    *ctx.output(0).as<T>() = static_cast<T>(sum / op.rule.Divisor(view.outer, view.inner, valid));
  });
}

void SoftmaxLossGrad(const ops::SoftmaxLossGrad& op, const KernelContext& ctx) {
  const ClassView view(ctx.output(0).shape, op.rule.axis);
  VisitWide(ctx.output(0).dtype, [&]<typename T>(TypeTag<T>) {
    const T* p = ctx.input(0).as<const T>();
    T* dx = ctx.output(0).as<T>();
    int64_t valid = 0;
    for (int64_t k = 0; k < view.outer * view.inner; ++k) {
      valid += !IsIgnored(op.rule.ignore_label, LabelAt<T>(ctx.input(1), k));
    }
    const T factor = static_cast<T>(*ctx.input(2).as<const T>() /
                                    op.rule.Divisor(view.outer, view.inner, valid));
    const T target = static_cast<T>(op.target());
    const T others = static_cast<T>(op.target_of_others(view.classes, view.inner));
    ParallelFor(view.outer, 1, [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) {
        for (int64_t i = 0; i < view.inner; ++i) {
          const int64_t label = LabelAt<T>(ctx.input(1), o * view.inner + i);
          const bool ignored = IsIgnored(op.rule.ignore_label, label);
          for (int64_t c = 0; c < view.classes; ++c) {
            const int64_t k = (o * view.classes + c) * view.inner + i;
            dx[k] = ignored ? T(0) : (p[k] - (c == label ? target : others)) * factor;
          }
        }
      }
    });
  });
}

void EuclideanLoss(const ops::EuclideanLoss&, const KernelContext& ctx) {
  VisitWide(ctx.input(0).dtype, [&]<typename T>(TypeTag<T>) {
    const T* a = ctx.input(0).as<const T>();
    const T* b = ctx.input(1).as<const T>();
    double sum = 0;
    for (int64_t i = 0; i < ctx.input(0).count(); ++i) {
      const double difference = static_cast<double>(a[i]) - static_cast<double>(b[i]);
      sum += difference * difference;
    }
    const double items = static_cast<double>(ctx.input(0).shape.LegacyExtent(0));
    *ctx.output(0).as<T>() = static_cast<T>(sum / (2 * items));
  });
}

void EuclideanLossGrad(const ops::EuclideanLossGrad& op, const KernelContext& ctx) {
  VisitWide(ctx.output(0).dtype, [&]<typename T>(TypeTag<T>) {
    const T items = static_cast<T>(ctx.input(0).shape.LegacyExtent(0));
    const T factor = static_cast<T>(op.sign) * *ctx.input(2).as<const T>() / items;
    Map<T>([factor](T a, T b) { return factor * (a - b); }, ctx.input(0).as<const T>(),
           ctx.input(1).as<const T>(), ctx.output(0).as<T>(), ctx.output(0).count());
  });
}

void Accuracy(const ops::Accuracy& op, const KernelContext& ctx) {
  const ClassView view(ctx.input(0).shape, op.axis);
  VisitWide(ctx.input(0).dtype, [&]<typename T>(TypeTag<T>) {
    const T* x = ctx.input(0).as<const T>();
    T* per_class = ctx.has_output(1) ? ctx.output(1).as<T>() : nullptr;
    if (per_class != nullptr) std::fill_n(per_class, view.classes, T(0));
    int64_t valid = 0, right = 0;
    // Items of each class are counted on the side only when asked for; num_output is small.
    static thread_local std::vector<int64_t> class_sizes;
    if (per_class != nullptr) class_sizes.assign(view.classes, 0);
    for (int64_t o = 0; o < view.outer; ++o) {
      for (int64_t i = 0; i < view.inner; ++i) {
        const int64_t label = LabelAt<T>(ctx.input(1), o * view.inner + i);
        if (IsIgnored(op.ignore_label, label)) continue;
        RequireLabel(label, view.classes, o * view.inner + i);
        const T score = x[(o * view.classes + label) * view.inner + i];
        int64_t at_least_as_good = -1;  // the label's own class
        for (int64_t c = 0; c < view.classes; ++c) {
          at_least_as_good += x[(o * view.classes + c) * view.inner + i] >= score;
        }
        const bool is_right = at_least_as_good < op.top_k;
        right += is_right;
        ++valid;
        if (per_class == nullptr) continue;
        per_class[label] += is_right;
        ++class_sizes[label];
      }
    }
    if (ctx.has_output(0)) {
      *ctx.output(0).as<T>() = valid == 0 ? T(0) : static_cast<T>(right) / static_cast<T>(valid);
    }
    for (int64_t c = 0; per_class != nullptr && c < view.classes; ++c) {
      per_class[c] = class_sizes[c] == 0 ? T(0) : per_class[c] / static_cast<T>(class_sizes[c]);
    }
  });
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::Softmax, Softmax);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::SoftmaxGrad, SoftmaxGrad);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::SoftmaxLoss, SoftmaxLoss);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::SoftmaxLossGrad, SoftmaxLossGrad);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::EuclideanLoss, EuclideanLoss);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::EuclideanLossGrad, EuclideanLossGrad);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::Accuracy, Accuracy);

}  // namespace
}  // namespace caffe::cpu
