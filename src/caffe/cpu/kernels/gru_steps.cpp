// All steps of GRU, as those of LSTM.
#include <algorithm>
#include <cstring>
#include <utility>

#include "caffe/cpu/kernels/step_rows.hpp"
#include "caffe/cpu/kernels/vector_math.hpp"

namespace caffe::cpu {
namespace gru_steps {

// z and r side by side, from their inputs.
template <typename A>
void Sigmoids(int64_t width, A* gates) {
  Sigmoid(gates, 2 * width, gates);
}

// reset = r h', rounded to T, as factors and as a result unless it is null.
template <typename T, typename A, typename X>
CAFFE_CPU_CLONES void ResetRow(const A* r, const X* hidden, int64_t count, X* factors, T* result) {
  for (int64_t d = 0; d < count; ++d) {
    const T reset = T(r[d] * static_cast<A>(hidden[d]));
    factors[d] = X(static_cast<A>(reset));
    if (result != nullptr) result[d] = reset;
  }
}

// h = n + z (h' - n)
template <typename T, typename A, typename X>
CAFFE_CPU_CLONES void UpdateRow(const A* z, const A* n, const X* hidden, int64_t count, T* h) {
  for (int64_t d = 0; d < count; ++d) h[d] = T(n[d] + z[d] * (static_cast<A>(hidden[d]) - n[d]));
}

// fed = products + r fed
template <typename T, typename A>
CAFFE_CPU_CLONES void ResetRowAfter(const A* r, const T* products, int64_t count, A* fed) {
  for (int64_t d = 0; d < count; ++d) fed[d] = static_cast<A>(products[d]) + r[d] * fed[d];
}

// The gradients of r's input and of fed, from that of n's input.
template <typename A>
CAFFE_CPU_CLONES void BackAfter(const A* r, const A* fed, const A* dn, int64_t count, A* dr,
                                A* dfed) {
  for (int64_t d = 0; d < count; ++d) {
    dfed[d] = dn[d] * r[d];
    dr[d] = dfed[d] * fed[d] * (A(1) - r[d]);
  }
}

template <typename T, typename X>
class Forward {
 public:
  using A = Accum<T>;
  using Op = ops::GruSteps;

  explicit Forward(const Op& op)
      : op_(op),
        sigmoids_{2 * op.width, op.width},
        candidate_{op.width, op.width},
        packed_(memory_.Add<X>(sigmoids_.packed())),
        packed_n_(memory_.Add<X>(candidate_.packed())),
        hidden_(memory_.Add<X>(op.items * op.width)),
        reset_(memory_.Add<X>(op.items * op.width)),
        gates_(memory_.Add<A>(op.items * sigmoids_.row())),
        n_(memory_.Add<A>(op.items * candidate_.row())) {}

  size_t workspace_bytes() const { return memory_.bytes(); }

  void Run(const KernelContext& ctx) const {
    const int64_t width = op_.width;
    X *packed = WorkspaceAt<X>(ctx, packed_), *packed_n = WorkspaceAt<X>(ctx, packed_n_);
    sigmoids_.Clear(packed);
    candidate_.Clear(packed_n);
    const auto weights = [&](int i) { return ctx.input(Op::kWeights + i).as<const T>(); };
    for (int i = 0; i < 2; ++i)
      sigmoids_.PackByThreads(weights(i), width, width, 1, width, 0, i * width, packed);
    candidate_.PackByThreads(weights(2), width, width, 1, width, 0, 0, packed_n);
    ParallelFor(op_.items, 1, [&](int64_t begin, int64_t end) { RunItems(ctx, begin, end); });
  }

