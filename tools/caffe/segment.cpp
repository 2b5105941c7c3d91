// caffe segment: finds the class of each pixel of images.
#include <algorithm>
#include <iomanip>
#include <iostream>

#include "caffe/core/printable.hpp"
#include "caffe/error.hpp"
#include "tools/caffe/ask_net.hpp"
#include "tools/caffe/class_mask.hpp"
#include "tools/caffe/image_copies.hpp"

namespace caffe::tools {
namespace {

class Segment : public AskCommand {
 public:
  explicit Segment(CLI::App& app) : AskCommand(app) {
    app.add_option("--masks", mask_folder_,
                   "Write a mask of each image to this folder: a grey PNG of its size, with the "
                   "number of a class in each pixel, 255 where the net did not look")
        ->type_name("FOLDER");
    app.add_option("--draw", draw_folder_,
                   "Write copies of the images with their classes in colour to this folder")
        ->type_name("FOLDER");
  }

 private:
  void Prepare(const Net& net) override {
    Require(net.output_names().size() == 1, "the net has ", net.output_names().size(),
            " outputs; one for segmentation has one, with scores for each pixel");
    masks_ = ImageCopies(mask_folder_);
    drawings_ = ImageCopies(draw_folder_);
  }

  void Report(const Net& net, int index, const ShownImage& image, JsonObject* result) override {
    const ClassScores scores = ScoresOf(net, index);
    const data::ImageExtents& extents = image.pixels.extents;
    const std::vector<uint8_t> mask = ClassMask(scores, extents, image.seen);
    MakeJsonList(result, "classes");
    for (int label = 0; label < scores.classes; ++label) {
      const auto pixels = std::count(mask.begin(), mask.end(), static_cast<uint8_t>(label));
      if (pixels > 0) Tell(image, label, pixels, result);
    }
    if (masks_) {
      const data::Image file{{1, extents.height, extents.width}, {mask.begin(), mask.end()}};
      PutJson(result, "mask", masks_.Write(image.name, file));
    }
    if (drawings_) drawings_.Write(image.name, WithMask(image.pixels, mask));
  }

  static ClassScores ScoresOf(const Net& net, int index) {
    const Blob& blob = *net.output_blobs()[0];
    const Shape& shape = blob.shape();
    Require(shape.num_axes() == 4 && shape[0] == net.input_blobs()[0]->shape()[0] &&
                shape[1] >= 2 && shape[1] <= kNoClass,
            "output '", net.output_names()[0], "' has the shape ", shape,
            "; one for segmentation is N x C x H x W, with scores of 2 to 255 classes for each "
            "pixel");
    Require(shape[2] * shape[3] > 1, "output '", net.output_names()[0], "' has the shape ", shape,
            ": scores for a whole image; caffe classify tells its classes");
    ClassScores scores{nullptr, static_cast<int>(shape[1]), static_cast<int>(shape[2]),
                       static_cast<int>(shape[3])};
    scores.values = blob.cpu_data<float>() + index * (blob.count() / shape[0]);
    return scores;
  }

  void Tell(const ShownImage& image, int label, int64_t pixels, JsonObject* result) {
    const data::ImageExtents& extents = image.pixels.extents;
    const double share = double{1} * pixels / (double{1} * extents.height * extents.width);
    const std::string name = names().Of(label);
    if (!prints_json()) {
      std::cout << Printable(image.name) << " " << name << " " << std::fixed << std::setprecision(4)
                << share << "\n";
    }
    JsonObject* const one = AddJson(result, "classes");
    PutJson(one, "class", label);
    PutJson(one, "name", name);
    PutJson(one, "share", share);
    PutJson(one, "pixels", pixels);
  }

  std::string mask_folder_, draw_folder_;
  ImageCopies masks_, drawings_;
};

const CommandRegistrar<Segment> segment_registrar(
    "segment",
    {.purpose = Purpose::kUse,
     .summary = "say what each pixel of images shows",
     .about = "Runs images, or the frames of a video or a camera, through a net that has scores of "
              "classes for each pixel (U-Net, FCN) and prints a line for each class of an image: "
              "image, class, and its share of the image.",
     .examples = "caffe segment painter photos/ --draw=colored --masks=masks\n"
                 "caffe segment deploy.prototxt street.jpg --weights=fcn.caffemodel "
                 "--mean_values=104,117,123 --json"});

}  // namespace
}  // namespace caffe::tools
