// Attention, a block of queries at a time with all keys that they see, so that memory grows with
// the number of keys and not with its square. As in FlashAttention (Dao et al. 2022), backward
// computes the scores again.
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "caffe/cpu/kernels/attention_rows.hpp"
#include "caffe/cpu/workspace_layout.hpp"

namespace caffe::cpu {
namespace attention {

// Rounded up to whole units of products.
template <typename X>
int64_t InUnits(int64_t count) {
  constexpr int64_t kInUnit = RowProduct<X>::kInUnit;
  return (count + kInUnit - 1) / kInUnit * kInUnit;
}

// Memory of the tasks that run at the same time; there may be fewer threads in a run than slots.
class TaskMemory {
 public:
  int64_t slots() const { return slots_; }
  template <typename N>
  size_t Add(int64_t count) {
    return part_.Add<N>(count);
  }
  size_t bytes() const { return part_.bytes() * static_cast<size_t>(slots_); }
  template <typename N>
  N* At(const KernelContext& ctx, int64_t slot, size_t offset) const {
    return WorkspaceAt<N>(ctx, static_cast<size_t>(slot) * part_.bytes() + offset);
  }

 private:
  const int64_t slots_ = omp_get_max_threads();
  WorkspaceLayout part_;
};

// Calls fn(task, slot) for each task; tasks of a slot follow each other.
template <typename Fn>
void ForTasks(int64_t tasks, int64_t most_slots, const Fn& fn) {
  const int64_t slots = std::min(most_slots, tasks);
  ParallelFor(slots, 1, [&](int64_t begin, int64_t end) {
    for (int64_t slot = begin; slot < end; ++slot)
      for (int64_t task = slot; task < tasks; task += slots) fn(task, slot);
  });
}

// The mask of an item, or null.
template <typename A>
const A* MaskOf(const KernelContext& ctx, int input, int64_t item, int64_t keys) {
  return ctx.has_input(input) ? ctx.input(input).as<const A>() + item * keys : nullptr;
}

template <typename T, typename X>
class Forward {
 public:
  using A = Accum<T>;
  using Op = ops::Attention;

  explicit Forward(const Op& op)
      : op_(op),
        scores_product_{kBlock, op.width},
        values_product_{kBlock, InUnits<X>(op.keys)},
        keys_(memory_.Add<X>(op.keys * op.width)),
        values_(memory_.Add<X>(op.value_width * InUnits<X>(op.keys))),
        q_panel_(memory_.Add<X>(scores_product_.packed())),
        scores_(memory_.Add<A>(op.keys * kBlock)),
        panel_(memory_.Add<X>(values_product_.packed())),
        columns_(memory_.Add<A>(op.value_width * kBlock)) {
    const int64_t heads = op.items * op.heads, blocks = (op.queries + kBlock - 1) / kBlock;
    const int64_t wanted = 4 * omp_get_max_threads();
    chunks_ = std::clamp<int64_t>((wanted + heads - 1) / std::max<int64_t>(heads, 1), 1,
                                  std::max<int64_t>(blocks / 4, 1));
  }

  size_t workspace_bytes() const { return memory_.bytes(); }

  void Run(const KernelContext& ctx) const {
    ForTasks(op_.items * op_.heads * chunks_, memory_.slots(), [&](int64_t task, int64_t slot) {
      RunTask(ctx, task / chunks_ / op_.heads, task / chunks_ % op_.heads, task % chunks_, slot);
    });
  }

 private:
  // The queries of a chunk of one head.
  void RunTask(const KernelContext& ctx, int64_t item, int64_t head, int64_t chunk,
               int64_t slot) const {
    const HeadsOf<T> heads{op_};
    const int64_t kv_head = head / op_.group();
    const int operand_k = op_.packed ? Op::kQ : Op::kK, operand_v = op_.packed ? Op::kQ : Op::kV;
    CopyRows(heads.K(ctx.input(operand_k).as<const T>(), item, kv_head), op_.keys, op_.width,
             memory_.At<X>(ctx, slot, keys_));
    X* values = memory_.At<X>(ctx, slot, values_);
    if (InUnits<X>(op_.keys) > op_.keys) {
      for (int64_t d = 0; d < op_.value_width; ++d)
        values[d * InUnits<X>(op_.keys) + op_.keys] = X(0.0F);
    }
    CopyColumns(heads.V(ctx.input(operand_v).as<const T>(), item, kv_head), op_.keys,
                op_.value_width, InUnits<X>(op_.keys), values);
    const int64_t blocks = (op_.queries + kBlock - 1) / kBlock;
    for (int64_t b = blocks * chunk / chunks_; b < blocks * (chunk + 1) / chunks_; ++b)
      RunBlock(ctx, item, head, b * kBlock, slot);
  }

