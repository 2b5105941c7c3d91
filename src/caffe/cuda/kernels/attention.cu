// Attention, some heads and queries at a time, so that memory grows with the number of keys and not
// with its square.
#include <cmath>

#include "caffe/cuda/groups.cuh"
#include "caffe/cuda/numbers.cuh"
#include "caffe/ops/attention.hpp"

namespace caffe::cuda {
namespace {

// Queries [query, query + queries) of heads [head, head + heads), counted over all items. Their
// scores are a matrix with a row for each query of each head.
struct AttentionPart {
  ops::AttentionSizes op;
  int64_t head = 0, heads = 0, query = 0, queries = 0;

  __device__ int64_t rows() const { return heads * queries; }
  // Head and query of a row.
  __device__ int64_t HeadOf(int64_t row, int64_t* at) const {
    const int64_t i = Divide(row, queries, at);
    *at += query;
    return head + i;
  }
  __device__ int64_t Item(int64_t any_head) const { return Divide(any_head, op.heads); }
  __device__ int64_t KvHead(int64_t any_head) const {
    return Divide(Remainder(any_head, op.heads), op.group());
  }
  __device__ int64_t Q(int64_t any_head, int64_t at) const {
    return (Item(any_head) * op.queries + at) * op.q_step() +
           Remainder(any_head, op.heads) * op.width;
  }
  __device__ int64_t Y(int64_t any_head, int64_t at) const {
    return (Item(any_head) * op.queries + at) * op.y_step() +
           Remainder(any_head, op.heads) * op.value_width;
  }
  __device__ int64_t K(int64_t item, int64_t kv_head, int64_t key) const {
    return (item * op.keys + key) * op.k_step() + op.k_offset() + kv_head * op.width;
  }
  __device__ int64_t V(int64_t item, int64_t kv_head, int64_t key) const {
    return (item * op.keys + key) * op.v_step() + op.v_offset() + kv_head * op.value_width;
  }
  __device__ bool Sees(const Numbers& mask, int64_t item, int64_t at, int64_t key) const {
    return key < op.KeysOf(at) && mask.GetOr(item * op.keys + key, 1.0F) != 0;
  }
};

template <typename T>
__device__ inline Accum<T> Dot(const T* a, const T* b, int64_t count) {
  Accum<T> sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += Wide(a[i]) * Wide(b[i]);
  return sum;
}

// Scores of a row, then their weights; with `computes_lse` it also finds lse.
template <typename T>
struct AttentionWeights {
  using A = Accum<T>;
  AttentionPart part;
  const T *q, *k;
  Numbers mask, lse;
  bool computes_lse;
  A* weights;

  template <typename Group>
  __device__ void operator()(int64_t row, const Group& group) const {
    int64_t at;
    const int64_t head = part.HeadOf(row, &at), item = part.Item(head);
    const int64_t index = head * part.op.queries + at, kv_head = part.KvHead(head);
    A* to = weights + row * part.op.keys;
    A largest = -static_cast<A>(ops::Attention::kSeesNothing);
    for (int64_t key = group.rank(); key < part.op.keys; key += group.size()) {
      A score = -static_cast<A>(ops::Attention::kSeesNothing);
      if (part.Sees(mask, item, at, key)) {
        score = static_cast<A>(part.op.scale) *
                Dot(q + part.Q(head, at), k + part.K(item, kv_head, key), part.op.width);
        largest = Largest{}(largest, score);
      }
      to[key] = score;
    }
    const A none = -static_cast<A>(ops::Attention::kSeesNothing);
    A total = computes_lse ? A(0) : lse.template Get<A>(index);
    if (computes_lse) {
      largest = group.Reduce(Largest{}, largest);
      for (int64_t key = group.rank(); key < part.op.keys; key += group.size())
        total += to[key] == none ? A(0) : std::exp(to[key] - largest);
      total = group.Reduce(Sum{}, total);
      total = total > 0 ? largest + std::log(total) : -none;
      if (lse.is_present() && group.rank() == 0) lse.Set(index, total);
    }
    for (int64_t key = group.rank(); key < part.op.keys; key += group.size())
      to[key] = to[key] == none || total >= -none ? A(0) : std::exp(to[key] - total);
  }
};

// An element of a row, the sum of `factors` times the values or, without `of_values`, times the
// keys: of weights times values it is y, of the gradients of scores times keys it is dq.
template <typename T>
struct AttentionRowSums {
  using A = Accum<T>;
  AttentionPart part;
  bool of_values;
  const A* factors;
  const T* rows;
  T* to;