 private:
  void RunItems(const KernelContext& ctx, int64_t begin, int64_t end) const {
    const int64_t width = op_.width;
    const StepRows<T, X> rows(op_, ctx, Op::kCont, Op::kH0);
    X *hidden = WorkspaceAt<X>(ctx, hidden_), *reset = WorkspaceAt<X>(ctx, reset_);
    A *all_gates = WorkspaceAt<A>(ctx, gates_), *all_n = WorkspaceAt<A>(ctx, n_);
    const auto save = [&](const A* gate, int which, int64_t i, int64_t item) {
      if (A* saved = rows.template Out<A>(Op::kGates + which, i, item, width))
        ConvertRow(gate, width, saved);
    };
    for (int64_t i = 0; i < op_.steps; ++i) {
      for (int64_t n = begin; n < end; ++n)
        rows.Hidden(ctx.output(Op::kH).as<T>(), i, n, hidden + n * width, nullptr);
      sigmoids_.Multiply(hidden + begin * width, end - begin, WorkspaceAt<X>(ctx, packed_),
                         all_gates + begin * sigmoids_.row());
      for (int64_t n = begin; n < end; ++n) {
        A* gates = all_gates + n * sigmoids_.row();
        AddRow(rows.template In<T>(Op::kProducts, i, n, 3 * width), 2 * width, gates);
        Sigmoids(width, gates);
        save(gates, 0, i, n);
        save(gates + width, 1, i, n);
        ResetRow<T>(gates + width, hidden + n * width, width, reset + n * width,
                    static_cast<T*>(nullptr));
      }
      candidate_.Multiply(reset + begin * width, end - begin, WorkspaceAt<X>(ctx, packed_n_),
                          all_n + begin * candidate_.row());
      for (int64_t n = begin; n < end; ++n) {
        A* candidate = all_n + n * candidate_.row();
        AddRow(rows.template In<T>(Op::kProducts, i, n, 3 * width) + 2 * width, width, candidate);
        Tanh(candidate, width, A(1), candidate);
        save(candidate, 2, i, n);
        UpdateRow(all_gates + n * sigmoids_.row(), candidate, hidden + n * width, width,
                  rows.template Out<T>(Op::kH, i, n, width));
      }
    }
    for (int64_t n = begin; n < end; ++n) {
      StoreState<A>(ctx, Op::kHLast, n, width,
                    rows.template Out<T>(Op::kH, op_.steps - 1, n, width));
    }
  }

  const Op op_;
  const RowProduct<X> sigmoids_, candidate_;
  WorkspaceLayout memory_;
  const size_t packed_, packed_n_, hidden_, reset_, gates_, n_;
};

// The rows of one item in a step of the gradient.
template <typename A, typename X>
struct BackRows {
  const A *z, *r, *n;
  const X* hidden;
  A* dh;          // of h, then what reaches h' past the gates
  A* dcandidate;  // of n's input, then of r h'
  A* dsigmoids;   // of the inputs of z and r

  // dh z remains in dh; dz's input and n's.
  CAFFE_CPU_CLONES void Begin(int64_t count) const {
    for (int64_t d = 0; d < count; ++d) {
      const A kept = dh[d] * z[d];
      dcandidate[d] = (dh[d] - kept) * (A(1) - n[d] * n[d]);
      dsigmoids[d] = dh[d] * (static_cast<A>(hidden[d]) - n[d]) * z[d] * (A(1) - z[d]);
      dh[d] = kept;
    }
  }
  // Once dcandidate holds the gradient of r h'.
  CAFFE_CPU_CLONES void Reset(int64_t count) const {
    for (int64_t d = 0; d < count; ++d) {
      dsigmoids[count + d] = dcandidate[d] * static_cast<A>(hidden[d]) * r[d] * (A(1) - r[d]);
      dh[d] += dcandidate[d] * r[d];
    }
  }
};

template <typename T, typename X>
class Backward {
 public:
  using A = Accum<T>;
  using Op = ops::GruStepsGrad;

  explicit Backward(const Op& op)
      : op_(op),
        sigmoids_{op.width, 2 * op.width},
        candidate_{op.width, op.width},
        packed_(memory_.Add<X>(sigmoids_.packed())),
        packed_n_(memory_.Add<X>(candidate_.packed())),
        hidden_(memory_.Add<X>(op.items * op.width)),
        factors_(memory_.Add<X>(op.items * 2 * op.width)),
        factors_n_(memory_.Add<X>(op.items * op.width)),
        dh_(memory_.Add<A>(op.items * op.width)),
        dsigmoids_(memory_.Add<A>(op.items * 2 * op.width)),
        dcandidate_(memory_.Add<A>(op.items * candidate_.row())),
        through_(memory_.Add<A>(op.items * sigmoids_.row())) {}

  size_t workspace_bytes() const { return memory_.bytes(); }