  void RunBlock(const KernelContext& ctx, int64_t item, int64_t head, int64_t query,
                int64_t slot) const {
    const HeadsOf<T> heads{op_};
    const int64_t count = std::min(kBlock, op_.queries - query);
    const int64_t keys = op_.KeysOf(query + count - 1), whole = InUnits<X>(keys);
    const HeadRows<const T> q = heads.Q(ctx.input(Op::kQ).as<const T>(), item, head);
    X *q_panel = memory_.At<X>(ctx, slot, q_panel_), *panel = memory_.At<X>(ctx, slot, panel_);
    A *scores = memory_.At<A>(ctx, slot, scores_), *columns = memory_.At<A>(ctx, slot, columns_);
    A largest[kBlock], sums[kBlock];
    if (count < kBlock) scores_product_.Clear(q_panel);
    scores_product_.Pack(q.Row(query), op_.width, count, 1, q.step, 0, 0, q_panel);
    scores_product_.Multiply({memory_.At<X>(ctx, slot, keys_), op_.width}, keys, op_.width, q_panel,
                             /*adds=*/false, {scores, kBlock});
    ScaleAndHide(op_, query, keys, MaskOf<A>(ctx, Op::kMask, item, op_.keys), scores, largest);
    Exponentials(keys, scores, largest, sums, panel);
    values_product_.Multiply({memory_.At<X>(ctx, slot, values_), InUnits<X>(op_.keys)},
                             op_.value_width, whole, panel, /*adds=*/false, {columns, kBlock});
    const HeadRows<T> y = heads.Y(ctx.output(Op::kY).as<T>(), item, head);
    A factors[kBlock];
    for (int64_t r = 0; r < kBlock; ++r) factors[r] = sums[r] > 0 ? A(1) / sums[r] : A(0);
    StoreColumns(columns, op_.value_width, count, factors, HeadRows<T>{y.Row(query), y.step});
    if (!ctx.has_output(Op::kLse)) return;
    A* lse = ctx.output(Op::kLse).as<A>() + (item * op_.heads + head) * op_.queries + query;
    for (int64_t r = 0; r < count; ++r)
      lse[r] = sums[r] > 0 ? largest[r] + std::log(sums[r]) : kSeesNothing<A>;
  }

  const Op op_;
  const RowProduct<X> scores_product_, values_product_;
  TaskMemory memory_;
  const size_t keys_, values_, q_panel_, scores_, panel_, columns_;
  int64_t chunks_ = 1;
};

template <typename T, typename X>
class Backward {
 public:
  using A = Accum<T>;
  using Op = ops::AttentionGrad;

  explicit Backward(const Op& op)
      : op_(op),
        scores_product_{kBlock, op.width},
        dweights_product_{kBlock, op.value_width},
        dq_product_{kBlock, InUnits<X>(op.keys)},
        dk_product_{op.width, kBlock},
        dv_product_{op.value_width, kBlock},
        keys_(memory_.Add<X>(op.keys * op.width)),
        key_columns_(memory_.Add<X>(op.width * InUnits<X>(op.keys))),
        values_(memory_.Add<X>(op.keys * op.value_width)),
        q_panel_(memory_.Add<X>(scores_product_.packed())),
        dy_panel_(memory_.Add<X>(dweights_product_.packed())),
        q_rows_(memory_.Add<X>(dk_product_.packed())),
        dy_rows_(memory_.Add<X>(dv_product_.packed())),
        scores_(memory_.Add<A>(op.keys * kBlock)),
        dweights_(memory_.Add<A>(op.keys * kBlock)),
        weights_(memory_.Add<X>(op.keys * kBlock)),
        dscores_(memory_.Add<X>(op.keys * kBlock)),
        dpanel_(memory_.Add<X>(dq_product_.packed())),
        dq_(memory_.Add<A>(op.width * kBlock)),
        dk_(memory_.Add<A>(op.keys * dk_product_.row())),
        dv_(memory_.Add<A>(op.keys * dv_product_.row())) {}

