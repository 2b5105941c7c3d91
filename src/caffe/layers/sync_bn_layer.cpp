#include <cmath>
#include <memory>

#include "caffe/graph/sums_over_ranks.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/bn_base.hpp"
#include "caffe/ops/broadcast.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/ops/eltwise.hpp"
#include "caffe/ops/norm.hpp"

namespace caffe {
namespace {

using Numbers = std::vector<double>;

Numbers Read(const TensorView& view) {
  Numbers numbers(view.count());
  CopyTensor(view, {{view.shape, DType::kDouble}, numbers.data()});
  return numbers;
}

void Write(Numbers numbers, const TensorView& view) {
  CopyTensor({{view.shape, DType::kDouble}, numbers.data()}, view);
}

// PSPNet's BN with statistics over the items of all workers in training. Workers exchange two
// numbers per channel in forward and two in backward, in one message each.
class SyncBNLayer final : public BNBase, public SumsOverRanks {
 public:
  using BNBase::BNBase;

  void Prepare(const DataPlace& place) override { has_others_ = place.ranks > 1; }
  void SetExchange(Exchange exchange) override { *exchange_ = std::move(exchange); }

 private:
  bool is_shared() const { return has_others_ && phase() == TRAIN; }

  static double ItemsPerChannel(GraphBuilder& graph) {
    const Shape& x = graph.shape(graph.bottom(0));
    return static_cast<double>(x.count()) / static_cast<double>(x[1]);
  }

  void EmitNormalised(GraphBuilder& graph, Value* mean, Value* variance) const override {
    if (!is_shared()) return BNBase::EmitNormalised(graph, mean, variance);
    Value *x = graph.bottom(0), *slope = graph.param(kSlope), *bias = graph.param(kBias);
    Value* own = graph.Scratch("own", graph.shape(x));  // not used
    Value* own_mean = graph.Saved("own_mean", graph.shape(mean));
    Value* own_variance = graph.Saved("own_variance", graph.shape(mean));
    graph.Emit(ops::BatchNorm{.eps = eps()}, {x, slope, bias}, {own, own_mean, own_variance});
    graph.Emit(
        ops::HostCall{.what = "statistics of all workers",
                      .call = [exchange = exchange_, items = ItemsPerChannel(graph)](
                                  const KernelContext& ctx) { Join(*exchange, items, ctx); }},
        {own_mean, own_variance}, {mean, variance});
    graph.Emit(ops::BatchNormInference{.eps = eps()}, {x, mean, variance, nullptr, slope, bias},
               {graph.top(0)});
  }

  // The gradient for this worker's own statistics, plus the difference to that for all workers'
  // statistics: a multiple of x and a constant for each channel.
  void EmitNormalisedGrad(GraphBuilder& graph, Value* mean, Value* variance) const override {
    if (!is_shared()) return BNBase::EmitNormalisedGrad(graph, mean, variance);
    Value *x = graph.bottom(0), *dx = graph.bottom_diff(0), *slope = graph.param(kSlope);
    const Shape channels{1, graph.shape(x)[1], 1, 1};
    Value* own_dx = dx == nullptr ? nullptr : graph.Scratch("own_dx", graph.shape(x));
    Value* dslope = graph.Saved("own_dslope", channels);
    Value* dbias = graph.Saved("own_dbias", channels);
    graph.Emit(ops::BatchNormGrad{.eps = eps()}, {x, mean, variance, graph.top_diff(0), slope},
               {own_dx, dslope, dbias});
    graph.Emit(ops::SumToAxes{kChannels}, {dslope}, {graph.param_diff(kSlope)});
    graph.Emit(ops::SumToAxes{kChannels}, {dbias}, {graph.param_diff(kBias)});
    if (dx == nullptr) return;
    Value* factor = graph.Saved("lacking_factor", channels);
    Value* shift = graph.Saved("lacking_shift", channels);
    Value* lacking = graph.Scratch("lacking", graph.shape(x));
    graph.Emit(
        ops::HostCall{
            .what = "gradients of all workers' statistics",
            .call = [exchange = exchange_, items = ItemsPerChannel(graph), eps = eps()](
                        const KernelContext& ctx) { JoinGrad(*exchange, items, eps, ctx); }},
        {dslope, dbias, mean, variance, slope}, {factor, shift});
    graph.Emit(ops::ScaleShift{kChannels}, {x, factor, shift}, {lacking});
    graph.Emit(ops::EltwiseSum{}, {own_dx, lacking}, {dx});
  }

  // (own mean, own variance) -> (mean, variance) over the items of all workers. Each worker takes
  // the deviations of all means from the common one, because sums of squares would cancel.
  static void Join(const Exchange& exchange, double items, const KernelContext& ctx) {
    Numbers own = Read(ctx.input(0));
    const Numbers own_variance = Read(ctx.input(1));
    const size_t channels = own.size();
    own.insert(own.end(), own_variance.begin(), own_variance.end());
    own.push_back(items);
    const std::vector<Numbers> workers =
        exchange.gather ? exchange.gather(own) : std::vector<Numbers>{own};
    Numbers mean(channels), variance(channels);
    double all = 0;
    for (const Numbers& worker : workers) all += worker.back();
    for (size_t c = 0; c < channels; ++c) {
      for (const Numbers& worker : workers) mean[c] += worker.back() * worker[c];
      mean[c] /= all;
      for (const Numbers& worker : workers) {
        const double off = worker[c] - mean[c];
        variance[c] += worker.back() * (worker[channels + c] + off * off);
      }
      variance[c] /= all;
    }
    Write(std::move(mean), ctx.output(0));
    Write(std::move(variance), ctx.output(1));
  }

  // (own sum of dy times the normalised x, own sum of dy, mean, variance, slope) -> (factor, shift)
  // of that difference.
  static void JoinGrad(const Exchange& exchange, double items, double eps,
                       const KernelContext& ctx) {
    const Numbers own_dot = Read(ctx.input(0)), own_sum = Read(ctx.input(1));
    const Numbers mean = Read(ctx.input(2)), variance = Read(ctx.input(3));
    const Numbers slope = Read(ctx.input(4));
    const size_t channels = mean.size();
    Numbers all = own_dot;
    all.insert(all.end(), own_sum.begin(), own_sum.end());
    all.push_back(items);
    if (exchange.sum) exchange.sum(all);
    Numbers factor(channels), shift(channels);
    for (size_t c = 0; c < channels; ++c) {
      const double inverse = 1 / std::sqrt(variance[c] + eps), gain = slope[c] * inverse;
      factor[c] = gain * inverse * (own_dot[c] / items - all[c] / all.back());
      shift[c] = gain * (own_sum[c] / items - all[channels + c] / all.back()) - mean[c] * factor[c];
    }
    Write(std::move(factor), ctx.output(0));
    Write(std::move(shift), ctx.output(1));
  }

  bool has_others_ = false;
  // Plans keep it when it changes.
  const std::shared_ptr<Exchange> exchange_ = std::make_shared<Exchange>();
};

REGISTER_LAYER_CLASS(SyncBN, "bn_param");

}  // namespace
}  // namespace caffe
