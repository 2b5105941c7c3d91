// Gradients of layers that join, cut and pick.
#include "tests/layers/gradient_cases.hpp"

namespace caffe {
namespace {

void ShapesGradients(GradientCaseList& add) {
  add({"Concat", "2x3x2 2x1x2 2x2x2",
       "layer { name: 'l' type: 'Concat' bottom: 'x0' bottom: 'x1' bottom: 'x2' top: 'y' }"});
  add({"ConcatAxis0", "2x3 1x3",
       "layer { name: 'l' type: 'Concat' bottom: 'x0' bottom: 'x1' top: 'y' concat_param { axis: 0 "
       "} }"});
  add({"Slice", "2x6x2",
       "layer { name: 'l' type: 'Slice' bottom: 'x0' top: 'y0' top: 'y1' top: 'y2' "
       "slice_param { slice_point: 1 slice_point: 4 } }"});
  add({"Split", "2x3", "layer { name: 'l' type: 'Split' bottom: 'x0' top: 'y0' top: 'y1' }"});
  add({"SplitImplicit", "2x3",
       "layer { name: 'a' type: 'TanH' bottom: 'x0' top: 'y0' } "
       "layer { name: 'b' type: 'Sigmoid' bottom: 'x0' top: 'y1' }"});
  add(Layer1("Flatten", "2x3x2", "Flatten", ""));
  add(Layer1("Reshape", "2x3x2", "Reshape", "reshape_param { shape { dim: 0 dim: -1 } }"));
  add(Layer1("Softmax", "3x4x2", "Softmax", ""));
  add(Layer1("LogSoftmax", "3x4x2", "LogSoftmax", ""));
  add(Layer1("LogSoftmaxOfLastAxis", "3x4", "LogSoftmax", "softmax_param { axis: -1 }"));
  add(Layer1("SoftmaxAxis0", "3x4", "Softmax", "softmax_param { axis: 0 }"));
  add({"Silence", "2x3",
       "layer { name: 'a' type: 'TanH' bottom: 'x0' top: 'y' } "
       "layer { name: 'b' type: 'Sigmoid' bottom: 'x0' top: 'unused' } "
       "layer { name: 's' type: 'Silence' bottom: 'unused' }"});
  add(Layer1("Permute", "2x3x4x5", "Permute", "permute_param { order: 0 order: 2 order: 3 }"));
  add(Layer1("Tile", "2x3x4", "Tile", "tile_param { tiles: 3 }"));
  add(Layer1("ShuffleChannel", "2x6x2x3", "ShuffleChannel", "shuffle_channel_param { group: 3 }"));
  add(Layer1("Reorg", "1x4x4x6", "Reorg", ""));
  add(Layer1("ReorgReverse", "1x8x2x3", "Reorg", "reorg_param { reverse: true }"));
  add(Layer1("Flip", "2x2x3x4", "Flip", "flip_param { flip_height: true }"));
  add(Layer1("Reverse", "3x2x2", "Reverse", ""));
  add({"Crop", "2x3x6x5 2x3x3x2",
       "layer { name: 'l' type: 'Crop' bottom: 'x0' bottom: 'x1' top: 'y' crop_param { offset: 1 "
       "offset: 2 } } layer { name: 's' type: 'TanH' bottom: 'x1' top: 'z' }"});
  add({"BatchReindex", "3x4",
       "layer { name: 'l' type: 'BatchReindex' bottom: 'x0' bottom: 'c0' top: 'y' }", -1, 1, 0,
       "7"});
  add({"Filter", "5x3 5x2",
       "layer { name: 'l' type: 'Filter' bottom: 'x0' bottom: 'x1' bottom: 'c0' top: 'y' top: 'z' "
       "}",
       -1, 1, 0, "5"})
      .classes = 2;
  add({"Embed", "",
       StrCat("layer { name: 'l' type: 'Embed' bottom: 'c0' top: 'y' embed_param { input_dim: 3 "
              "num_output: 4 ",
              kGaussian, "} }"),
       -1, 1, 0, "2x5"});
  for (const char* inputs : {"2x3 2x3", "3x1 2x1x4"}) {
    GradientCase& test =
        add({std::string("Where") + inputs[0], inputs,
             "layer { name: 'l' type: 'Where' bottom: 'c0' bottom: 'x0' bottom: 'x1' top: 'y' }"});
    test.constant_inputs = inputs[0] == '2' ? "2x1" : "2x3x4";
    test.classes = 2;
  }
  const auto picking = [&](const std::string& name, const std::string& inputs,
                           const std::string& layer, const std::string& indices,
                           std::vector<double> values) {
    GradientCase& test = add({name, inputs, "layer { name: 'l' " + layer + " }"});
    test.constant_inputs = indices;
    test.constants = std::move(values);
  };
  picking("Gather", "4x3", "type: 'Gather' bottom: 'x0' bottom: 'c0' top: 'y'", "5",
          {3, 0, -1, 1, -1});
  picking("GatherAxis", "2x4x3",
          "type: 'Gather' bottom: 'x0' bottom: 'c0' top: 'y' gather_param { axis: -2 }", "2x3",
          {3, 0, -1, 1, 3, -4});
  for (const char* add_option : {"true", "false"}) {
    picking(StrCat("ScatterAdd_", add_option), "2x4 2x3",
            StrCat("type: 'Scatter' bottom: 'x0' bottom: 'c0' bottom: 'x1' top: 'y' scatter_param "
                   "{ axis: 1 add: ",
                   add_option, " }"),
            "2x3", {0, 3, 0, -1, -2, 3});
  }
  add(Layer1("TopK", "2x5x3", "TopK", "top_k_param { k: 2 axis: 1 }")).is_distinct = true;
  add(Layer1("TopKSmallest", "3x5", "TopK", "top: 'places' top_k_param { k: 3 largest: false }"))
      .is_distinct = true;
  add(Layer1("PixelShuffle", "2x8x2x3", "PixelShuffle", ""));
  add(Layer1("PatchEmbed", "2x3x4x6", "PatchEmbed",
             StrCat("patch_embed_param { num_output: 5 patch_size: 2 ", kGaussian, "}")));
}

const GradientCases shapes_gradients("shapes", ShapesGradients);

}  // namespace
}  // namespace caffe
