// All steps of RNN, as those of LSTM.
#include <algorithm>
#include <cstring>

#include "caffe/cpu/kernels/step_rows.hpp"
#include "caffe/cpu/kernels/vector_math.hpp"

namespace caffe::cpu {
namespace rnn_steps {

template <typename T, typename X>
class Forward {
 public:
  using A = Accum<T>;
  using Op = ops::RnnSteps;

  explicit Forward(const Op& op)
      : op_(op),
        product_{op.width, op.width},
        packed_(memory_.Add<X>(product_.packed())),
        hidden_(memory_.Add<X>(op.items * op.width)),
        sums_(memory_.Add<A>(op.items * product_.row())) {}

  size_t workspace_bytes() const { return memory_.bytes(); }

  void Run(const KernelContext& ctx) const {
    X* packed = WorkspaceAt<X>(ctx, packed_);
    product_.Clear(packed);
    product_.PackByThreads(ctx.input(Op::kWeights).as<const T>(), op_.width, op_.width, 1,
                           op_.width, 0, 0, packed);
    ParallelFor(op_.items, 1, [&](int64_t begin, int64_t end) { RunItems(ctx, begin, end); });
  }

 private:
  void RunItems(const KernelContext& ctx, int64_t begin, int64_t end) const {
    const int64_t width = op_.width;
    const StepRows<T, X> rows(op_, ctx, Op::kCont, Op::kH0);
    X* hidden = WorkspaceAt<X>(ctx, hidden_);
    A* sums = WorkspaceAt<A>(ctx, sums_);
    for (int64_t i = 0; i < op_.steps; ++i) {
      for (int64_t n = begin; n < end; ++n)
        rows.Hidden(ctx.output(Op::kH).as<T>(), i, n, hidden + n * width, nullptr);
      product_.Multiply(hidden + begin * width, end - begin, WorkspaceAt<X>(ctx, packed_),
                        sums + begin * product_.row());
      for (int64_t n = begin; n < end; ++n) {
        A* sum = sums + n * product_.row();
        AddRow(rows.template In<T>(Op::kProducts, i, n, width), width, sum);
        Tanh(sum, width, A(1), sum);
        ConvertRow(sum, width, rows.template Out<T>(Op::kH, i, n, width));
      }
    }
    for (int64_t n = begin; n < end; ++n) {
      StoreState<A>(ctx, Op::kHLast, n, width,
                    rows.template Out<T>(Op::kH, op_.steps - 1, n, width));
    }
  }

  const Op op_;
  const RowProduct<X> product_;
  WorkspaceLayout memory_;
  const size_t packed_, hidden_, sums_;
};

// dsum = dh (1 - h^2)
template <typename T, typename A>
CAFFE_CPU_CLONES void TanhBack(const T* h, const A* dh, int64_t count, A* dsum) {
  for (int64_t d = 0; d < count; ++d) {
    const A y = static_cast<A>(h[d]);
    dsum[d] = dh[d] * (A(1) - y * y);
  }
}

template <typename T, typename X>
class Backward {
 public:
  using A = Accum<T>;
  using Op = ops::RnnStepsGrad;

  explicit Backward(const Op& op)
      : op_(op),
        product_{op.width, op.width},
        packed_(memory_.Add<X>(product_.packed())),
        hidden_(memory_.Add<X>(op.items * op.width)),
        factors_(memory_.Add<X>(op.items * op.width)),
        dh_(memory_.Add<A>(op.items * product_.row())) {}

  size_t workspace_bytes() const { return memory_.bytes(); }

  void Run(const KernelContext& ctx) const {
    X* packed = WorkspaceAt<X>(ctx, packed_);
    product_.Clear(packed);
    product_.PackByThreads(ctx.input(Op::kWeights).as<const T>(), op_.width, op_.width, op_.width,
                           1, 0, 0, packed);
    ParallelFor(op_.items, 1, [&](int64_t begin, int64_t end) { RunItems(ctx, begin, end); });
  }

 private:
  void RunItems(const KernelContext& ctx, int64_t begin, int64_t end) const {
    const int64_t width = op_.width;
    const StepRows<T, X> rows(op_, ctx, Op::kCont, Op::kH0);
    X *hidden = WorkspaceAt<X>(ctx, hidden_), *factors = WorkspaceAt<X>(ctx, factors_);
    A* all_dh = WorkspaceAt<A>(ctx, dh_);
    for (int64_t n = begin; n < end; ++n)
      LoadState(ctx, Op::kDhLast, n, width, all_dh + n * product_.row());
    for (int64_t i = op_.steps; i-- > 0;) {
      for (int64_t n = begin; n < end; ++n) {
        rows.Hidden(ctx.input(Op::kH).as<const T>(), i, n, hidden + n * width,
                    rows.template Out<T>(Op::kHidden, i, n, width));
        A* dh = all_dh + n * product_.row();
        if (const T* dy = rows.template In<T>(Op::kDh, i, n, width)) AddRow(dy, width, dh);
        TanhBack(rows.template In<T>(Op::kH, i, n, width), dh, width, dh);
        ScaleRow(dh, width, A(1), factors + n * width,
                 rows.template Out<T>(Op::kDProducts, i, n, width));
      }
      product_.Multiply(factors + begin * width, end - begin, WorkspaceAt<X>(ctx, packed_),
                        all_dh + begin * product_.row());
      for (int64_t n = begin; n < end; ++n)
        ScaleBy(rows.Cont(i, n), width, all_dh + n * product_.row());
    }
    for (int64_t n = begin; n < end; ++n)
      StoreState<T>(ctx, Op::kDh0, n, width, all_dh + n * product_.row());
  }

  const Op op_;
  const RowProduct<X> product_;
  WorkspaceLayout memory_;
  const size_t packed_, hidden_, factors_, dh_;
};

static KernelOrRefusal MakeForward(const ops::RnnSteps& op, const KernelRequest& request) {
  return MakeSteps<Forward>(op, request, {ops::RnnSteps::kHLast});
}
static KernelOrRefusal MakeBackward(const ops::RnnStepsGrad& op, const KernelRequest& request) {
  return MakeSteps<Backward>(op, request, {});
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::RnnSteps, "rnn-rows", KernelRank::kBest,
                              MakeForward);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::RnnStepsGrad, "rnn-grad-rows",
                              KernelRank::kBest, MakeBackward);

}  // namespace rnn_steps
}  // namespace caffe::cpu