  __device__ void operator()(int64_t i) const {
    int64_t d, at;
    const int64_t row = Divide(i, of_values ? part.op.value_width : part.op.width, &d);
    const int64_t head = part.HeadOf(row, &at), item = part.Item(head);
    const int64_t kv_head = part.KvHead(head);
    A sum = 0;
    for (int64_t key = 0; key < part.op.keys; ++key) {
      const int64_t first = of_values ? part.V(item, kv_head, key) : part.K(item, kv_head, key);
      sum += factors[row * part.op.keys + key] * Wide(rows[first + d]);
    }
    to[(of_values ? part.Y(head, at) : part.Q(head, at)) + d] = T(sum);
  }
};

// The gradients of a row's scores, in place of those of its weights' sums.
template <typename T>
struct AttentionScoreGradients {
  using A = Accum<T>;
  AttentionPart part;
  const T *v, *y, *dy;
  const A* weights;
  A* dscores;

  template <typename Group>
  __device__ void operator()(int64_t row, const Group& group) const {
    int64_t at;
    const int64_t head = part.HeadOf(row, &at), item = part.Item(head);
    const int64_t kv_head = part.KvHead(head), first = part.Y(head, at);
    A delta = 0;
    for (int64_t d = group.rank(); d < part.op.value_width; d += group.size())
      delta += Wide(y[first + d]) * Wide(dy[first + d]);
    delta = group.Reduce(Sum{}, delta);
    for (int64_t key = group.rank(); key < part.op.keys; key += group.size()) {
      const int64_t i = row * part.op.keys + key;
      const A dweight = Dot(dy + first, v + part.V(item, kv_head, key), part.op.value_width);
      dscores[i] = weights[i] * (dweight - delta) * static_cast<A>(part.op.scale);
    }
  }
};

// Adds the part's rows to the gradient of an element of a key or, with `of_values`, of a value.
// `factors` are the gradients of scores or the weights, `rows` q or dy.
template <typename T>
struct AttentionKeyGradients {
  using A = Accum<T>;
  AttentionPart part;
  bool of_values;
  const A* factors;
  const T* rows;
  A* sums;  // of all elements: keys of each head of keys of each item

  __device__ int64_t width() const { return of_values ? part.op.value_width : part.op.width; }
  // The first of the part's heads of keys, counted over all items, and their number.
  __device__ int64_t FirstKvHead() const {
    return part.Item(part.head) * part.op.kv_heads + part.KvHead(part.head);
  }

  __device__ void operator()(int64_t i) const {
    int64_t d, key;
    const int64_t any_kv_head = FirstKvHead() + Divide(Divide(i, width(), &d), part.op.keys, &key);
    A sum = 0;
    for (int64_t row = 0; row < part.rows(); ++row) {
      int64_t at;
      const int64_t head = part.HeadOf(row, &at);
      if (part.Item(head) * part.op.kv_heads + part.KvHead(head) != any_kv_head) continue;
      const int64_t first = of_values ? part.Y(head, at) : part.Q(head, at);
      sum += factors[row * part.op.keys + key] * Wide(rows[first + d]);
    }
    sums[(any_kv_head * part.op.keys + key) * width() + d] += sum;
  }
};

template <typename T>
struct AttentionStoreSums {
  using A = Accum<T>;
  AttentionPart part;
  bool of_values;
  const A* sums;
  T* to;

  __device__ void operator()(int64_t i) const {
    const int64_t width = of_values ? part.op.value_width : part.op.width;
    int64_t d, key, kv_head;
    const int64_t item =
        Divide(Divide(Divide(i, width, &d), part.op.keys, &key), part.op.kv_heads, &kv_head);
    to[(of_values ? part.V(item, kv_head, key) : part.K(item, kv_head, key)) + d] = T(sums[i]);
  }
};

// The parts of an attention: whole groups of heads if their scores fit, or some queries of one
// head.
class AttentionParts {
 public:
  explicit AttentionParts(const ops::AttentionSizes& op) : op_(op) {
    const int64_t of_head = std::max<int64_t>(op.queries * op.keys, 1);
    heads_ = std::max<int64_t>(kMostScores / of_head / op.group(), 1) * op.group();
    heads_ = std::min(heads_, op.items * op.heads);
    queries_ = std::clamp<int64_t>(kMostScores / std::max<int64_t>(op.keys * heads_, 1), 1,
                                   std::max<int64_t>(op.queries, 1));
  }
  int64_t scores() const { return heads_ * queries_ * op_.keys; }

  template <typename Fn>
  void ForEachPart(const Fn& fn) const {
    for (int64_t head = 0; head < op_.items * op_.heads; head += heads_) {
      for (int64_t query = 0; query < op_.queries; query += queries_) {
        fn(AttentionPart{op_, head, std::min(heads_, op_.items * op_.heads - head), query,
                         std::min(queries_, op_.queries - query)});
      }
    }
  }

