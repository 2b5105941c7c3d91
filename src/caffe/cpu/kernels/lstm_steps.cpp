// All steps of LSTM: a thread runs them for its items, so threads wait for each other only once.
#include <algorithm>
#include <cstring>

#include "caffe/cpu/kernels/lstm_cell.hpp"
#include "caffe/cpu/kernels/step_rows.hpp"

namespace caffe::cpu {
namespace lstm_steps {

template <typename T, typename X>
class Forward {
 public:
  using A = Accum<T>;
  using Op = ops::LstmSteps;

  explicit Forward(const Op& op)
      : op_(op),
        product_{4 * op.width, op.h_width()},
        projection_{op.projection, op.width},
        packed_(memory_.Add<X>(product_.packed())),
        packed_projection_(memory_.Add<X>(projection_.packed())),
        hidden_(memory_.Add<X>(op.items * op.h_width())),
        sums_(memory_.Add<A>(op.items * product_.row())),
        c_(memory_.Add<A>(op.items * op.width)),
        units_(memory_.Add<A>(op.items * op.width)),
        factors_(memory_.Add<X>(projects() ? op.items * op.width : 0)),
        projected_(memory_.Add<A>(op.items * projection_.row())) {}

  size_t workspace_bytes() const { return memory_.bytes(); }

  void Run(const KernelContext& ctx) const {
    X* packed = WorkspaceAt<X>(ctx, packed_);
    product_.Clear(packed);
    product_.PackByThreads(ctx.input(Op::kWeights).as<const T>(), op_.h_width(), 4 * op_.width, 1,
                           op_.h_width(), 0, 0, packed);
    if (projects()) {
      X* packed_projection = WorkspaceAt<X>(ctx, packed_projection_);
      projection_.Clear(packed_projection);
      projection_.PackByThreads(ctx.input(Op::kProjection).as<const T>(), op_.width, op_.projection,
                                1, op_.width, 0, 0, packed_projection);
    }
    ParallelFor(op_.items, 1, [&](int64_t begin, int64_t end) { RunItems(ctx, begin, end); });
  }

 private:
  bool projects() const { return op_.projection > 0; }

  void RunItems(const KernelContext& ctx, int64_t begin, int64_t end) const {
    const int64_t width = op_.width, h_width = op_.h_width();
    const StepRows<T, X> rows(op_, ctx, Op::kCont, Op::kH0);
    X* hidden = WorkspaceAt<X>(ctx, hidden_);
    A *sums = WorkspaceAt<A>(ctx, sums_), *c = WorkspaceAt<A>(ctx, c_),
      *units = WorkspaceAt<A>(ctx, units_);
    for (int64_t n = begin; n < end; ++n) LoadState(ctx, Op::kC0, n, width, c + n * width);
    for (int64_t i = 0; i < op_.steps; ++i) {
      for (int64_t n = begin; n < end; ++n)
        rows.Hidden(ctx.output(Op::kH).as<T>(), i, n, hidden + n * h_width, nullptr);
      product_.Multiply(hidden + begin * h_width, end - begin, WorkspaceAt<X>(ctx, packed_),
                        sums + begin * product_.row());
      for (int64_t n = begin; n < end; ++n) {
        A* gates = sums + n * product_.row();
        A* saved = rows.template Out<A>(Op::kGates, i, n, 4 * width);
        if (saved == nullptr) saved = gates;
        SumOfRows(rows.template In<T>(Op::kProducts, i, n, 4 * width), gates, 4 * width, saved);
        LstmCell(saved, width, rows.Cont(i, n), c + n * width, c + n * width, units + n * width);
        if (A* saved = rows.template Out<A>(Op::kC, i, n, width))
          ConvertRow(c + n * width, width, saved);
        if (!projects())
          ConvertRow(units + n * width, width, rows.template Out<T>(Op::kH, i, n, width));
      }
      if (projects()) Project(ctx, rows, i, begin, end);
    }
    for (int64_t n = begin; n < end; ++n) {
      StoreState<A>(ctx, Op::kHLast, n, h_width,
                    rows.template Out<T>(Op::kH, op_.steps - 1, n, h_width));
      StoreState<A>(ctx, Op::kCLast, n, width, c + n * width);
    }
  }

