// Layers that pick elements by other numbers.
#include "tests/fuzz/dag/layer_texts.hpp"
#include "tests/fuzz/dag/worker_check.hpp"

namespace caffe::fuzz {
namespace {

// One of two blobs at each place; the mask is repeated along some of their axes.
void AddWhere(NetWriter& net) {
  const KnownBlob first = net.ChooseAny();
  if (first.batch != 0 || first.shape.num_axes() == 0 || first.shape[0] != net.items()) return;
  const auto second = net.ChooseLike(first);
  Shape repeated = first.shape, other = first.shape;
  for (int axis = 1; axis < first.shape.num_axes(); ++axis) {
    if (net.random().Chance(0.3)) repeated = repeated.With(axis, 1);
    if (net.random().Chance(0.3)) other = other.With(axis, 1);
  }
  std::vector<KnownBlob> both = {
      first, second && net.random().Chance(0.5) ? *second : net.NewInput("x", other)};
  if (net.random().Chance(0.5)) std::swap(both[0], both[1]);
  net.Add("type: 'Where'", {net.NewInput("binary", repeated), both[0], both[1]}, {net.NewTop()});
}

// Elements along an axis, some of them several times.
void AddGather(NetWriter& net) {
  const KnownBlob x = net.ChooseAny();
  const int axis = net.random().Below(x.shape.num_axes());
  if (axis == 0 && x.batch != 0) return;
  const KnownBlob index =
      net.NewInput(StrCat("label", x.shape[axis]), Shape{net.random().Between(1, 5)});
  net.Add(StrCat("type: 'Gather' gather_param { axis: ", axis, " }"), {x, index}, {net.NewTop()});
}

const NetKind where("Where", 3, AddWhere);
const NetKind gather("Gather", 3, AddGather);
const ItemwiseLayer itemwise_where("Where");

}  // namespace
}  // namespace caffe::fuzz