 private:
  static constexpr int64_t kMostScores = int64_t{1} << 24;

  const ops::AttentionSizes op_;
  int64_t heads_, queries_;
};

KernelOrRefusal MakeAttention(const ops::Attention& op, const KernelRequest& request) {
  using Op = ops::Attention;
  const AttentionParts parts(op);
  return VisitFloat(request.inputs[0].dtype, [&]<typename T>(TypeTag<T>) -> KernelOrRefusal {
    using A = Accum<T>;
    const auto run = [op, parts](const KernelContext& ctx) {
      A* weights = static_cast<A*>(ctx.workspace);
      const auto in = [&](int i) { return ctx.input(op.packed ? 0 : i).as<const T>(); };
      const Numbers mask = InputNumbers(ctx, Op::kMask);
      Numbers lse;
      if (ctx.has_output(Op::kLse)) lse = {ctx.output(Op::kLse).data, ctx.output(Op::kLse).dtype};
      parts.ForEachPart([&](const AttentionPart& part) {
        const int64_t rows = part.heads * part.queries;
        ForRows(ctx, {rows, op.keys, 1},
                AttentionWeights<T>{part, in(Op::kQ), in(Op::kK), mask, lse, true, weights});
        ForEach(ctx, rows * op.value_width,
                AttentionRowSums<T>{part, true, weights, in(Op::kV), ctx.output(Op::kY).as<T>()});
      });
    };
    return Kernel{"", run, static_cast<size_t>(parts.scores()) * sizeof(A)};
  });
}

KernelOrRefusal MakeAttentionGrad(const ops::AttentionGrad& op, const KernelRequest& request) {
  using Op = ops::AttentionGrad;
  const AttentionParts parts(op);
  return VisitFloat(request.inputs[0].dtype, [&]<typename T>(TypeTag<T>) -> KernelOrRefusal {
    using A = Accum<T>;
    const int64_t keys = op.items * op.kv_heads * op.keys;
    const int64_t numbers = 2 * parts.scores() + keys * (op.width + op.value_width);
    const auto run = [op, parts, keys](const KernelContext& ctx) {
      A *weights = static_cast<A*>(ctx.workspace), *dscores = weights + parts.scores();
      A *dk = dscores + parts.scores(), *dv = dk + keys * op.width;
      const auto in = [&](int i) {
        return ctx.input(op.packed && i < 3 ? 0 : i).template as<const T>();
      };
      const Numbers mask = InputNumbers(ctx, Op::kMask), lse = InputNumbers(ctx, Op::kLse);
      CAFFE_CUDA_CHECK(cudaMemsetAsync(
          dk, 0, static_cast<size_t>(keys * (op.width + op.value_width)) * sizeof(A),
          StreamOf(ctx)));
      parts.ForEachPart([&](const AttentionPart& part) {
        const int64_t rows = part.heads * part.queries;
        ForRows(ctx, {rows, op.keys, 1},
                AttentionWeights<T>{part, in(Op::kQ), in(Op::kK), mask, lse, false, weights});
        ForRows(ctx, {rows, op.keys, 1},
                AttentionScoreGradients<T>{part, in(Op::kV), in(Op::kY), in(Op::kDy), weights,
                                           dscores});
        if (ctx.has_output(Op::kDq)) {
          ForEach(
              ctx, rows * op.width,
              AttentionRowSums<T>{part, false, dscores, in(Op::kK), ctx.output(Op::kDq).as<T>()});
        }
        const int64_t kv_heads = std::max<int64_t>(part.heads / op.group(), 1);
        ForEach(ctx, kv_heads * op.keys * op.width,
                AttentionKeyGradients<T>{part, false, dscores, in(Op::kQ), dk});
        ForEach(ctx, kv_heads * op.keys * op.value_width,
                AttentionKeyGradients<T>{part, true, weights, in(Op::kDy), dv});
      });
      const AttentionPart all{op};
      const int out_k = op.packed ? Op::kDq : Op::kDk, out_v = op.packed ? Op::kDq : Op::kDv;
      if (ctx.has_output(out_k)) {
        ForEach(ctx, keys * op.width,
                AttentionStoreSums<T>{all, false, dk, ctx.output(out_k).as<T>()});
      }
      if (ctx.has_output(out_v)) {
        ForEach(ctx, keys * op.value_width,
                AttentionStoreSums<T>{all, true, dv, ctx.output(out_v).as<T>()});
      }
    };
    return Kernel{"", run, static_cast<size_t>(numbers) * sizeof(A)};
  });
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::Attention, "attention-reference",
                              KernelRank::kReference, MakeAttention);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::AttentionGrad, "attention-grad-reference",
                              KernelRank::kReference, MakeAttentionGrad);

}  // namespace
}  // namespace caffe::cuda