  size_t workspace_bytes() const { return memory_.bytes(); }

  void Run(const KernelContext& ctx) const {
    ForTasks(op_.items * op_.kv_heads, memory_.slots(), [&](int64_t task, int64_t slot) {
      RunTask(ctx, task / op_.kv_heads, task % op_.kv_heads, slot);
    });
  }

 private:
  // A head of keys and values, with all heads of queries that read it.
  void RunTask(const KernelContext& ctx, int64_t item, int64_t kv_head, int64_t slot) const {
    const HeadsOf<T> heads{op_};
    const HeadRows<const T> k =
        heads.K(ctx.input(op_.packed ? Op::kQ : Op::kK).as<const T>(), item, kv_head);
    const HeadRows<const T> v =
        heads.V(ctx.input(op_.packed ? Op::kQ : Op::kV).as<const T>(), item, kv_head);
    CopyRows(k, op_.keys, op_.width, memory_.At<X>(ctx, slot, keys_));
    X* columns = memory_.At<X>(ctx, slot, key_columns_);
    std::fill_n(columns, op_.width * InUnits<X>(op_.keys), X(0.0F));
    CopyColumns(k, op_.keys, op_.width, InUnits<X>(op_.keys), columns);
    CopyRows(v, op_.keys, op_.value_width, memory_.At<X>(ctx, slot, values_));
    A *dk = memory_.At<A>(ctx, slot, dk_), *dv = memory_.At<A>(ctx, slot, dv_);
    std::fill_n(dk, op_.keys * dk_product_.row(), A(0));
    std::fill_n(dv, op_.keys * dv_product_.row(), A(0));
    for (int64_t i = 0; i < op_.group(); ++i) {
      for (int64_t query = 0; query < op_.queries; query += kBlock)
        RunBlock(ctx, item, kv_head * op_.group() + i, query, slot);
    }
    const auto store = [&](const A* sums, int64_t step, int64_t width, const HeadRows<T>& to) {
      for (int64_t i = 0; i < op_.keys; ++i) ConvertRow(sums + i * step, width, to.Row(i));
    };
    const int out_k = op_.packed ? Op::kDq : Op::kDk, out_v = op_.packed ? Op::kDq : Op::kDv;
    if (ctx.has_output(out_k)) {
      store(dk, dk_product_.row(), op_.width, heads.K(ctx.output(out_k).as<T>(), item, kv_head));
    }
    if (ctx.has_output(out_v)) {
      store(dv, dv_product_.row(), op_.value_width,
            heads.V(ctx.output(out_v).as<T>(), item, kv_head));
    }
  }

  // lse of a block's queries, and the sums of y dy over a row; for queries beyond the last, such
  // that their weights are 0.
  void LoadRows(const KernelContext& ctx, int64_t item, int64_t head, int64_t query, int64_t count,
                A* lse, A* delta) const {
    const HeadsOf<T> heads{op_};
    const A* saved = ctx.input(Op::kLse).as<const A>() + (item * op_.heads + head) * op_.queries;
    const HeadRows<const T> y = heads.Y(ctx.input(Op::kY).as<const T>(), item, head);
    const HeadRows<const T> dy = heads.Y(ctx.input(Op::kDy).as<const T>(), item, head);
    std::fill_n(lse, kBlock, kSeesNothing<A>);
    std::fill_n(delta, kBlock, A(0));
    for (int64_t r = 0; r < count; ++r) {
      lse[r] = saved[query + r];
      delta[r] = DotOfRows(y.Row(query + r), dy.Row(query + r), op_.value_width);
    }
  }

