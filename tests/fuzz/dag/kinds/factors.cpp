// Factors and terms that are learned, or that another layer computes.
#include <algorithm>

#include "tests/fuzz/dag/layer_texts.hpp"
#include "tests/fuzz/dag/net_writer.hpp"
#include "tests/fuzz/dag/worker_check.hpp"

namespace caffe::fuzz {
namespace {

std::string BroadcastAxes(NetWriter& net, const KnownBlob& bottom) {
  const int axes = bottom.shape.num_axes();
  const int axis = net.random().Chance(0.6) ? 1 : net.random().Below(axes);
  return StrCat("axis: ", axis, " num_axes: ",
                net.random().Chance(0.6) ? 1 : net.random().Between(-1, std::max(0, axes - axis)));
}

// A second bottom for Scale and Bias: learned by a Parameter layer or computed earlier.
std::vector<KnownBlob> WithFactor(NetWriter& net, const KnownBlob& bottom) {
  if (net.random().Chance(0.7)) return {bottom};
  const auto factor = net.Choose([&](const KnownBlob& blob) {
    return blob.batch == bottom.batch && blob.name != bottom.name &&
           blob.shape.num_axes() <= bottom.shape.num_axes() &&
           std::equal(blob.shape.dims().begin(), blob.shape.dims().end(),
                      bottom.shape.dims().begin());
  });
  if (!factor) return {bottom};
  return {bottom, *factor};
}

void AddScale(NetWriter& net) {
  const KnownBlob bottom = net.ChooseAny();
  const std::vector<KnownBlob> bottoms = WithFactor(net, bottom);
  net.Add(Scale(net, bottoms.size() == 2 ? "axis: 0" : BroadcastAxes(net, bottom)), bottoms,
          {net.TopOver(bottom)});
}

void AddBias(NetWriter& net) {
  const KnownBlob bottom = net.ChooseAny();
  const std::vector<KnownBlob> bottoms = WithFactor(net, bottom);
  net.Add(StrCat("type: 'Bias' bias_param { ",
                 bottoms.size() == 2 ? std::string("axis: 0") : BroadcastAxes(net, bottom),
                 " filler { type: 'gaussian' std: 0.5 } }"),
          bottoms, {net.TopOver(bottom)});
}

// a x + y with a factor per channel.
void AddAxpy(NetWriter& net) {
  const auto x = net.ChooseImage();
  if (!x || x->batch != 0 || x->shape[0] != net.items()) return;
  const auto y = net.ChooseLike(*x);
  const KnownBlob factor = net.NewInput("x", Shape{x->shape[0], x->shape[1]});
  if (y) net.Add("type: 'Axpy'", {factor, *x, *y}, {net.NewTop()});
}

// A factor for each element of the last axis, which is not that of the items.
void AddLayerScale(NetWriter& net) {
  const auto bottom = net.ChooseWithAxes(2);
  if (!bottom) return;
  net.Add(StrCat("type: 'LayerScale' layer_scale_param { initial: ",
                 net.random().Pick({0.1, 0.5, 1.5}), " }"),
          {*bottom}, {net.TopOver(*bottom)});
}

const NetKind layer_scale("LayerScale", 3, AddLayerScale);
const ItemwiseLayer itemwise_layer_scale("LayerScale");
const NetKind scale("Scale", 4, AddScale);
const NetKind bias("Bias", 3, AddBias);
const NetKind axpy("Axpy", 2, AddAxpy);

}  // namespace
}  // namespace caffe::fuzz