  void Run(const KernelContext& ctx) const {
    const int64_t width = op_.width;
    X *packed = WorkspaceAt<X>(ctx, packed_), *packed_n = WorkspaceAt<X>(ctx, packed_n_);
    sigmoids_.Clear(packed);
    candidate_.Clear(packed_n);
    const auto weights = [&](int i) { return ctx.input(Op::kWeights + i).as<const T>(); };
    for (int i = 0; i < 2; ++i)
      sigmoids_.PackByThreads(weights(i), width, width, width, 1, i * width, 0, packed);
    candidate_.PackByThreads(weights(2), width, width, width, 1, 0, 0, packed_n);
    ParallelFor(op_.items, 1, [&](int64_t begin, int64_t end) { RunItems(ctx, begin, end); });
  }

 private:
  void RunItems(const KernelContext& ctx, int64_t begin, int64_t end) const {
    const int64_t width = op_.width;
    const StepRows<T, X> rows(op_, ctx, Op::kCont, Op::kH0);
    A *dh = WorkspaceAt<A>(ctx, dh_), *through = WorkspaceAt<A>(ctx, through_);
    for (int64_t n = begin; n < end; ++n) LoadState(ctx, Op::kDhLast, n, width, dh + n * width);
    for (int64_t i = op_.steps; i-- > 0;) {
      for (int64_t n = begin; n < end; ++n) BeginStep(ctx, rows, i, n);
      candidate_.Multiply(WorkspaceAt<X>(ctx, factors_n_) + begin * width, end - begin,
                          WorkspaceAt<X>(ctx, packed_n_),
                          WorkspaceAt<A>(ctx, dcandidate_) + begin * candidate_.row());
      for (int64_t n = begin; n < end; ++n) ResetStep(ctx, rows, i, n);
      sigmoids_.Multiply(WorkspaceAt<X>(ctx, factors_) + begin * 2 * width, end - begin,
                         WorkspaceAt<X>(ctx, packed_), through + begin * sigmoids_.row());
      for (int64_t n = begin; n < end; ++n) {
        AddRow(through + n * sigmoids_.row(), width, dh + n * width);
        ScaleBy(rows.Cont(i, n), width, dh + n * width);
      }
    }
    for (int64_t n = begin; n < end; ++n) StoreState<T>(ctx, Op::kDh0, n, width, dh + n * width);
  }

  BackRows<A, X> RowsOf(const KernelContext& ctx, const StepRows<T, X>& rows, int64_t i,
                        int64_t n) const {
    const int64_t width = op_.width;
    const auto gate = [&](int which) {
      return rows.template In<A>(Op::kGates + which, i, n, width);
    };
    return {gate(0),
            gate(1),
            gate(2),
            WorkspaceAt<X>(ctx, hidden_) + n * width,
            WorkspaceAt<A>(ctx, dh_) + n * width,
            WorkspaceAt<A>(ctx, dcandidate_) + n * candidate_.row(),
            WorkspaceAt<A>(ctx, dsigmoids_) + n * 2 * width};
  }

  void BeginStep(const KernelContext& ctx, const StepRows<T, X>& rows, int64_t i, int64_t n) const {
    const int64_t width = op_.width;
    const BackRows<A, X> row = RowsOf(ctx, rows, i, n);
    X* hidden = WorkspaceAt<X>(ctx, hidden_) + n * width;
    rows.Hidden(ctx.input(Op::kH).as<const T>(), i, n, hidden,
                rows.template Out<T>(Op::kHidden, i, n, width));
    if (const T* dy = rows.template In<T>(Op::kDh, i, n, width)) AddRow(dy, width, row.dh);
    row.Begin(width);
    ScaleRow(row.dcandidate, width, A(1), WorkspaceAt<X>(ctx, factors_n_) + n * width,
             rows.template Out<T>(Op::kDGates + 2, i, n, width));
  }

  void ResetStep(const KernelContext& ctx, const StepRows<T, X>& rows, int64_t i, int64_t n) const {
    const int64_t width = op_.width;
    const BackRows<A, X> row = RowsOf(ctx, rows, i, n);
    row.Reset(width);
    X* factors = WorkspaceAt<X>(ctx, factors_) + n * 2 * width;
    for (int which = 0; which < 2; ++which) {
      ScaleRow(row.dsigmoids + which * width, width, A(1), factors + which * width,
               rows.template Out<T>(Op::kDGates + which, i, n, width));
    }
    // Its factors are not needed: those of the candidate have been used.
    if (T* reset = rows.template Out<T>(Op::kReset, i, n, width))
      ResetRow(row.r, row.hidden, width, WorkspaceAt<X>(ctx, factors_n_) + n * width, reset);
  }

