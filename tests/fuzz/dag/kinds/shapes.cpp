// Layers that join, cut and move blobs.
#include "tests/fuzz/dag/layer_texts.hpp"
#include "tests/fuzz/dag/net_writer.hpp"
#include "tests/fuzz/dag/worker_check.hpp"

namespace caffe::fuzz {
namespace {

void AddConcat(NetWriter& net) {
  const KnownBlob first = net.ChooseAny();
  const int axis = net.random().Chance(0.7) ? 1 : net.random().Below(first.shape.num_axes());
  if (axis >= first.shape.num_axes() || (axis == 0 && first.batch > 0)) return;
  std::vector<KnownBlob> bottoms = {first};
  for (int more = net.random().Between(0, 2); more >= 0; --more) {
    const auto next = net.Choose([&](const KnownBlob& blob) {
      return blob.batch == first.batch && blob.shape.num_axes() == first.shape.num_axes() &&
             blob.shape.With(axis, 1) == first.shape.With(axis, 1);
    });
    bottoms.push_back(*next);  // the first one itself if necessary
  }
  net.Add(StrCat("type: 'Concat' concat_param { axis: ", axis, " }"), bottoms, {net.NewTop()});
}

void AddSlice(NetWriter& net) {
  const KnownBlob bottom = net.ChooseAny();
  const int axis = net.random().Chance(0.7) ? 1 : net.random().Below(bottom.shape.num_axes());
  if (axis >= bottom.shape.num_axes() || bottom.shape[axis] < 2 ||
      (axis == 0 && bottom.batch > 0)) {
    return;
  }
  const auto extent = static_cast<int>(bottom.shape[axis]);
  net.Add(StrCat("type: 'Slice' slice_param { axis: ", axis,
                 " slice_point: ", net.random().Between(1, extent - 1), " }"),
          {bottom}, {net.NewTop(), net.NewTop()});
}

std::string Rearrangement(NetWriter& net, const Shape& shape) {
  const int axes = shape.num_axes();
  switch (net.random().Below(5)) {
    case 0:
      return StrCat("type: 'Flatten' flatten_param { axis: ", net.random().Below(axes), " }");
    case 1:
      return "type: 'Reshape' reshape_param { shape { dim: 0 dim: -1 } }";
    case 2:
      return StrCat("type: 'Reshape' reshape_param { axis: 1 shape { dim: -1 dim: ",
                    net.random().Pick({1, 2, 3}), " dim: ", net.random().Pick({1, 2}), " } }");
    case 3: {
      std::string order = "order: 0";
      for (int i = axes - 1; i > 0; --i) order += StrCat(" order: ", i);
      return "type: 'Permute' permute_param { " + order + " }";
    }
    default:
      return StrCat("type: 'Tile' tile_param { axis: ", net.random().Below(axes), " tiles: 2 }");
  }
}

void AddRearranged(NetWriter& net) {
  const KnownBlob bottom = net.ChooseAny();
  if (bottom.batch == 0) net.Add(Rearrangement(net, bottom.shape), {bottom}, {net.NewTop()});
}

void AddMoved(NetWriter& net) {
  const auto bottom = net.ChooseImage();
  if (!bottom) return;
  net.Add(net.random().Pick<std::string>(
              {"type: 'ShuffleChannel' shuffle_channel_param { group: 2 }",
               "type: 'ShuffleChannel' shuffle_channel_param { group: 3 }", "type: 'Reorg'",
               "type: 'Reorg' reorg_param { reverse: true }",
               "type: 'Flip' flip_param { flip_height: true }",
               "type: 'Reverse' reverse_param { axis: 1 }"}),
          {*bottom}, {net.NewTop()});
}

// Pixels from channels.
void AddPixelShuffle(NetWriter& net) {
  const int factor = net.random().Pick({2, 2, 3});
  const auto bottom = net.Choose([&](const KnownBlob& blob) {
    return blob.shape.num_axes() == 4 && blob.shape[1] % (factor * factor) == 0;
  });
  if (!bottom) return;
  net.Add(StrCat("type: 'PixelShuffle' pixel_shuffle_param { upscale_factor: ", factor, " }"),
          {*bottom}, {net.NewTop()});
}

const NetKind pixel_shuffle("PixelShuffle", 4, AddPixelShuffle);
const ItemwiseLayer itemwise_pixel_shuffle("PixelShuffle");
const NetKind concat("Concat", 6, AddConcat);
const NetKind slice("Slice", 5, AddSlice);
const NetKind rearranged("rearranged", 6, AddRearranged);
const NetKind moved("moved", 4, AddMoved);

}  // namespace
}  // namespace caffe::fuzz
