// Blobs without bottoms, and a choice among items.
#include "tests/fuzz/dag/layer_texts.hpp"
#include "tests/fuzz/dag/net_writer.hpp"

namespace caffe::fuzz {
namespace {

void AddFilter(NetWriter& net) {
  const auto bottom = net.Choose(
      [&](const KnownBlob& blob) { return blob.batch == 0 && blob.shape[0] == net.items(); });
  if (!bottom) return;
  const KnownBlob select = net.NewInput("select", Shape{net.items(), 1});
  std::vector<KnownBlob> bottoms = {*bottom};
  std::vector<std::string> tops = {net.NewTop()};
  const auto second = net.Choose([&](const KnownBlob& blob) {
    return blob.batch == 0 && blob.shape.num_axes() > 0 && blob.shape[0] == net.items();
  });
  if (second && net.random().Chance(0.5)) {
    bottoms.push_back(*second);
    tops.push_back(net.NewTop());
  }
  bottoms.push_back(select);
  net.Add("type: 'Filter'", bottoms, tops, net.NextFilter());
}

void AddParameter(NetWriter& net) {
  const KnownBlob like = net.ChooseAny();
  if (like.batch == 0)
    net.Add(StrCat("type: 'Parameter' parameter_param { ", ShapeText(like.shape), " }"), {},
            {net.NewTop()});
}

const NetKind input("Input", 1, [](NetWriter& net) { net.AddInput(); });
const NetKind filter("Filter", 2, AddFilter);
const NetKind parameter("Parameter", 1, AddParameter);

}  // namespace
}  // namespace caffe::fuzz