  const Op op_;
  const RowProduct<X> sigmoids_, candidate_;
  WorkspaceLayout memory_;
  const size_t packed_, packed_n_, hidden_, factors_, factors_n_, dh_, dsigmoids_, dcandidate_,
      through_;
};

template <typename T, typename X>
class ResetAfter {
 public:
  using A = Accum<T>;
  using Op = ops::GruResetAfterSteps;

  explicit ResetAfter(const Op& op)
      : op_(op),
        product_{3 * op.width, op.width},
        packed_(memory_.Add<X>(product_.packed())),
        hidden_(memory_.Add<X>(op.items * op.width)),
        sums_(memory_.Add<A>(op.items * product_.row())) {}

  size_t workspace_bytes() const { return memory_.bytes(); }

  void Run(const KernelContext& ctx) const {
    const int64_t width = op_.width;
    X* packed = WorkspaceAt<X>(ctx, packed_);
    product_.Clear(packed);
    for (int i = 0; i < 3; ++i) {
      product_.PackByThreads(ctx.input(Op::kWeights + i).as<const T>(), width, width, 1, width, 0,
                             i * width, packed);
    }
    ParallelFor(op_.items, 1, [&](int64_t begin, int64_t end) { RunItems(ctx, begin, end); });
  }

 private:
  void RunItems(const KernelContext& ctx, int64_t begin, int64_t end) const {
    const int64_t width = op_.width;
    const StepRows<T, X> rows(op_, ctx, Op::kCont, Op::kH0);
    const A* const bias = ctx.input(Op::kBias).as<const A>();
    X* hidden = WorkspaceAt<X>(ctx, hidden_);
    A* sums = WorkspaceAt<A>(ctx, sums_);
    for (int64_t i = 0; i < op_.steps; ++i) {
      for (int64_t n = begin; n < end; ++n)
        rows.Hidden(ctx.output(Op::kH).as<T>(), i, n, hidden + n * width, nullptr);
      product_.Multiply(hidden + begin * width, end - begin, WorkspaceAt<X>(ctx, packed_),
                        sums + begin * product_.row());
      for (int64_t n = begin; n < end; ++n) {
        const T* products = rows.template In<T>(Op::kProducts, i, n, 3 * width);
        A *gates = sums + n * product_.row(), *fed = gates + 2 * width;
        const auto save = [&](const A* row, int output) {
          if (A* saved = rows.template Out<A>(output, i, n, width)) ConvertRow(row, width, saved);
        };
        AddRow(products, 2 * width, gates);
        Sigmoids(width, gates);
        save(gates, Op::kGates);
        save(gates + width, Op::kGates + 1);
        AddRow(bias, width, fed);
        save(fed, Op::kFed);
        ResetRowAfter(gates + width, products + 2 * width, width, fed);
        Tanh(fed, width, A(1), fed);
        save(fed, Op::kGates + 2);
        UpdateRow(gates, fed, hidden + n * width, width, rows.template Out<T>(Op::kH, i, n, width));
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

template <typename T, typename X>
class ResetAfterBackward {
 public:
  using A = Accum<T>;
  using Op = ops::GruResetAfterStepsGrad;

  explicit ResetAfterBackward(const Op& op)
      : op_(op),
        product_{op.width, 3 * op.width},
        packed_(memory_.Add<X>(product_.packed())),
        hidden_(memory_.Add<X>(op.items * op.width)),
        factors_(memory_.Add<X>(op.items * 3 * op.width)),
        dh_(memory_.Add<A>(op.items * op.width)),
        dgates_(memory_.Add<A>(op.items * 4 * op.width)),
        through_(memory_.Add<A>(op.items * product_.row())) {}

  size_t workspace_bytes() const { return memory_.bytes(); }

  void Run(const KernelContext& ctx) const {
    const int64_t width = op_.width;
    X* packed = WorkspaceAt<X>(ctx, packed_);
    product_.Clear(packed);
    for (int i = 0; i < 3; ++i) {
      product_.PackByThreads(ctx.input(Op::kWeights + i).as<const T>(), width, width, width, 1,
                             i * width, 0, packed);
    }
    ParallelFor(op_.items, 1, [&](int64_t begin, int64_t end) { RunItems(ctx, begin, end); });
  }

 private:
  void RunItems(const KernelContext& ctx, int64_t begin, int64_t end) const {
    const int64_t width = op_.width;
    const StepRows<T, X> rows(op_, ctx, Op::kCont, Op::kH0);
    A *all_dh = WorkspaceAt<A>(ctx, dh_), *through = WorkspaceAt<A>(ctx, through_);
    for (int64_t n = begin; n < end; ++n) LoadState(ctx, Op::kDhLast, n, width, all_dh + n * width);
    for (int64_t i = op_.steps; i-- > 0;) {
      for (int64_t n = begin; n < end; ++n) BeginStep(ctx, rows, i, n);
      product_.Multiply(WorkspaceAt<X>(ctx, factors_) + begin * 3 * width, end - begin,
                        WorkspaceAt<X>(ctx, packed_), through + begin * product_.row());
      for (int64_t n = begin; n < end; ++n) {
        A* dh = all_dh + n * width;
        AddRow(through + n * product_.row(), width, dh);
        ScaleBy(rows.Cont(i, n), width, dh);
      }
    }
    for (int64_t n = begin; n < end; ++n)
      StoreState<T>(ctx, Op::kDh0, n, width, all_dh + n * width);
  }

  // Gradients of the gates' inputs and of fed, which are also the factors of what reaches h'.
  void BeginStep(const KernelContext& ctx, const StepRows<T, X>& rows, int64_t i, int64_t n) const {
    const int64_t width = op_.width;
    const auto gate = [&](int which) {
      return rows.template In<A>(Op::kGates + which, i, n, width);
    };
    X* hidden = WorkspaceAt<X>(ctx, hidden_) + n * width;
    A *dh = WorkspaceAt<A>(ctx, dh_) + n * width,
      *dgates = WorkspaceAt<A>(ctx, dgates_) + n * 4 * width;
    rows.Hidden(ctx.input(Op::kH).as<const T>(), i, n, hidden,
                rows.template Out<T>(Op::kHidden, i, n, width));
    if (const T* dy = rows.template In<T>(Op::kDh, i, n, width)) AddRow(dy, width, dh);
    BackRows<A, X>{gate(0), gate(1), gate(2), hidden, dh, dgates + 3 * width, dgates}.Begin(width);
    BackAfter(gate(1), rows.template In<A>(Op::kFed, i, n, width), dgates + 3 * width, width,
              dgates + width, dgates + 2 * width);
    X* factors = WorkspaceAt<X>(ctx, factors_) + n * 3 * width;
    for (const auto& [row, output] :
         {std::pair{0, Op::kDGates + 0}, {1, Op::kDGates + 1}, {2, Op::kDFed + 0}}) {
      ScaleRow(dgates + row * width, width, A(1), factors + row * width,
               rows.template Out<T>(output, i, n, width));
    }
    if (T* dn = rows.template Out<T>(Op::kDGates + 2, i, n, width))
      ConvertRow(dgates + 3 * width, width, dn);
  }

  const Op op_;
  const RowProduct<X> product_;
  WorkspaceLayout memory_;
  const size_t packed_, hidden_, factors_, dh_, dgates_, through_;
};

static KernelOrRefusal MakeForward(const ops::GruSteps& op, const KernelRequest& request) {
  using Op = ops::GruSteps;
  return MakeSteps<Forward>(op, request, {Op::kGates, Op::kGates + 1, Op::kGates + 2, Op::kHLast});
}
static KernelOrRefusal MakeBackward(const ops::GruStepsGrad& op, const KernelRequest& request) {
  return MakeSteps<Backward>(op, request, {});
}

static KernelOrRefusal MakeResetAfter(const ops::GruResetAfterSteps& op,
                                      const KernelRequest& request) {
  using Op = ops::GruResetAfterSteps;
  return MakeSteps<ResetAfter>(op, request,
                               {Op::kGates, Op::kGates + 1, Op::kGates + 2, Op::kFed, Op::kHLast});
}
static KernelOrRefusal MakeResetAfterBackward(const ops::GruResetAfterStepsGrad& op,
                                              const KernelRequest& request) {
  return MakeSteps<ResetAfterBackward>(op, request, {});
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::GruResetAfterSteps, "gru-reset-after-rows",
                              KernelRank::kBest, MakeResetAfter);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::GruResetAfterStepsGrad,
                              "gru-reset-after-grad-rows", KernelRank::kBest,
                              MakeResetAfterBackward);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::GruSteps, "gru-rows", KernelRank::kBest,
                              MakeForward);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::GruStepsGrad, "gru-grad-rows",
                              KernelRank::kBest, MakeBackward);

}  // namespace gru_steps
}  // namespace caffe::cpu