  void RunBlock(const KernelContext& ctx, int64_t item, int64_t head, int64_t query,
                int64_t slot) const {
    const HeadsOf<T> heads{op_};
    const int64_t count = std::min(kBlock, op_.queries - query);
    const int64_t keys = op_.KeysOf(query + count - 1);
    const HeadRows<const T> q = heads.Q(ctx.input(Op::kQ).as<const T>(), item, head);
    const HeadRows<const T> dy = heads.Y(ctx.input(Op::kDy).as<const T>(), item, head);
    const auto part = [&](size_t offset) { return memory_.At<X>(ctx, slot, offset); };
    A *scores = memory_.At<A>(ctx, slot, scores_), *dweights = memory_.At<A>(ctx, slot, dweights_);
    A lse[kBlock], delta[kBlock];
    LoadRows(ctx, item, head, query, count, lse, delta);
    if (count < kBlock) {
      scores_product_.Clear(part(q_panel_));
      dweights_product_.Clear(part(dy_panel_));
      dk_product_.Clear(part(q_rows_));
      dv_product_.Clear(part(dy_rows_));
    }
    scores_product_.Pack(q.Row(query), op_.width, count, 1, q.step, 0, 0, part(q_panel_));
    dweights_product_.Pack(dy.Row(query), op_.value_width, count, 1, dy.step, 0, 0,
                           part(dy_panel_));
    dk_product_.Pack(q.Row(query), count, op_.width, q.step, 1, 0, 0, part(q_rows_));
    dv_product_.Pack(dy.Row(query), count, op_.value_width, dy.step, 1, 0, 0, part(dy_rows_));

    scores_product_.Multiply({part(keys_), op_.width}, keys, op_.width, part(q_panel_), false,
                             {scores, kBlock});
    dweights_product_.Multiply({part(values_), op_.value_width}, keys, op_.value_width,
                               part(dy_panel_), false, {dweights, kBlock});
    WeightGradients<A, X>(op_, query, keys, MaskOf<A>(ctx, Op::kMask, item, op_.keys), scores,
                          dweights, {lse, delta, part(weights_), part(dscores_), part(dpanel_)});
    dv_product_.Multiply({part(weights_), kBlock}, keys, kBlock, part(dy_rows_), true,
                         {memory_.At<A>(ctx, slot, dv_), dv_product_.row()});
    dk_product_.Multiply({part(dscores_), kBlock}, keys, kBlock, part(q_rows_), true,
                         {memory_.At<A>(ctx, slot, dk_), dk_product_.row()});
    if (!ctx.has_output(Op::kDq)) return;
    A *columns = memory_.At<A>(ctx, slot, dq_), ones[kBlock];
    std::fill_n(ones, kBlock, A(1));
    dq_product_.Multiply({part(key_columns_), InUnits<X>(op_.keys)}, op_.width, InUnits<X>(keys),
                         part(dpanel_), false, {columns, kBlock});
    const HeadRows<T> dq = heads.Q(ctx.output(Op::kDq).as<T>(), item, head);
    StoreColumns(columns, op_.width, count, ones, HeadRows<T>{dq.Row(query), dq.step});
  }

  const Op op_;
  const RowProduct<X> scores_product_, dweights_product_, dq_product_, dk_product_, dv_product_;
  TaskMemory memory_;
  const size_t keys_, key_columns_, values_, q_panel_, dy_panel_, q_rows_, dy_rows_, scores_,
      dweights_, weights_, dscores_, dpanel_, dq_, dk_, dv_;
};

template <template <typename, typename> class Kernels, typename Op>
KernelOrRefusal Make(const Op& op, const KernelRequest& request) {
  const DType type = request.inputs[0].dtype;
  const DType wide = type == DType::kDouble ? type : DType::kFloat;
  const auto is_other = [&](const OperandDesc& operand) {
    return operand.present && operand.dtype != wide;
  };
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    if (Op::kExactInputs.contains(i) && is_other(request.inputs[i]))
      return Refusal{"a mask or sums in another type"};
  }
  if (std::is_same_v<Op, ops::Attention> && request.outputs.size() > 1 &&
      is_other(request.outputs[ops::Attention::kLse])) {
    return Refusal{"sums in another type"};
  }
  if (op.keys == 0) return Refusal{"no keys"};
  const bool multiplies_pairs = CanMultiplyPairs(op.width) && op.value_width % 2 == 0;
  return MakeForFactors<Kernels>(op, type, multiplies_pairs);
}

static KernelOrRefusal MakeForward(const ops::Attention& op, const KernelRequest& request) {
  return Make<Forward>(op, request);
}
static KernelOrRefusal MakeBackward(const ops::AttentionGrad& op, const KernelRequest& request) {
  return Make<Backward>(op, request);
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::Attention, "attention-blocks",
                              KernelRank::kBest, MakeForward);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::AttentionGrad, "attention-grad-blocks",
                              KernelRank::kBest, MakeBackward);

}  // namespace attention
}  // namespace caffe::cpu