  // h of a step from its units.
  void Project(const KernelContext& ctx, const StepRows<T, X>& rows, int64_t i, int64_t begin,
               int64_t end) const {
    const int64_t width = op_.width;
    const A* units = WorkspaceAt<A>(ctx, units_);
    X* factors = WorkspaceAt<X>(ctx, factors_);
    A* projected = WorkspaceAt<A>(ctx, projected_);
    for (int64_t n = begin; n < end; ++n) {
      ScaleRow(units + n * width, width, A(1), factors + n * width,
               rows.template Out<T>(Op::kUnits, i, n, width));
    }
    projection_.Multiply(factors + begin * width, end - begin,
                         WorkspaceAt<X>(ctx, packed_projection_),
                         projected + begin * projection_.row());
    for (int64_t n = begin; n < end; ++n) {
      ConvertRow(projected + n * projection_.row(), op_.projection,
                 rows.template Out<T>(Op::kH, i, n, op_.projection));
    }
  }

  const Op op_;
  const RowProduct<X> product_, projection_;
  WorkspaceLayout memory_;
  const size_t packed_, packed_projection_, hidden_, sums_, c_, units_, factors_, projected_;
};

template <typename T, typename X>
class Backward {
 public:
  using A = Accum<T>;
  using Op = ops::LstmStepsGrad;

  explicit Backward(const Op& op)
      : op_(op),
        product_{op.h_width(), 4 * op.width},
        projection_{op.projection > 0 ? op.width : 0, op.projection},
        packed_(memory_.Add<X>(product_.packed())),
        packed_projection_(memory_.Add<X>(projection_.packed())),
        hidden_(memory_.Add<X>(op.items * op.h_width())),
        dgates_(memory_.Add<A>(op.items * 4 * op.width)),
        factors_(memory_.Add<X>(op.items * 4 * op.width)),
        dprojected_(memory_.Add<X>(op.items * op.projection)),
        dh_(memory_.Add<A>(op.items * product_.row())),
        dunits_(memory_.Add<A>(op.items * projection_.row())),
        dc_(memory_.Add<A>(op.items * op.width)),
        zeros_(memory_.Add<A>(op.width)) {}

  size_t workspace_bytes() const { return memory_.bytes(); }

  void Run(const KernelContext& ctx) const {
    X* packed = WorkspaceAt<X>(ctx, packed_);
    product_.Clear(packed);
    product_.PackByThreads(ctx.input(Op::kWeights).as<const T>(), 4 * op_.width, op_.h_width(),
                           op_.h_width(), 1, 0, 0, packed);
    if (projects()) {
      X* packed_projection = WorkspaceAt<X>(ctx, packed_projection_);
      projection_.Clear(packed_projection);
      projection_.PackByThreads(ctx.input(Op::kProjection).as<const T>(), op_.projection, op_.width,
                                op_.width, 1, 0, 0, packed_projection);
    }
    std::fill_n(WorkspaceAt<A>(ctx, zeros_), op_.width, A(0));
    ParallelFor(op_.items, 1, [&](int64_t begin, int64_t end) { RunItems(ctx, begin, end); });
  }

 private:
  bool projects() const { return op_.projection > 0; }

