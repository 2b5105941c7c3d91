// Gradients of resized images.
#include "tests/layers/gradient_cases.hpp"

namespace caffe {
namespace {

void ResizingGradients(GradientCaseList& add) {
  add(Layer1("InterpLarger", "2x2x4x3", "Interp", "interp_param { height: 9 width: 5 }"));
  add(Layer1("InterpOfAreas", "2x2x4x3", "Interp",
             "interp_param { height: 7 width: 5 align_corners: false }"));
  add(Layer1("InterpCropped", "1x2x7x6", "Interp",
             "interp_param { shrink_factor: 2 pad_beg: -1 pad_end: -1 }"));
  add({"InterpLikeSecond", "1x2x4x3 1x1x5x7",
       "layer { name: 'l' type: 'Interp' bottom: 'x0' bottom: 'x1' top: 'y' } "
       "layer { name: 's' type: 'TanH' bottom: 'x1' top: 'z' }"});
  for (const char* type : {"NEAREST", "LINEAR", "CUBIC", "AREA"}) {
    add(Layer1(StrCat("ResampleSmaller", type), "1x2x7x6", "Resample",
               StrCat("resample_param { height: 3 width: 4 type: ", type, " }")));
  }
  add(Layer1("ResampleLarger", "1x2x3x4", "Resample", "resample_param { factor: 2 type: CUBIC }"));
  add(Layer1("ImResize", "1x2x4x3", "ImResize", "imresize_param { factor: 2 }"));
  add(Layer1("ImResizeScales", "2x1x8x9", "ImResize",
             "imresize_param { factor: 1.5 scale_gap: 0.25 }"));
  add(Layer1("Upsample", "2x2x3x2", "Upsample", "upsample_param { scale: 3 }"));
  {
    GradientCase& test =
        add({"UpsampleMask", "1x2x2x2",
             "layer { name: 'l' type: 'Upsample' bottom: 'x0' bottom: 'c0' top: 'y' }", -1, 1, 0,
             "1x2x2x2"});
    test.constants = {0, 3, 12, 10, 5, 2, -1, 15};  // positions in planes of 4x4; one has none
  }
}

const GradientCases resizing_gradients("resizing", ResizingGradients);

}  // namespace
}  // namespace caffe
