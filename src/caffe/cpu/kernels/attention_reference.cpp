// Attention by its definition, in double, for operands of any types.
#include <cmath>
#include <limits>

#include "caffe/cpu/kernels/attention_rows.hpp"
#include "caffe/cpu/kernels/element.hpp"

namespace caffe::cpu {
namespace attention_reference {

constexpr double kNever = -std::numeric_limits<double>::infinity();

// The operands of one query of one head, by element.
struct Query {
  const ops::AttentionSizes& op;
  const KernelContext& ctx;
  int mask;
  int64_t item, head, query;

  int64_t kv_head() const { return head / op.group(); }
  int64_t Q(int64_t d) const {
    return (item * op.queries + query) * op.q_step() + head * op.width + d;
  }
  int64_t K(int64_t key, int64_t d) const {
    return (item * op.keys + key) * op.k_step() + op.k_offset() + kv_head() * op.width + d;
  }
  int64_t V(int64_t key, int64_t d) const {
    return (item * op.keys + key) * op.v_step() + op.v_offset() + kv_head() * op.value_width + d;
  }
  int64_t Y(int64_t d) const {
    return (item * op.queries + query) * op.y_step() + head * op.value_width + d;
  }
  int64_t Lse() const { return (item * op.heads + head) * op.queries + query; }
  const TensorView& Keys() const { return ctx.input(op.packed ? 0 : 1); }
  const TensorView& Values() const { return ctx.input(op.packed ? 0 : 2); }

  double Score(int64_t key) const {
    if (key >= op.KeysOf(query) || ElementOr(ctx, mask, item * op.keys + key, 1) == 0)
      return kNever;
    double sum = 0;
    for (int64_t d = 0; d < op.width; ++d)
      sum += ElementOf(ctx.input(0), Q(d)) * ElementOf(Keys(), K(key, d));
    return op.scale * sum;
  }
};

static void Forward(const ops::Attention& op, const KernelContext& ctx) {
  using Op = ops::Attention;
  ParallelFor(op.items * op.heads * op.queries, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Query at{
          op, ctx, Op::kMask, i / op.queries / op.heads, i / op.queries % op.heads, i % op.queries};
      double largest = kNever, sum = 0;
      for (int64_t key = 0; key < op.keys; ++key) largest = std::max(largest, at.Score(key));
      for (int64_t key = 0; key < op.keys && largest != kNever; ++key)
        sum += std::exp(at.Score(key) - largest);
      for (int64_t d = 0; d < op.value_width; ++d) {
        double y = 0;
        for (int64_t key = 0; key < op.keys && sum > 0; ++key)
          y += std::exp(at.Score(key) - largest) / sum * ElementOf(at.Values(), at.V(key, d));
        SetElement(ctx.output(Op::kY), at.Y(d), y);
      }
      if (ctx.has_output(Op::kLse))
        SetElement(ctx.output(Op::kLse), at.Lse(),
                   sum > 0 ? largest + std::log(sum) : double{Op::kSeesNothing});
    }
  });
}

// The weight of a key, and the gradient of its score.
struct Weighted {
  double weight = 0, dscore = 0;

  Weighted(const Query& at, int64_t key) {
    using Op = ops::AttentionGrad;
    const double score = at.Score(key), lse = ElementOf(at.ctx.input(Op::kLse), at.Lse());
    if (score == kNever || lse >= double{ops::Attention::kSeesNothing}) return;
    weight = std::exp(score - lse);
    double dweight = 0, delta = 0;
    for (int64_t d = 0; d < at.op.value_width; ++d) {
      const double dy = ElementOf(at.ctx.input(Op::kDy), at.Y(d));
      dweight += dy * ElementOf(at.Values(), at.V(key, d));
      delta += dy * ElementOf(at.ctx.input(Op::kY), at.Y(d));
    }
    dscore = weight * (dweight - delta) * at.op.scale;
  }
};

// dk and dv of one key.
static void KeyGradient(const ops::AttentionGrad& op, const KernelContext& ctx, int64_t item,
                        int64_t kv_head, int64_t key) {
  using Op = ops::AttentionGrad;
  const auto sum = [&](int output, int64_t width, bool of_values) {
    if (!ctx.has_output(output)) return;
    for (int64_t d = 0; d < width; ++d) {
      double total = 0;
      for (int64_t i = 0; i < op.group() * op.queries; ++i) {
        const Query at{
            op, ctx, Op::kMask, item, kv_head * op.group() + i / op.queries, i % op.queries};
        const Weighted weighted(at, key);
        total += of_values ? weighted.weight * ElementOf(ctx.input(Op::kDy), at.Y(d))
                           : weighted.dscore * ElementOf(ctx.input(Op::kQ), at.Q(d));
      }
      const Query at{op, ctx, Op::kMask, item, kv_head * op.group(), 0};
      SetElement(ctx.output(output), of_values ? at.V(key, d) : at.K(key, d), total);
    }
  };
  sum(op.packed ? Op::kDq : Op::kDk, op.width, false);
  sum(op.packed ? Op::kDq : Op::kDv, op.value_width, true);
}

static void Backward(const ops::AttentionGrad& op, const KernelContext& ctx) {
  using Op = ops::AttentionGrad;
  ParallelFor(op.items * op.heads * op.queries, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end && ctx.has_output(Op::kDq); ++i) {
      const Query at{
          op, ctx, Op::kMask, i / op.queries / op.heads, i / op.queries % op.heads, i % op.queries};
      for (int64_t d = 0; d < op.width; ++d) {
        double total = 0;
        for (int64_t key = 0; key < op.keys; ++key)
          total += Weighted(at, key).dscore * ElementOf(at.Keys(), at.K(key, d));
        SetElement(ctx.output(Op::kDq), at.Q(d), total);
      }
    }
  });
  ParallelFor(op.items * op.kv_heads * op.keys, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      KeyGradient(op, ctx, i / op.keys / op.kv_heads, i / op.keys % op.kv_heads, i % op.keys);
  });
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::Attention, Forward);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::AttentionGrad, Backward);

}  // namespace attention_reference
}  // namespace caffe::cpu