  void RunItems(const KernelContext& ctx, int64_t begin, int64_t end) const {
    const int64_t width = op_.width, h_width = op_.h_width();
    const StepRows<T, X> rows(op_, ctx, Op::kCont, Op::kH0);
    X* factors = WorkspaceAt<X>(ctx, factors_);
    A *dh = WorkspaceAt<A>(ctx, dh_), *dc = WorkspaceAt<A>(ctx, dc_);
    const A* dunits = projects() ? WorkspaceAt<A>(ctx, dunits_) : dh;
    const int64_t dunits_step = projects() ? projection_.row() : product_.row();
    for (int64_t n = begin; n < end; ++n) {
      LoadState(ctx, Op::kDhLast, n, h_width, dh + n * product_.row());
      LoadState(ctx, Op::kDcLast, n, width, dc + n * width);
    }
    for (int64_t i = op_.steps; i-- > 0;) {
      for (int64_t n = begin; n < end; ++n) {
        rows.Hidden(ctx.input(Op::kH).as<const T>(), i, n,
                    WorkspaceAt<X>(ctx, hidden_) + n * h_width,
                    rows.template Out<T>(Op::kHidden, i, n, h_width));
        if (const T* dy = rows.template In<T>(Op::kDh, i, n, h_width))
          AddRow(dy, h_width, dh + n * product_.row());
      }
      if (projects()) ProjectBack(ctx, rows, i, begin, end);
      for (int64_t n = begin; n < end; ++n) StepBack(ctx, rows, i, n, dunits + n * dunits_step);
      product_.Multiply(factors + begin * 4 * width, end - begin, WorkspaceAt<X>(ctx, packed_),
                        dh + begin * product_.row());
      for (int64_t n = begin; n < end; ++n)
        ScaleBy(rows.Cont(i, n), h_width, dh + n * product_.row());
    }
    for (int64_t n = begin; n < end; ++n) {
      StoreState<T>(ctx, Op::kDh0, n, h_width, dh + n * product_.row());
      StoreState<T>(ctx, Op::kDc0, n, width, dc + n * width);
    }
  }

  // The gradients of a step's units from those of its h.
  void ProjectBack(const KernelContext& ctx, const StepRows<T, X>& rows, int64_t i, int64_t begin,
                   int64_t end) const {
    const int64_t columns = op_.projection;
    const A* dh = WorkspaceAt<A>(ctx, dh_);
    X* dprojected = WorkspaceAt<X>(ctx, dprojected_);
    for (int64_t n = begin; n < end; ++n) {
      ScaleRow(dh + n * product_.row(), columns, A(1), dprojected + n * columns,
               rows.template Out<T>(Op::kDProjected, i, n, columns));
    }
    projection_.Multiply(dprojected + begin * columns, end - begin,
                         WorkspaceAt<X>(ctx, packed_projection_),
                         WorkspaceAt<A>(ctx, dunits_) + begin * projection_.row());
  }

  // The gradients of the gates' inputs, and dc of the step before.
  void StepBack(const KernelContext& ctx, const StepRows<T, X>& rows, int64_t i, int64_t n,
                const A* dunits) const {
    const int64_t width = op_.width, gates = 4 * width;
    const A* c_prev = i > 0                    ? rows.template In<A>(Op::kC, i - 1, n, width)
                      : ctx.has_input(Op::kC0) ? ctx.input(Op::kC0).as<const A>() + n * width
                                               : WorkspaceAt<A>(ctx, zeros_);
    A *dc = WorkspaceAt<A>(ctx, dc_) + n * width,
      *dgates = WorkspaceAt<A>(ctx, dgates_) + n * gates;
    LstmCellGrad(rows.template In<A>(Op::kGates, i, n, gates), width, rows.Cont(i, n), c_prev,
                 rows.template In<A>(Op::kC, i, n, width), dc, dunits, dc, dgates);
    const auto most = static_cast<A>(op_.clipping_threshold);
    if (most != 0) {
      for (int64_t k = 0; k < gates; ++k) dgates[k] = std::min(std::max(dgates[k], -most), most);
    }
    ScaleRow(dgates, gates, A(1), WorkspaceAt<X>(ctx, factors_) + n * gates,
             rows.template Out<T>(Op::kDGates, i, n, gates));
  }

  const Op op_;
  const RowProduct<X> product_, projection_;
  WorkspaceLayout memory_;
  const size_t packed_, packed_projection_, hidden_, dgates_, factors_, dprojected_, dh_, dunits_,
      dc_, zeros_;
};

static KernelOrRefusal MakeForward(const ops::LstmSteps& op, const KernelRequest& request) {
  using Op = ops::LstmSteps;
  return MakeSteps<Forward>(op, request, {Op::kGates, Op::kC, Op::kHLast, Op::kCLast});
}
static KernelOrRefusal MakeBackward(const ops::LstmStepsGrad& op, const KernelRequest& request) {
  return MakeSteps<Backward>(op, request, {});
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::LstmSteps, "lstm-rows", KernelRank::kBest,
                              MakeForward);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::LstmStepsGrad, "lstm-grad-rows",
                              KernelRank::kBest, MakeBackward);

}  // namespace lstm_steps
}  // namespace caffe::cpu
