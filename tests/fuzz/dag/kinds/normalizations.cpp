// Normalizations.
#include "tests/fuzz/dag/layer_texts.hpp"
#include "tests/fuzz/dag/net_writer.hpp"
#include "tests/fuzz/dag/worker_check.hpp"

namespace caffe::fuzz {
namespace {

void AddLrn(NetWriter& net) {
  const auto bottom = net.ChooseImage();
  if (!bottom) return;
  net.Add(StrCat("type: 'LRN' lrn_param { local_size: ", net.random().Pick({1, 3, 5}), " alpha: ",
                 net.random().Pick({0.0001, 0.5, 1.0}), " beta: ", net.random().Pick({0.5, 0.75}),
                 net.random().Chance(0.5) ? " norm_region: WITHIN_CHANNEL"
                                          : StrCat(" k: ", net.random().Pick({1, 2})),
                 " }"),
          {*bottom}, {net.NewTop()});
}

void AddMvn(NetWriter& net) {
  const auto bottom = net.Choose([](const KnownBlob& blob) {
    return blob.shape.num_axes() == 4 && blob.shape.count(2) > 1;  // otherwise 0 / eps
  });
  if (!bottom) return;
  net.Add(StrCat("type: 'MVN' mvn_param { eps: 0.001", Flag(net, "across_channels", 0.3),
                 net.random().Chance(0.3) ? " normalize_variance: false" : "", " }"),
          {*bottom}, {net.NewTop()});
}

void AddLayerNorm(NetWriter& net) {
  const KnownBlob bottom = net.ChooseAny();
  // For a single element it computes only rounding noise.
  if (bottom.shape.num_axes() < 2 || bottom.shape.count(1) < 3) return;
  net.Add(StrCat("type: 'LayerNorm' layer_norm_param { axis: 1 eps: 1e-3",
                 net.random().Chance(0.3) ? " affine: false" : "", " }"),
          {bottom}, {net.NewTop()});
}

// Groups of channels; InstanceNorm has a channel in each.
void AddGroupNorm(NetWriter& net) {
  const auto bottom = net.ChooseWithAxes(3);
  if (!bottom) return;
  std::vector<int> groups;
  for (int i = 1; i <= bottom->shape[1]; ++i) {
    // For a few elements it computes only rounding noise.
    if (bottom->shape[1] % i == 0 && bottom->shape.count(1) / i >= 3) groups.push_back(i);
  }
  if (groups.empty()) return;
  const int group = net.random().Pick(groups);
  const bool is_instance = group == bottom->shape[1];
  net.Add(StrCat(is_instance ? "type: 'InstanceNorm' group_norm_param {"
                             : StrCat("type: 'GroupNorm' group_norm_param { num_groups: ", group),
                 " eps: 1e-3", net.random().Chance(0.3) ? " affine: false" : "", " }"),
          {*bottom}, {net.NewTop()});
}

void AddRmsNorm(NetWriter& net) {
  const auto bottom = net.ChooseWithAxes(2);
  if (!bottom) return;
  const int axis = net.random().Between(1, bottom->shape.num_axes() - 1);
  if (bottom->shape.count(axis) < 3) return;
  net.Add(StrCat("type: 'RMSNorm' rms_norm_param { eps: 1e-3 axis: ", axis,
                 net.random().Chance(0.3) ? " affine: false" : "", " }"),
          {*bottom}, {net.NewTop()});
}

const NetKind group_norm("GroupNorm", 4, AddGroupNorm);
const NetKind rms_norm("RMSNorm", 2, AddRmsNorm);
const ItemwiseLayer itemwise_norms[] = {ItemwiseLayer("GroupNorm"), ItemwiseLayer("InstanceNorm"),
                                  ItemwiseLayer("RMSNorm")};
const NetKind lrn("LRN", 5, AddLrn);
const NetKind mvn("MVN", 3, AddMvn);
const NetKind layer_norm("LayerNorm", 2, AddLayerNorm);

}  // namespace
}  // namespace caffe::fuzz
